"""Parts of an axis: begin:end:stride as in numpy, and the parts of a split, of sizes that may be expressions."""

import itertools
from typing import TYPE_CHECKING

from relayc.dialects.relay.base import RelayError, Sizes, View, check
from relayc.dialects.relay.conditions import require_at_least, require_divides
from relayc.dialects.relay.shapes import normalize_axis
from relayc.symbolic import FAR, Range, Ranges, Size, bounds, ceil_div, maximum, minimum, proves, symbols_of

if TYPE_CHECKING:
    from relayc.dialects.relay.transform import StridedSlice

_SLICE_MODES = ("end", "size")


def slice_bounds(size: Size, begin: Size, end: Size | None, stride: int) -> tuple[Size, Size]:
    """(start, number of elements) of begin:end:stride in an axis of `size`, clamped as in numpy; stride is not 0.

    A begin or an end of 2^31 - 1 or more is beyond all sizes, one of -(2^31 - 1) or less before them. What is not proved to be within the
    axis is clamped by min and max; what is not proved to count from the front is told apart by them too.
    """
    if isinstance(size, int) and isinstance(begin, int) and (end is None or isinstance(end, int)):
        picked = range(size)[begin:end:stride]
        return picked.start, len(picked)
    forwards = stride > 0
    lowest = 0 if forwards else -1
    highest: Size = size if forwards else size - 1
    start = _clamped(begin, size, lowest, highest)
    stop = (highest if forwards else lowest) if end is None else _clamped(end, size, lowest, highest)
    distance = stop - start if forwards else start - stop
    if stop == size and forwards and not _is_far(begin):
        # The same as size - min(begin, size), in a simpler form.
        counted = _counted(begin, size, lowest)
        distance = size - counted if counted is not None else distance
    return start, maximum(0, ceil_div(distance, abs(stride)))


def _is_far(index: Size) -> bool:
    return isinstance(index, int) and abs(index) >= FAR


def _counted(index: Size, size: Size, lowest: int) -> Size | None:
    """An index counted from the front, 0 or more; None if the sign of the index is unknown."""
    if proves(lambda: index >= 0):
        return index
    if proves(lambda: index < 0):
        return maximum(lowest, index + size)
    return maximum(lowest, index) if _is_before_all_if_negative(index, size, lowest) else None


def _clamped(index: Size, size: Size, lowest: int, highest: Size) -> Size:
    if _is_far(index):
        return highest if index > 0 else lowest
    counted = _counted(index, size, lowest)
    if counted is None:
        # size is added where the index is negative: max(0, min(1, -index)) is 1 there, and 0 elsewhere.
        counted = maximum(lowest, index + size * maximum(0, minimum(1, -index)))
    return minimum(counted, highest)


def _is_before_all_if_negative(index: Size, size: Size, lowest: int) -> bool:
    """Whether a negative index is clamped to the first element from either side: n - 1 in an axis of n, which is -1 where that is empty."""
    names = symbols_of(index)
    if len(names) != 1:
        return False
    (name,) = names
    current = Ranges.current()
    known = current.of(name)
    # The values of its only symbol for which it is negative: for an increasing index, those up to a limit.
    low = known.low
    for high in range(low, min(low + 4, known.high)):
        with Ranges({**current, name: Range(high + 1, known.high)}):
            if bounds(index)[0] < 0:
                continue
        with Ranges({**current, name: Range(low, high)}):
            return bounds(index + size)[1] <= lowest
    return False


def slices(op: "View | StridedSlice", rank: int) -> dict[int, tuple[Size, Size | None, int]]:
    """(begin, end, stride) by axis of a strided_slice with these attributes. Raises RelayError if they do not match the rank."""
    n = len(op.begin)
    axes = tuple(range(n)) if op.axes is None else tuple(normalize_axis(a, rank, "axes") for a in op.axes)
    check(op.slice_mode in _SLICE_MODES, "slice_mode", f"one of {', '.join(_SLICE_MODES)}", op.slice_mode)
    check(len(axes) == n and len(set(axes)) == n and n <= rank, "axes", f"{n} different axes of {rank}, one for each begin", axes)
    check(len(op.end) == n, "end", f"{n} values, one for each begin", op.end)
    strides = tuple(op.strides) + (1,) * (n - len(op.strides))
    check(len(strides) == n and 0 not in strides, "strides", f"at most {n} values other than 0", op.strides)
    if op.slice_mode == "size":
        check(set(strides) <= {1}, "strides", "1 with slice_mode size", op.strides)
        return {a: (b, _end_of(b, size), 1) for a, b, size in zip(axes, op.begin, op.end, strict=True)}
    return {a: (b, e, s) for a, b, e, s in zip(axes, op.begin, op.end, strides, strict=True)}


def _end_of(begin: Size, size: Size) -> Size | None:
    """The end of `size` elements from `begin`, None for the end of the axis."""
    if size == -1:
        return None
    end = begin + size
    if proves(lambda: begin >= 0) or proves(lambda: end < 0):
        return end
    # An end of 0 reached from a begin counted from the end means the end itself.
    if proves(lambda: begin < 0) and proves(lambda: end >= 0):
        return None
    raise RelayError(f"begin: expected one that is known to count from the front with slice_mode size, found {begin} and size {size}")


def split_bounds(size: Size, indices_or_sections: int | Sizes) -> list[tuple[Size, Size]]:
    """(begin, end) of each part of a split axis. Raises RelayError if the sections do not divide it or the indices do not ascend."""
    what = "indices_or_sections"
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        check(n >= 1, what, f"a divisor of {size}", n)
        section = require_divides(n, size, what, f"a divisor of {size}", n)
        assert section is not None
        return [(i * section, (i + 1) * section) for i in range(n)]
    edges = [0, *indices_or_sections, size]
    for begin, end in itertools.pairwise(edges):
        require_at_least(begin, end, what, f"ascending indices in [0, {size}]", tuple(map(str, indices_or_sections)))
    return list(itertools.pairwise(edges))
