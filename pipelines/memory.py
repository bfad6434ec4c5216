"""Memory planning: offsets in one arena for the tensors between kernels, so that tensors that are never alive together share memory.

Sizes, offsets and the size of the arena may be expressions over symbols: one plan holds for all sizes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from relayc.symbolic import Dim, Size, ceil_div, guess, maximum, proves

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
    """The same by typical sizes: each tensor at the lowest end of one that is alive with it where it is proved to be free; where it is
    proved nowhere, behind all of these."""
    placed: list[Tensor] = []
    for tensor in sorted(tensors, key=lambda t: (-guess(t.size), t.first)):
        others = [other for other in placed if tensor.meets(other)]
        tensor.offset = _free_place(align(tensor.size), others)
        placed.append(tensor)
    return _largest(t.end for t in placed)


def _free_place(size: Size, others: Sequence[Tensor]) -> Size:
    ends = [other.end for other in others]
    for place in sorted(dict.fromkeys([0, *ends]), key=guess):
        if all(_at_most(place + size, o.offset) or _at_most(o.end, place) for o in others):
            return place
    return _largest(ends)


def _at_most(a: Size, b: Size) -> bool:
    return proves(lambda: a <= b)


def _largest(sizes: Iterable[Size]) -> Size:
    return maximum(0, *dict.fromkeys(sizes))
