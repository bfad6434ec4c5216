"""Memory planning: offsets of the tensors between kernels in one arena; tensors with disjoint live ranges share memory.

Sizes, offsets and the size of the arena may be expressions over symbols: one plan holds for all sizes.
"""

import operator
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import overload

from relayc.runtime.artifact import ALIGNMENT
from relayc.symbolic import Atom, Dim, Ranges, Size, ceil_div, evaluate, factors, is_long, maximum, proves, symbols_of


@overload
def align(size: int) -> int: ...
@overload
def align(size: Size) -> Size: ...
def align(size: Size) -> Size:
    """A size rounded up to ALIGNMENT."""
    return ceil_div(size, ALIGNMENT) * ALIGNMENT


@dataclass(eq=False)
class Tensor:
    """A tensor to place: its size in bytes, its live range (first and last step, inclusive), and its offset once it is placed."""

    size: Size
    first: int
    last: int
    offset: Size = 0


def plan(tensors: Sequence[Tensor]) -> Size:
    """Assigns each tensor an offset, largest first, in the lowest gap that no simultaneously live tensor occupies; returns the arena's
    size.

    The algorithm is greedy-by-size (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020).
    """
    if any(isinstance(t.size, Dim) for t in tensors):
        return _plan_symbolic(tensors)
    return _place([(int(t.size), t.first, t.last) for t in tensors], tensors)


def _place(wanted: Sequence[tuple[int, int, int]], tensors: Sequence[Tensor] = ()) -> int:
    """The size of the arena for tensors with given (size, first step, last step); sets the offsets of `tensors`."""
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first and last step, ordered by offset
    total = 0
    for number in sorted(range(len(wanted)), key=lambda i: (-wanted[i][0], wanted[i][1])):
        bytes_, first, last = wanted[number]
        size, offset = align(bytes_), 0
        for low, high, begin, end in placed:
            if begin <= last and first <= end:
                if offset + size <= low:
                    break
                offset = max(offset, high)
        insort(placed, (offset, offset + size, first, last))
        total = max(total, offset + size)
        if tensors:
            tensors[number].offset = offset
    return total


def _plan_symbolic(tensors: Sequence[Tensor]) -> Size:
    """One plan for all sizes: the candidate plan, from several cases of sizes, that is never far from the plan for a single case.

    If sizes are hard to compare, offsets become ever longer expressions: then tensors share slots.
    """
    cases = _cases(tensors)
    known = _Known(cases)
    alone = [_place([(known.at(t.size)[i], t.first, t.last) for t in tensors]) for i in range(len(cases))]
    found: list[tuple[float, int, Size, list[Size]]] = []
    for number in range(len(cases)):
        total = _place_for(tensors, known, number)
        if total is None:
            total = _place_in_slots(tensors, known, number)
        worst = max(size / max(best, ALIGNMENT) for size, best in zip(known.at(total), alone, strict=True))
        found.append((worst, number, total, [t.offset for t in tensors]))
        if worst <= _CLOSE:
            break
    _, _, total, offsets = min(found, key=lambda plan: plan[:2])
    for tensor, offset in zip(tensors, offsets, strict=True):
        tensor.offset = offset
    return total


_CLOSE = 1.02
"""A plan within this factor of the memory of plans for single cases is not improved further."""
_MOST_CASES = 9


def _cases(tensors: Sequence[Tensor]) -> list[dict[str, int]]:
    """Values of the symbols: all typical, all small, all large, and one small or large among typical ones."""
    names, ranges = sorted({s for t in tensors for s in symbols_of(t.size)}), Ranges.current()
    typical = {name: ranges.of(name).typical for name in names}
    small = {name: max(ranges.of(name).low, 1) for name in names}
    large = {name: min(8 * max(typical[name], 1), ranges.of(name).high) for name in names}
    found = [typical, small, large]
    for name in names:
        found += [{**typical, name: small[name]}, {**small, name: large[name]}]
    return list({tuple(case.items()): case for case in found}.values())[:_MOST_CASES]


