"""Programs at sizes around the limits of their own kernels: one off a number at which the code changes what it does, at it, at multiples
of it, and above 1,024; compiled once for all sizes, and for some of these sizes alone.

The limits are read off the code, so that those of a new schedule are met without anybody listing them.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Any

import numpy as np
import pytest
from accuracy import UNIT
from support import Const, program
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.mlir import ir
from relayc.dialects.relay import TensorType
from relayc.dialects.relay.types import numpy_dtype
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.runtime import KernelInfo, Module
from relayc.symbolic import Dim, evaluate, symbols_of

Sizes = dict[str, int]

LARGE = (1025, 1031, 1087)
MOST_OPERATIONS, MOST_ELEMENTS = 1.5e7, 6e5
"""Of one call: the reference takes some milliseconds for them."""
LARGEST = 1 << 17
"""Limits beyond this are left out."""
POWERS = {1 << i for i in range(2, 13)}
ALL = "RELAYC_TEST_ALL" in os.environ


@dataclass(frozen=True)
class Case:
    """A program of one result.

    Attributes:
      operands: types as text ("float32[b, 8, h, w]"), and constants.
      body: builds the operators.
      expected: the result of arrays, wide (float64, or integers), and how far each element may be off.
      strategy: one that a kernel must have got.
      lows: of symbols, 1 where nothing is said.
      caches: options of the target: with small caches small programs have several blocks.
      make: an operand of a shape and a dtype.
    """

    operands: Sequence[str | Const]
    body: Callable[..., ir.Value]
    expected: Callable[..., tuple[np.ndarray, np.ndarray | float]]
    strategy: str = ""
    lows: Mapping[str, int] = field(default_factory=dict)
    caches: Mapping[str, int] = field(default_factory=dict)
    make: "Callable[[np.random.Generator, Sequence[int], str], np.ndarray] | None" = None

    @property
    def types(self) -> list[TensorType | Const]:
        return [o if isinstance(o, Const) else tensor(o) for o in self.operands]

    @property
    def symbols(self) -> list[str]:
        return sorted({name for t in self.types if isinstance(t, TensorType) for name in t.symbols})

    def arrays(self, sizes: Mapping[str, int]) -> list[np.ndarray | Const]:
        rng = np.random.default_rng(list(sizes.values()))
        make = self.make or wide
        return [
            t if isinstance(t, Const) else make(rng, [d if isinstance(d, int) else evaluate(d, sizes) for d in t.shape], t.dtype)
            for t in self.types
        ]


def wide(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    """Numbers of both signs and of several magnitudes; of integers the whole range."""
    kind = numpy_dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
    if kind.kind == "b":
        return rng.random(shape) < 0.4
    return (rng.choice([-1.0, 1.0], shape) * np.exp2(rng.uniform(-4, 4, shape))).astype(kind)


def limits_of(code: str) -> set[int]:
    """The numbers that sizes are compared with, divided by, rounded to, reduced by and counted in, and the lanes of vectors."""
    found = {int(n) for n in re.findall(r"vector<(\d+)x", code)}
    constants = {name: int(n) for name, n in re.findall(r"(%\S+) = arith\.constant (-?\d+) : index", code)}
    decides = (
        r"arith\.(?:cmpi|(?:ceil|floor)?div[su]i|rem[su]i|min[su]i|max[su]i|andi|addi|subi)\b|scf\.(?:for|parallel)\b|affine\.(?:min|max)\b"
    )
    for line in re.findall(rf"^.*(?:{decides}).*$", code, re.MULTILINE):
        numbers = {constants[name] for name in re.findall(r"%[\w-]+", line) if name in constants}
        # Of additions those that take away: what is left is compared.
        found |= {abs(n) for n in numbers if n < 0 or not re.search(r"arith\.(addi|subi)", line)}
    found = {n for n in found if 2 < n <= LARGEST}
    # Loops without vectors go on by one, as of a scan, where any number is as good as these, or by runs that double, as of a sort.
    return found if "vector<" in code or not code else found | POWERS


class Around:
    """Sizes around the limits of a program.

    Args:
      module: the program for all sizes, compiled with `keep_ir`.
      code: that has limits too, of the program for known sizes.

    Attributes:
      goals: (extent, number) where an extent of a kernel is a limit or a multiple of it, or one off.
    """

    def __init__(self, case: Case, module: Module, code: str = "", seed: int = 0) -> None:
        self.case, self.module, self.rng = case, module, np.random.default_rng(seed)
        known = set(case.symbols)
        goals = set()
        for kernel, own in _kernels(module):
            limits = limits_of(own) | limits_of(code)
            numbers = {n + d for limit in limits for n in (limit, 2 * limit) for d in (-1, 0, 1)} | {3 * limit for limit in limits}
            for extent in _extents(kernel):
                if set(symbols_of(extent)) <= known:
                    goals |= {(extent, n) for n in numbers if n <= LARGEST}
        self.goals = sorted(goals, key=str)

    def choose(self, count: int) -> list[Sizes]:
        """All smallest, and each symbol above 1,024; then up to `count` that meet goals, each others than those before."""
        found = [{name: self._low(name) for name in self.case.symbols}]
        for name in self.case.symbols:
            large = self._small() | {name: int(self.rng.choice(LARGE))}
            found += [large] if self.is_cheap(large) else []
        return [*found, *self.meet_goals(count)]

    def meet_goals(self, count: int) -> list[Sizes]:
        found: list[Sizes] = []
        left = [self.goals[i] for i in self.rng.permutation(len(self.goals))]
        while left and len(found) < count:
            sizes = self._at(*left.pop())
            if sizes is not None:
                found.append(sizes)
                left = [(extent, n) for extent, n in left if evaluate(extent, sizes) != n]
        return found

    def _low(self, name: str) -> int:
        return self.case.lows.get(name, 1)

    def _small(self) -> Sizes:
        return {name: self._low(name) + int(self.rng.choice([0, 0, 1, 2, 4])) for name in self.case.symbols}

    def _at(self, extent: Dim, number: int) -> Sizes | None:
        """Sizes at which an extent is a number; None where none were found, or they cost too much."""
        sizes = self._small()
        name = str(self.rng.choice(sorted(set(symbols_of(extent)))))
        low, high = self._low(name), 4 * LARGEST
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if evaluate(extent, sizes | {name: middle}) < number else (low, middle)
        sizes[name] = low
        return sizes if evaluate(extent, sizes) == number and self.is_cheap(sizes) else None

    def is_cheap(self, sizes: Sizes) -> bool:
        def total(parts: Iterator[int | Dim]) -> int:
            return sum(p if isinstance(p, int) else evaluate(p, sizes) for p in parts)

        kernels = self.module.step_kernels
        return total(k.flops for k in kernels) <= MOST_OPERATIONS and total(k.bytes for k in kernels) <= 4 * MOST_ELEMENTS


def _kernels(module: Module) -> Iterator[tuple[KernelInfo, str]]:
    """Kernels, each with its code."""
    functions = re.split(r"(?=func\.func private @)", module.ir["tir"])
    code = {found[1]: text for text in functions if (found := re.match(r"func\.func private @(\w+)", text))}
    for kernel in module.kernels:
        yield kernel, code[kernel.name]


def _extents(kernel: KernelInfo) -> set[Dim]:
    """Symbolic extents of a kernel's tensors, and products of those beside each other, which schedules take as one."""
    found = set()
    for spec in (*kernel.inputs, *kernel.outputs):
        for begin in range(len(spec.shape)):
            found |= {e for e in accumulate(spec.shape[begin:], mul) if isinstance(e, Dim)}
    return found


