"""Compute rules of regions of images: vision.roi_align, vision.roi_pool."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import arith, linalg, math
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.types import TensorType
from relayc.dialects.relay.vision import MOST_SAMPLES
from relayc.dialects.relay.window import per_axis
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator, narrowed
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    empty,
    extract,
    fill,
    identity,
    index_constant,
    operand_type,
    parallel,
    reduction,
    result_type,
)
from relayc.pipelines.te.rules.literal import index_of_float, integer_of, number
from relayc.pipelines.te.rules.loops import insert, loop, nest
from relayc.pipelines.te.rules.scalar import both
from relayc.symbolic import Size


@dataclass(frozen=True)
class _Part:
    """One axis of a part of a region: its start and length, as scalars of `dtype`."""

    begin: Value
    length: Value
    dtype: str

    def samples(self) -> Value:
        """Number of its samples, rounded up."""
        whole = math.ceil(self.length)
        zero, most = (scalar.constant(float(n), self.dtype) for n in (0, MOST_SAMPLES))
        whole = scalar.select(scalar.compare("gt", whole, zero, self.dtype), whole, zero)
        return scalar.select(scalar.compare("lt", whole, most, self.dtype), whole, most)

    def position(self, sample: Value, count: Value) -> Value:
        """The position of a sample of `count` evenly distributed ones; both are scalars of `dtype`."""
        middle = scalar.add(sample, scalar.constant(0.5, self.dtype), self.dtype)
        return scalar.add(self.begin, arith.divf(arith.mulf(middle, self.length), count), self.dtype)


def _bounded(x: Value, size: Size, dtype: str) -> Value:
    """A float clipped to the positions of an axis; 0 for NaN."""
    zero, last = scalar.constant(0.0, dtype), number(size - 1, dtype)
    x = scalar.select(scalar.compare("gt", x, zero, dtype), x, zero)
    return scalar.select(scalar.compare("lt", x, last, dtype), x, last)


def _image(first: Value, count: Size, dtype: str) -> Value:
    """The image number of a region."""
    return index_of_float(_bounded(first, count, dtype))


def _part(begin: Value, end: Value, index: Value, parts: int, op: Op, dtype: str) -> _Part:
    """Part `index` of the `parts` of a region along an axis, between two corners."""
    scale, shift = (scalar.constant(v, dtype) for v in (op.spatial_scale, 0.5 if op.aligned else 0.0))
    first, last = (scalar.subtract(arith.mulf(x, scale), shift, dtype) for x in (begin, end))
    length = scalar.subtract(last, first, dtype)
    if not op.aligned:
        one = scalar.constant(1.0, dtype)
        length = scalar.select(scalar.compare("gt", length, one, dtype), length, one)
    length = arith.divf(length, scalar.constant(float(parts), dtype))
    return _Part(scalar.add(first, arith.mulf(integer_of(index, dtype), length), dtype), length, dtype)


@dataclass(frozen=True)
class _Sampled:
    """Data sampled between its elements, in `wide`."""

    data: Value
    dtype: str
    wide: str
    sizes: Sequence[Size]
    mode: str

    @property
    def largest(self) -> bool:
        """Whether a part is the maximum of its samples."""
        return self.mode != "avg"

    def at(self, image: Value, channel: Value, y: Value, x: Value) -> Value:
        """The sample at a position: 0 if it is more than one element outside."""
        wide = self.wide
        taps, flags = [], []
        for position, size in zip((y, x), self.sizes, strict=True):
            low, high = scalar.constant(-1.0, wide), number(size, wide)
            flags.append(both(scalar.compare("ge", position, low, wide), scalar.compare("le", position, high, wide)))
            inside = _bounded(position, size, wide)
            below = math.floor(inside)
            upper = scalar.subtract(inside, below, wide)
            first = index_of_float(below)
            second = arith.minsi(arith.addi(first, index_constant(1)), index_constant(size - 1))
            taps.append([(first, scalar.subtract(scalar.constant(1.0, wide), upper, wide)), (second, upper)])
        total = None
        for i, p in taps[0]:
            for j, q in taps[1]:
                element = scalar.convert(extract(self.data, [image, channel, i, j]), self.dtype, wide)
                term = scalar.multiply(scalar.multiply(p, q, wide), element, wide)
                join = scalar.maximum if self.mode == "max_neighbor" else scalar.add
                total = term if total is None else join(total, term, wide)
        assert total is not None  # four neighbours
        return scalar.select(both(*flags), total, scalar.constant(0.0, wide))

    def joined(self, a: Value, b: Value) -> Value:
        return (scalar.maximum if self.largest else scalar.add)(a, b, self.wide)


@compute("vision_roi_align")
def roi_align(op: Op, data: Value, rois: Value) -> Value:
    source, out = operand_type(op), result_type(op)
    wide = accumulator(source.dtype)
    sampled = _Sampled(data, source.dtype, wide, source.sizes[2:], op.mode)
    if op.sample_ratio > 0 or op.most_samples is not None:
        return _side_by_side(op, sampled, rois, source, out)
    return _one_by_one(op, sampled, rois, source, out)


def _side_by_side(op: Op, sampled: _Sampled, rois: Value, source: TensorType, out: TensorType) -> Value:
    """Parts with a known maximum number of samples: two reduction loops, in which a part may skip iterations."""
    wide = sampled.wide
    most = op.sample_ratio if op.sample_ratio > 0 else op.most_samples
    sizes = per_axis(op.pooled_size, 2, "pooled_size")
    init = scalar.limits(wide)[0] if sampled.largest else 0.0

    def parts_and_counts(corners: Sequence[Value], at: Sequence[Value]) -> list[tuple[_Part, Value]]:
        """Each axis of a part of a region, and the number of its samples."""
        edges = [scalar.convert(v, source.dtype, wide) for v in corners]
        parts = [_part(edges[1 - i], edges[3 - i], at[i], sizes[i], op, wide) for i in range(2)]
        known = scalar.constant(float(op.sample_ratio), wide)
        return [(part, known if op.sample_ratio > 0 else part.samples()) for part in parts]

    def body(*values: Value) -> Value:
        _, image, *corners, acc = values
        _, channel, *at = (linalg.IndexOp(i).result for i in range(6))
        positions, flags = [], []
        for (part, count), i in zip(parts_and_counts(corners, at[:2]), at[2:], strict=True):
            sample = integer_of(i, wide)
            positions.append(part.position(sample, count))
            flags.append(scalar.compare("lt", sample, count, wide))
        number_of_image = _image(scalar.convert(image, source.dtype, wide), source.sizes[0], wide)
        found = sampled.at(number_of_image, channel, *positions)
        if op.sample_ratio <= 0:
            found = scalar.select(both(*flags), found, scalar.constant(init, wide))
        return sampled.joined(acc, found)

    samples = empty(TensorType((most, most), wide))
    maps = [affine_map(6, [dim(4), dim(5)]), *(affine_map(6, [dim(0), i]) for i in range(5))]
    result_map = affine_map(6, [dim(i) for i in range(4)])
    found = reduction([samples, *[rois] * 5], maps, fill(out.with_dtype(wide), init), result_map, body)
    if op.sample_ratio > 0 and sampled.largest:
        return narrowed(found, out, wide)

    def finished(total: Value, *corners: Value) -> Value:
        (_, rows), (_, columns) = parts_and_counts(corners, [linalg.IndexOp(i).result for i in (2, 3)])
        return scalar.convert(_joined_samples(total, rows, columns, sampled), wide, out.dtype)

    return parallel(out, [found, *[rois] * 4], finished, [identity(4), *(affine_map(4, [dim(0), i]) for i in range(1, 5))])


def _joined_samples(total: Value, rows: Value, columns: Value, sampled: _Sampled) -> Value:
    """The value of a part from the sum, or the maximum, of its samples and their numbers along both axes: 0 without samples."""
    zero, count = scalar.constant(0.0, sampled.wide), arith.mulf(rows, columns)
    if not sampled.largest:
        total = arith.divf(total, count)
    return scalar.select(scalar.compare("gt", count, zero, sampled.wide), total, zero)


def _region(rois: Value, r: Value, source: TensorType, wide: str) -> list[Value]:
    """Image and corners of a region."""
    return [scalar.convert(extract(rois, [r, index_constant(i)]), source.dtype, wide) for i in range(5)]


def _each_part(out: TensorType, element: Callable[[list[Value]], Value]) -> Value:
    """The tensor of element(indices), computed sequentially."""
    return nest(out.sizes, [empty(out)], lambda at, found: [insert(element(at), found, at)])[0]


def _one_by_one(op: Op, sampled: _Sampled, rois: Value, source: TensorType, out: TensorType) -> Value:
    """Parts with any number of samples, computed sequentially."""
    wide = sampled.wide
    parts = per_axis(op.pooled_size, 2, "pooled_size")
    zero, one = index_constant(0), index_constant(1)

    def element(at: list[Value]) -> Value:
        r, channel, *place = at
        first, *edges = _region(rois, r, source, wide)
        image = _image(first, source.sizes[0], wide)
        rows, columns = (_part(edges[1 - i], edges[3 - i], place[i], parts[i], op, wide) for i in range(2))
        count_of_rows, count_of_columns = rows.samples(), columns.samples()

        def row(i: Value, total: Value) -> list[Value]:
            y = rows.position(integer_of(i, wide), count_of_rows)

            def column(j: Value, total: Value) -> list[Value]:
                x = columns.position(integer_of(j, wide), count_of_columns)
                return [sampled.joined(total, sampled.at(image, channel, y, x))]

            return loop(zero, index_of_float(count_of_columns), one, [total], column)

        init = scalar.constant(scalar.limits(wide)[0] if sampled.largest else 0.0, wide)
        (total,) = loop(zero, index_of_float(count_of_rows), one, [init], row)
        return scalar.convert(_joined_samples(total, count_of_rows, count_of_columns, sampled), wide, out.dtype)

    return _each_part(out, element)


@compute("vision_roi_pool")
def roi_pool(op: Op, data: Value, rois: Value) -> Value:
    source, out = operand_type(op), result_type(op)
    wide = accumulator(source.dtype)
    parts = per_axis(op.pooled_size, 2, "pooled_size")
    one = index_constant(1)

    def element(at: list[Value]) -> Value:
        r, channel, *place = at
        first, *edges = _region(rois, r, source, wide)
        image = _image(first, source.sizes[0], wide)
        bounds = [_elements(edges[1 - i], edges[3 - i], place[i], parts[i], source.sizes[2 + i], op, wide) for i in range(2)]
        (top, bottom), (left, right) = bounds

        def row(i: Value, largest: Value) -> list[Value]:
            def column(j: Value, largest: Value) -> list[Value]:
                return [scalar.maximum(extract(data, [image, channel, i, j]), largest, source.dtype)]

            return loop(left, right, one, [largest], column)

        (found,) = loop(top, bottom, one, [scalar.constant(scalar.limits(source.dtype)[0], source.dtype)], row)
        some = both(*(arith.cmpi(arith.CmpIPredicate.slt, low, high) for low, high in bounds))
        return scalar.select(some, found, scalar.constant(0.0, source.dtype))

    return _each_part(out, element)


def _elements(begin: Value, end: Value, index: Value, parts: int, size: Size, op: Op, dtype: str) -> tuple[Value, Value]:
    """The first element of a part of a region along an axis, and the first one after it."""
    scale = scalar.constant(op.spatial_scale, dtype)
    first, last = (math.round(arith.mulf(x, scale)) for x in (begin, end))
    one = scalar.constant(1.0, dtype)
    length = scalar.add(scalar.subtract(last, first, dtype), one, dtype)
    length = scalar.select(scalar.compare("gt", length, one, dtype), length, one)
    step = arith.divf(length, scalar.constant(float(parts), dtype))
    low = math.floor(arith.mulf(integer_of(index, dtype), step))
    high = math.ceil(arith.mulf(scalar.add(integer_of(index, dtype), one, dtype), step))
    # One more position than there are elements: the end of the last one.
    return tuple(index_of_float(_bounded(scalar.add(x, first, dtype), size + 1, dtype)) for x in (low, high))
