"""Integers that are positions: tensors whose elements follow from their indices, such as a broadcast arange with an offset.

With constant sizes such tensors are folded to constants; with symbolic sizes this analysis replaces folding.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.names import build
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.slices import slice_bounds
from relayc.dialects.relay.transform import permutation, slices
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.graph.reshapes import reshape_to
from relayc.pipelines.graph.rewrite import Rewriter
from relayc.symbolic import FAR, Dim, Size, maximum, minimum, proves

_MOST_ELEMENTS = 1 << 16
"""Elements of a constant that are looked at."""


@dataclass(frozen=True)
class Positions:
    """Integers first + sum(steps[d] * i[d]) at the index i of a tensor of a shape."""

    shape: tuple[Size, ...]
    first: Size
    steps: tuple[Size, ...]

    @property
    def ends(self) -> tuple[Size, Size]:
        """Bounds of the positions, if there are any."""
        least = most = self.first
        for step, n in zip(self.steps, self.shape, strict=True):
            low, high = _span(step, step * (n - 1))
            least, most = least + low, most + high
        return least, most

    @property
    def dimensions(self) -> list[int]:
        """The dimensions along which they differ."""
        return [i for i, (step, n) in enumerate(zip(self.steps, self.shape, strict=True)) if step != 0 and n != 1]

    def is_within(self, size: Size) -> bool:
        """Whether all are proved to be positions in a dimension of that size."""
        least, most = self.ends
        return proves(lambda: least >= 0 and most < size)

    def plus(self, other: "Positions") -> "Positions":
        """The sums, element by element."""
        return Positions(self.shape, self.first + other.first, tuple(a + b for a, b in zip(self.steps, other.steps, strict=True)))

    def minus(self, other: "Positions") -> "Positions":
        """The differences, element by element."""
        return Positions(self.shape, self.first - other.first, tuple(a - b for a, b in zip(self.steps, other.steps, strict=True)))

    def broadcast(self, shape: tuple[Size, ...]) -> "Positions":
        """The positions broadcast to a shape."""
        added = len(shape) - len(self.shape)
        kept = (0 if n == 1 else step for step, n in zip(self.steps, self.shape, strict=True))
        return Positions(shape, self.first, ((0,) * added + tuple(kept)))


def _span(step: Size, last: Size) -> tuple[Size, Size]:
    """The least and the largest of 0, step, ..., last."""
    if proves(lambda: step >= 0):
        return 0, last
    return (last, 0) if proves(lambda: step <= 0) else (minimum(0, last), maximum(0, last))


def positions_of(value: ir.Value, rw: Rewriter) -> Positions | None:
    """The positions in a tensor of integers of 32 bits or more; None if unknown to contain positions. None of them overflows."""
    type_ = TensorType.of(value)
    if not type_.is_known or not _holds_positions(type_):
        return None
    array = rw.array(value)
    if array is not None:
        return _constant(array)
    for name, read in _READERS.items():
        op = rw.producer(value, name)
        if op is not None:
            return read(op, type_.sizes, rw)
    return None


def _holds_positions(type_: TensorType) -> bool:
    dtype = numpy_dtype(type_.dtype)
    return np.issubdtype(dtype, np.integer) and dtype.itemsize >= 4


def _constant(array: np.ndarray) -> Positions | None:
    if not 0 < array.size <= _MOST_ELEMENTS:
        return None
    first = int(array.flat[0])
    steps = [int(array.take(1, axis).flat[0]) - first if n > 1 else 0 for axis, n in enumerate(array.shape)]
    if max(map(abs, (first, *steps))) > FAR:
        return None  # no tensor has such a position
    expected = np.full(array.shape, first, np.int64)
    for axis, step in enumerate(steps):
        expected += step * np.arange(array.shape[axis]).reshape([-1] + [1] * (array.ndim - axis - 1))
    return Positions(array.shape, first, tuple(steps)) if np.array_equal(array, expected) else None


def _cast(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    return positions_of(op.data, rw)


def _arange(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    if not all(isinstance(v, Dim) or float(v).is_integer() for v in (op.start, op.step)):
        return None
    start, step = (v if isinstance(v, Dim) else int(v) for v in (op.start, op.step))
    return Positions(shape, start, (step,))


def _sizes(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    return Positions(shape, op.values[0], (0,)) if len(op.values) == 1 else None


def _reshape(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    found = positions_of(op.data, rw)
    if found is None or [n for n in found.shape if n != 1] != [n for n in shape if n != 1]:
        return None
    steps = iter(step for step, n in zip(found.steps, found.shape, strict=True) if n != 1)
    return Positions(shape, found.first, tuple(0 if n == 1 else next(steps) for n in shape))


def _broadcast_to(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    found = positions_of(op.data, rw)
    return None if found is None else found.broadcast(shape)


def _transpose(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    found = positions_of(op.data, rw)
    return None if found is None else Positions(shape, found.first, tuple(found.steps[a] for a in permutation(op.axes, len(shape))))


def _strided_slice(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    found = positions_of(op.data, rw)
    if found is None:
        return None
    first, steps = found.first, list(found.steps)
    for axis, (begin, end, stride) in slices(op, len(shape)).items():
        first = first + slice_bounds(found.shape[axis], begin, end, stride)[0] * steps[axis]
        steps[axis] = steps[axis] * stride
    return Positions(shape, first, tuple(steps))


def _add(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    a, b = positions_of(op.lhs, rw), positions_of(op.rhs, rw)
    return None if a is None or b is None else a.broadcast(shape).plus(b.broadcast(shape))


def _subtract(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    a, b = positions_of(op.lhs, rw), positions_of(op.rhs, rw)
    return None if a is None or b is None else a.broadcast(shape).minus(b.broadcast(shape))


def _gather(op: Op, shape: tuple[Size, ...], rw: Rewriter) -> Positions | None:
    data = positions_of(op.data, rw)
    return Positions(shape, data.first, (0,) * len(shape)) if data is not None and not data.dimensions else None


_READERS: dict[str, Callable[[Op, tuple[Size, ...], Rewriter], Positions | None]] = {
    "cast": _cast,
    "arange": _arange,
    "sizes": _sizes,
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "transpose": _transpose,
    "strided_slice": _strided_slice,
    "add": _add,
    "subtract": _subtract,
    "take": _gather,
    "gather": _gather,
}


def columns_of(value: ir.Value, axis: int, rw: Rewriter) -> list[Positions] | None:
    """The positions in an integer tensor at each index along a dimension; None if some are not positions."""
    type_ = TensorType.of(value)
    transpose, joined = rw.producer(value, "transpose"), rw.producer(value, "concatenate")
    if transpose is not None:
        axes = permutation(transpose.axes, type_.rank)
        found = columns_of(transpose.data, axes[axis], rw)
        # The other dimensions in the order of the transpose, counted without the one that is gone.
        order = [a - (a > axes[axis]) for i, a in enumerate(axes) if i != axis]
        return None if found is None else [Positions(_permuted(p.shape, order), p.first, _permuted(p.steps, order)) for p in found]
    if joined is not None and normalize_axis(joined.axis, type_.rank) == axis:
        parts = [columns_of(part, axis, rw) for part in joined.data]
        return None if any(part is None for part in parts) else [p for part in parts for p in part or ()]
    whole = positions_of(value, rw)
    if whole is None or not isinstance(whole.shape[axis], int):
        return None
    shape, steps = (x[:axis] + x[axis + 1 :] for x in (whole.shape, whole.steps))
    return [Positions(shape, whole.first + whole.steps[axis] * i, steps) for i in range(whole.shape[axis])]


def _permuted(values: Sequence[Size], order: Sequence[int]) -> tuple[Size, ...]:
    return tuple(values[i] for i in order)


def read_at(data: ir.Value, at: Mapping[int, Positions], first: int, shape: tuple[Size, ...]) -> ir.Value | None:
    """data indexed by positions in some of its dimensions, as slices of it.

    Args:
      at: what to read, by dimension of data; all of one shape.
      first: the dimension of the result where those of the positions begin; the other dimensions of data are around.
      shape: of the result.

    Returns None if the result is no part of data, seen with its dimensions in another order and broadcast.
    """
    source = TensorType.of(data)
    if not source.is_known or 0 in shape or not all(p.is_within(source.sizes[axis]) for axis, p in at.items()):
        return None
    used = [d for p in at.values() for d in p.dimensions]
    if len(used) != len(set(used)) or any(len(p.dimensions) > 1 or any(p.steps[d] != 1 for d in p.dimensions) for p in at.values()):
        return None
    # Dimensions of data in the order of the result; dimensions read at a single position come first, because their size is 1.
    rank = len(next(iter(at.values())).shape)
    others = iter([d for d in range(len(shape)) if not first <= d < first + rank])
    place = {axis: -1 for axis in range(source.rank)}
    for axis in place:
        if axis not in at:
            place[axis] = next(others)
        elif at[axis].dimensions:
            place[axis] = first + at[axis].dimensions[0]
    part = _slice(data, {axis: (at[axis].first, 1) for axis, d in place.items() if d < 0})
    order = sorted(place, key=lambda axis: place[axis])
    if order != sorted(order):
        part = build("transpose", part, axes=order)
    # The slices come last, so that they fuse with their users.
    part = reshape_to(part, _spread({d: source.sizes[axis] for axis, d in place.items()}, len(shape)))
    part = _slice(part, {place[axis]: (p.first, shape[place[axis]]) for axis, p in at.items() if place[axis] >= 0})
    return part if TensorType.of(part).shape == shape else build("broadcast_to", part, shape=shape)


def _spread(sizes: Mapping[int, Size], rank: int) -> list[Size]:
    return [sizes.get(d, 1) for d in range(rank)]


def _slice(data: ir.Value, parts: Mapping[int, tuple[Size, Size]]) -> ir.Value:
    """Of each dimension the first position and how many there are."""
    parts = {axis: (begin, n) for axis, (begin, n) in parts.items() if begin != 0 or n != TensorType.of(data).shape[axis]}
    if not parts:
        return data
    begin, end = zip(*((b, b + n) for b, n in parts.values()), strict=True)
    return build("strided_slice", data, begin=begin, end=end, strides=(1,) * len(parts), axes=tuple(parts))


def computed(positions: Positions, dtype: str) -> ir.Value | None:
    """A tensor of positions that change along one dimension at most, computed from the sizes."""
    varying = positions.dimensions
    if not varying:
        made = build("sizes", values=(positions.first,), dtype=dtype)
    elif len(varying) == 1 and isinstance(step := positions.steps[varying[0]], int):
        count = positions.shape[varying[0]]
        made = build("arange", start=positions.first, stop=positions.first + step * count, step=step, dtype=dtype)
    else:
        return None
    made = reshape_to(made, _spread({d: positions.shape[d] for d in varying}, len(positions.shape)))
    return made if TensorType.of(made).shape == positions.shape else build("broadcast_to", made, shape=positions.shape)