def cases_of(table: Mapping[str, Case]) -> list[Any]:
    """(name, mcpu) of the cases of a table as parameters of a test: one after the other at each level that this machine has, and all at all
    of them where RELAYC_TEST_ALL is set."""
    levels = [mcpu for mcpu in ("x86-64-v4", "x86-64-v3") if Target("cpu", mcpu=mcpu).is_host] or ["x86-64"]
    chosen = [(name, mcpu) for i, name in enumerate(table) for mcpu in (levels if ALL else [levels[i % len(levels)]])]
    return [pytest.param(name, mcpu, id=f"{name}-{mcpu}") for name, mcpu in chosen]


def check(case: Case, mcpu: str, count: int = 60, static: int = 2) -> None:
    """The program compiled once, at `count` sizes around the limits of its kernels; and compiled for `static` of the sizes around the
    limits that its kernels have for known sizes."""
    target = Target("cpu", mcpu=mcpu, num_threads=2, **case.caches)
    module = compile(symbolic_program(lambda *v: [case.body(*v)], case.types), target=target, keep_ir=True)
    taken = {kernel.schedule.split()[0] for kernel in module.kernels}
    assert not case.strategy or case.strategy in taken, [kernel.schedule for kernel in module.kernels]
    around = Around(case, module)
    several = around.choose(len(around.goals) if ALL else count)
    assert len(several) > 20 and max(max(sizes.values()) for sizes in several) > 1024, several
    for sizes in several:
        arrays = case.arrays(sizes)
        _compare(case, module["main"](*_inputs(arrays)), arrays, f"{mcpu}, {sizes}")
    known = case.arrays(next(sizes for sizes in _falling(case) if around.is_cheap(sizes)))
    code = str(compile(program(lambda *v: [case.body(*v)], known), target=target, stop_after="tir").module)
    alone = Around(case, module, code).meet_goals(10 * static)
    # The largest, which may be worth several threads, and others.
    alone.sort(key=lambda sizes: -prod(sizes.values()))
    _check_static([(case, sizes) for sizes in (alone if ALL else alone[:1] + alone[-static:][1:])], target)


