"""Memory planning: offsets in one arena for the tensors between kernels, so that tensors that are never alive together share memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from relayc.symbolic import Size

ALIGNMENT = 64
"""Alignment of every tensor in the arena and in the parameter blob: a cache line, and the widest vector."""


@overload
def align(size: int) -> int: ...
@overload
def align(size: Size) -> Size: ...
def align(size: Size) -> Size:
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(eq=False)
class Tensor:
    """A tensor to place: its size in bytes, the first and last step at which it is alive (inclusive), and its offset, once it is known."""

    size: int
    first: int
    last: int
    offset: int = 0


def plan(tensors: Sequence[Tensor]) -> int:
    """Gives each tensor an offset, largest first, each at the lowest gap that no tensor alive with it occupies; returns the arena's size.

    The rule is the greedy-by-size one (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020).
    """
    placed: list[Tensor] = []
    total = 0
    for tensor in sorted(tensors, key=lambda t: (-t.size, t.first)):
        size, offset = align(tensor.size), 0
        for other in placed:  # ordered by offset
            if other.first <= tensor.last and tensor.first <= other.last:
                if offset + size <= other.offset:
                    break
                offset = max(offset, other.offset + align(other.size))
        tensor.offset = offset
        placed.append(tensor)
        placed.sort(key=lambda t: t.offset)
        total = max(total, offset + size)
    return total
