"""Memory planning: offsets in one arena for the tensors between kernels, so that tensors that are never alive together share memory.

Sizes, offsets and the size of the arena may be expressions over symbols: one plan holds for all sizes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from relayc.symbolic import Dim, Ranges, Size, ceil_div, evaluate, maximum, proves, symbols_of

ALIGNMENT = 64
"""Alignment of every tensor in the arena and in the parameter blob: a cache line, and the widest vector."""


@overload
def align(size: int) -> int: ...
@overload
def align(size: Size) -> Size: ...
def align(size: Size) -> Size:
    """A size rounded up to ALIGNMENT."""
    return ceil_div(size, ALIGNMENT) * ALIGNMENT


@dataclass(eq=False)
class Tensor:
    """A tensor to place: its size in bytes, the first and last step at which it is alive (inclusive), and its offset, once it is known."""

    size: Size
    first: int
    last: int
    offset: Size = 0

    def meets(self, other: "Tensor") -> bool:
        """Whether both are alive at a step."""
        return other.first <= self.last and self.first <= other.last

    @property
    def end(self) -> Size:
        """Where the next one may begin."""
        return self.offset + align(self.size)


def plan(tensors: Sequence[Tensor]) -> Size:
    """Gives each tensor an offset, largest first, each at the lowest gap that no tensor alive with it occupies; returns the arena's size.

    The rule is the greedy-by-size one (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020).
    """
    if any(isinstance(t.size, Dim) for t in tensors):
        return _plan_symbolic(tensors)
    return _plan_static(tensors)


def _plan_static(tensors: Sequence[Tensor]) -> Size:
    placed: list[Tensor] = []
    total: Size = 0
    for tensor in sorted(tensors, key=lambda t: (-t.size, t.first)):
        size: Size = align(tensor.size)
        offset: Size = 0
        for other in placed:  # ordered by offset
            if tensor.meets(other):
                if offset + size <= other.offset:
                    break
                offset = max(offset, other.end)
        tensor.offset = offset
        placed.append(tensor)
        placed.sort(key=lambda t: t.offset)
        total = max(total, offset + size)
    return total


def _plan_symbolic(tensors: Sequence[Tensor]) -> Size:
    """One plan for all sizes: of those that several cases lead to, the one that is never far from the plan for a case alone."""
    cases = _cases(tensors)
    alone = [_plan_static([Tensor(evaluate(t.size, case), t.first, t.last) for t in tensors]) for case in cases]
    found: list[tuple[float, int, Size, list[Size]]] = []
    for number, case in enumerate(cases):
        total = _place_for(tensors, case)
        worst = max(evaluate(total, c) / max(int(best), ALIGNMENT) for c, best in zip(cases, alone, strict=True))
        found.append((worst, number, total, [t.offset for t in tensors]))
        if worst <= _CLOSE:
            break
    _, _, total, offsets = min(found, key=lambda plan: plan[:2])
    for tensor, offset in zip(tensors, offsets, strict=True):
        tensor.offset = offset
    return total


_CLOSE = 1.02
"""A plan that needs at most that many times the memory of plans for single cases is not improved further."""
_MOST_CASES = 9


def _cases(tensors: Sequence[Tensor]) -> list[dict[str, int]]:
    """Values of the symbols: typical ones, all small, all large, and one small or large among others."""
    names, ranges = sorted({s for t in tensors for s in symbols_of(t.size)}), Ranges.current()
    typical = {name: ranges.of(name).typical for name in names}
    small = {name: min(max(ranges.of(name).low, 1), ranges.of(name).high) for name in names}
    large = {name: min(8 * max(typical[name], 1), ranges.of(name).high) for name in names}
    found = [typical, small, large]
    for name in names:
        found += [{**typical, name: small[name]}, {**small, name: large[name]}]
    return list({tuple(case.items()): case for case in found}.values())[:_MOST_CASES]


def _place_for(tensors: Sequence[Tensor], case: Mapping[str, int]) -> Size:
    """Greedy by the sizes of a case: each tensor at the lowest end of one that is alive with it where it is proved to be free; where it is
    proved nowhere, behind all of these."""

    def at(size: Size) -> int:
        return evaluate(size, case)

    placed: list[Tensor] = []
    for tensor in sorted(tensors, key=lambda t: (-at(t.size), t.first)):
        others = [other for other in placed if tensor.meets(other)]
        tensor.offset = _free_place(align(tensor.size), others, at)
        placed.append(tensor)
    return _largest(t.end for t in placed)


def _free_place(size: Size, others: Sequence[Tensor], at: Callable[[Size], int]) -> Size:
    ends = [other.end for other in others]
    for place in sorted(dict.fromkeys([0, *ends]), key=at):
        if all(_at_most(place + size, o.offset) or _at_most(o.end, place) for o in others):
            return place
    return _largest(ends)


def _at_most(a: Size, b: Size) -> bool:
    return proves(lambda: a <= b)


def _largest(sizes: Iterable[Size]) -> Size:
    return maximum(0, *dict.fromkeys(sizes))