def _falling(case: Case) -> Iterator[Sizes]:
    """Sizes that are all large, then smaller."""
    for size in (131, 97, 67, 53, 37, 23, 17, 11, 7, 5, 3):
        yield {
            name: max(case.lows.get(name, 1), size if i or len(case.symbols) == 1 else min(size, 3)) for i, name in enumerate(case.symbols)
        }


def _check_static(cases: Sequence[tuple[Case, Sizes]], target: Target) -> None:
    """One program of cases, each for the sizes that it is given."""
    alone = [case.arrays(sizes) for case, sizes in cases]
    ends = [0, *accumulate(map(len, alone))]

    def each(*values: ir.Value) -> list[ir.Value]:
        return [case.body(*values[begin:end]) for (case, _), (begin, end) in zip(cases, pairwise(ends), strict=True)]

    flat = [a for arrays in alone for a in arrays]
    results = compile(program(each, flat), target=target)["main"](*_inputs(flat))
    for (case, sizes), arrays, found in zip(cases, alone, results if isinstance(results, tuple | list) else [results], strict=True):
        _compare(case, found, arrays, f"{target.mcpu}, compiled for {sizes}")


def _inputs(arrays: Sequence[np.ndarray | Const]) -> list[np.ndarray]:
    return [a for a in arrays if not isinstance(a, Const)]


def _compare(case: Case, found: np.ndarray, arrays: Sequence[np.ndarray | Const], where: str) -> None:
    expected, bound = case.expected(*[a.array if isinstance(a, Const) else a for a in arrays])
    assert found.shape == expected.shape, f"{where}: found {found.shape}, expected {expected.shape}"
    if expected.dtype.kind == "b":
        assert found.dtype == expected.dtype, where
        found, expected = found.astype(np.int8), expected.astype(np.int8)
    bound = np.broadcast_to(bound, expected.shape)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected)) if expected.dtype.kind == "f" else found == expected
    with np.errstate(invalid="ignore"):
        wrong = ~(same | (np.abs(found.astype(expected.dtype) - expected) <= bound))
    if wrong.any():
        worst = tuple(np.argwhere(wrong)[0])
        some = f"at {tuple(map(int, worst))} found {found[worst]}, expected {expected[worst]} +- {bound[worst]}"
        raise AssertionError(f"{where}: {np.count_nonzero(wrong)} of {wrong.size} elements are wrong, {some}")


def rounded(expected: np.ndarray, bound: np.ndarray | float, dtype: str) -> np.ndarray:
    """A bound of what is rounded to a dtype in the end."""
    return bound + UNIT[dtype] * (np.abs(expected) + bound)
