"""The sizes that a model is run at: 1, primes, those around the limits of its schedules, and sizes above 1,024.

A schedule changes what it does where an extent passes one of its numbers (the rows of a tile, a chunk, a block) or a product of two. These
are read off the kernels of the compiled module, so that the numbers of a new schedule are met without anybody listing them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from inputs import Symbol

from relayc.runtime import KernelInfo, Module
from relayc.symbolic import Dim, evaluate, symbols_of

Sizes = dict[str, int]
PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 97, 127, 131, 193, 257, 383, 509]
LARGE = [1025, 1031, 1087, 1537, 2049, 2053, 3067, 4097, 4099]
"""Above 1,024: primes, and beside powers of two, where plans of symbolic sizes change what a block holds."""
LANES = 16
MAX_FLOPS, MAX_BYTES = 4e9, 4e9
"""Of one call: about a second on one core, and what stays clear of the memory of a small machine."""
_NUMBERS = re.compile(r"(\w+)=(\d+)")


@dataclass(frozen=True)
class Limit:
    """A number that an expression of the sizes passes: a schedule does something else on its other side."""

    expression: Dim
    value: int

    def is_near(self, sizes: Mapping[str, int]) -> bool:
        """Whether the expression is at the limit, or one element beside it."""
        return abs(evaluate(self.expression, sizes) - self.value) <= 1


def limits_of(module: Module) -> list[Limit]:
    """Where schedules of a module's kernels change what they do."""
    found = set()
    for kernel in module.kernels:
        numbers = {name: int(value) for name, value in _NUMBERS.findall(kernel.schedule) if name != "grain"}
        own = set(numbers.values()) | {value * LANES for value in numbers.values()} | {LANES}
        values = own | {a * b for a, b in itertools.combinations(own, 2)}
        for extent in _extents(kernel):
            found.update(Limit(extent, value) for value in values if 1 < value <= 5000)
    return sorted(found, key=lambda limit: (str(limit.expression), limit.value))


def _extents(kernel: KernelInfo) -> set[Dim]:
    """Symbolic extents of a kernel's tensors, and products of those beside each other, which schedules take as one."""
    found = set()
    for spec in (*kernel.inputs, *kernel.outputs):
        for begin, end in itertools.combinations(range(len(spec.shape) + 1), 2):
            extent = 1
            for dim in spec.shape[begin:end]:
                extent = extent * dim
            if isinstance(extent, Dim):
                found.add(extent)
    return found


class Chooser:
    """Draws sizes for a module.

    Args:
      symbols: what each symbol may be.
    """

    def __init__(self, module: Module, symbols: Mapping[str, Symbol], rng: np.random.Generator) -> None:
        self.module, self.symbols, self.rng = module, symbols, rng
        self.costs = [(k.flops, k.bytes) for k in module.step_kernels]
        known = set(symbols)
        self.limits = [limit for limit in limits_of(module) if set(symbols_of(limit.expression)) <= known]

    def choose(self, count: int) -> list[Sizes]:
        """`count` different sizes, or as many as there are."""
        found: dict[tuple[int, ...], Sizes] = {}
        fixed = [self._least(), self._drawn(PRIMES[1:12]), self._drawn(PRIMES), *self._large()]
        for sizes in fixed[: count - 2]:
            found.setdefault(tuple(sizes.values()), sizes)
        for sizes in self._around_limits(count - len(found), list(found.values())):
            found.setdefault(tuple(sizes.values()), sizes)
        for _ in range(100):
            if len(found) >= count:
                break
            sizes = self._drawn(range(1, 600))
            found.setdefault(tuple(sizes.values()), sizes)
        return list(found.values())

    def _least(self) -> Sizes:
        return {name: symbol.nearest(max(1, symbol.low)) for name, symbol in self.symbols.items()}

    def _drawn(self, values: list[int] | range) -> Sizes:
        """Every symbol one of some values (a prime beyond the least size of an image), halved until the call is affordable."""
        above = {name: symbol.low if symbol.low > 8 else 0 for name, symbol in self.symbols.items()}
        return self._affordable({name: s.nearest(above[name] + int(self.rng.choice(values))) for name, s in self.symbols.items()})

    def _large(self) -> Iterator[Sizes]:
        """For up to three symbols: that one above 1,024, or as large as it may be, and the others small."""
        names = sorted(self.symbols, key=lambda name: -self.symbols[name].high)[:3]
        for name in names:
            sizes = {n: symbol.nearest(int(self.rng.choice([1, 2, 3]))) for n, symbol in self.symbols.items()}
            for value in self.rng.permutation(LARGE):
                sizes[name] = self.symbols[name].nearest(int(value))
                if self._is_affordable(sizes):
                    break
            yield self._affordable(sizes)

    def _around_limits(self, count: int, chosen: list[Sizes]) -> list[Sizes]:
        """Sizes that meet limits which no other size has met, as many and as large ones as possible."""
        left = {limit for limit in self.limits if not any(limit.is_near(sizes) for sizes in chosen)}
        found: list[Sizes] = []
        while left and len(found) < count:
            picked = self.rng.choice(len(left), min(len(left), 24), replace=False)
            ordered = sorted(left, key=lambda limit: (str(limit.expression), limit.value))
            candidates = [sizes for i in picked if (sizes := self._at(ordered[i])) is not None]
            if not candidates:
                break
            best = max(candidates, key=lambda sizes: sum(math.log2(limit.value) for limit in left if limit.is_near(sizes)))
            left = {limit for limit in left if not limit.is_near(best)}
            found.append(best)
        return found

    def _at(self, limit: Limit) -> Sizes | None:
        """Affordable sizes at a limit or one element beside it; None where none were found."""
        names = sorted(set(symbols_of(limit.expression)))
        sizes = {name: symbol.nearest(int(self.rng.choice([1, 2, 3, 5]))) for name, symbol in self.symbols.items()}
        name = names[int(self.rng.integers(len(names)))]
        symbol = self.symbols[name]
        low, high = symbol.low, symbol.high
        while low < high:
            middle = (low + high) // 2
            if evaluate(limit.expression, sizes | {name: middle}) < limit.value:
                low = middle + 1
            else:
                high = middle
        sizes[name] = symbol.nearest(low + int(self.rng.integers(-1, 2)) * symbol.multiple)
        near = abs(evaluate(limit.expression, sizes) - limit.value) <= max(2 * limit.value // max(low, 1) * symbol.multiple, 1)
        return sizes if near and self._is_affordable(sizes) else None

    def _affordable(self, sizes: Sizes) -> Sizes:
        while not self._is_affordable(sizes):
            name = max(sizes, key=lambda n: sizes[n] / max(self.symbols[n].low, 1))
            smaller = self.symbols[name].nearest(sizes[name] // 2)
            if smaller == sizes[name]:
                break
            sizes[name] = smaller
        return sizes

    def _is_affordable(self, sizes: Sizes) -> bool:
        def total(part: int) -> int:
            known = (cost[part] for cost in self.costs)
            return sum(evaluate(c, sizes) for c in known if isinstance(c, int) or set(symbols_of(c)) <= set(sizes))

        return total(0) <= MAX_FLOPS and total(1) <= MAX_BYTES