class _Known:
    """Cached facts about sizes: similar layers ask the same questions.

    Attributes:
      at: the values of a size in each case.
      aligned, sum: of sizes.
      at_most: whether a <= b is proved.
    """

    def __init__(self, cases: Sequence[Mapping[str, int]]) -> None:
        self._cases: list[tuple[Mapping[str, int], dict[Atom, int]]] = [(case, {}) for case in cases]
        self.at: Callable[[Size], tuple[int, ...]] = cache(self._at)
        self.aligned: Callable[[Size], Size] = cache(align)
        self.sum: Callable[[Size, Size], Size] = cache(operator.add)
        self.at_most: Callable[[Size, Size], bool] = cache(self._at_most)

    def _at(self, size: Size) -> tuple[int, ...]:
        return tuple(evaluate(size, case, atoms) for case, atoms in self._cases)

    def _at_most(self, a: Size, b: Size) -> bool:
        # A relation that is false in one of the cases needs no proof.
        return all(x <= y for x, y in zip(self.at(a), self.at(b), strict=True)) and proves(lambda: a <= b)

    def largest(self, sizes: Iterable[Size]) -> Size:
        """The maximum of sizes. A size proved to be at most another one is omitted first: `at_most` caches the proof."""
        kept: list[Size] = []
        for size in dict.fromkeys(sizes):
            if not any(self.at_most(size, other) for other in kept):
                kept = [other for other in kept if not self.at_most(other, size)] + [size]
        return maximum(0, *kept)


def _place_for(tensors: Sequence[Tensor], known: _Known, case: int) -> Size | None:
    """Greedy by the sizes of a case: each tensor at the lowest end of a simultaneously live tensor where it is proved to fit; if there is
    no such place, after all of these. None if an offset becomes a long expression."""
    placed: list[tuple[Tensor, Size]] = []  # with their ends
    for tensor in sorted(tensors, key=lambda t: (-known.at(t.size)[case], t.first)):
        first, last = tensor.first, tensor.last
        others = [(other.offset, end) for other, end in placed if other.first <= last and first <= other.last]
        size = known.aligned(tensor.size)
        tensor.offset = _free_place(size, list(dict.fromkeys(others)), known, case)
        if is_long(tensor.offset):
            return None
        placed.append((tensor, known.sum(tensor.offset, size)))
    return known.largest(end for _, end in placed)


def _free_place(size: Size, others: Sequence[tuple[Size, Size]], known: _Known, case: int) -> Size:
    ends = [end for _, end in others]
    for place in sorted(dict.fromkeys([0, *ends]), key=lambda end: known.at(end)[case]):
        end = known.sum(place, size)
        if all(known.at_most(end, low) or known.at_most(high, place) for low, high in others):
            return place
    return known.largest(ends)


def _place_in_slots(tensors: Sequence[Tensor], known: _Known, case: int) -> Size:
    """Adjacent slots, each as large as the largest of its tensors, whose live ranges are disjoint. Tensors come by their sizes of a case,
    largest first, so that no slot grows in this case: each goes to the slot whose size remains the shortest expression."""
    slots: list[tuple[Size, list[Tensor]]] = []
    for tensor in sorted(tensors, key=lambda t: (-known.at(t.size)[case], t.first)):
        free = [i for i, (_, users) in enumerate(slots) if all(u.last < tensor.first or tensor.last < u.first for u in users)]
        grown = {i: maximum(slots[i][0], known.aligned(tensor.size)) for i in free}
        if grown:
            best = min(grown, key=lambda i: factors(grown[i]))
            slots[best] = grown[best], [*slots[best][1], tensor]
        else:
            slots.append((known.aligned(tensor.size), [tensor]))
    total: Size = 0
    for size, users in slots:
        for tensor in users:
            tensor.offset = total
        total = total + size
    return total
