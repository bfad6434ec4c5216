"""Compute rules of poolings: nn.max_pool*, nn.avg_pool*, nn.global_*_pool2d, nn.adaptive_*_pool*."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import ml_dtypes
import numpy as np

from relayc.dialects.mlir import arith, ir, linalg
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.images import image_layout
from relayc.dialects.relay.layout import Layout
from relayc.dialects.relay.pool import PoolGeometry
from relayc.dialects.relay.types import DTYPES, TensorType
from relayc.dialects.relay.window import SPATIAL, extent
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
    index_constant,
    operand_type,
    parallel,
    reduce,
    reduction,
    result_type,
    shape,
)
from relayc.pipelines.te.rules.literal import number
from relayc.pipelines.te.rules.window import pad
from relayc.symbolic import Size, bounds, ceil_div, exact, maximum

NAMED_MAX = {
    "NCW": linalg.PoolingNcwMaxOp,
    "NWC": linalg.PoolingNwcMaxOp,
    "NCHW": linalg.PoolingNchwMaxOp,
    "NHWC": linalg.PoolingNhwcMaxOp,
    "NDHWC": linalg.PoolingNdhwcMaxOp,
}
NAMED_SUM = {
    "NCW": linalg.PoolingNcwSumOp,
    "NWC": linalg.PoolingNwcSumOp,
    "NCHW": linalg.PoolingNchwSumOp,
    "NHWC": linalg.PoolingNhwcSumOp,
    "NDHWC": linalg.PoolingNdhwcSumOp,
}
"""linalg's named poolings by layout; others are a linalg.generic."""


@dataclass(frozen=True)
class _Kind:
    """How the elements of a window become one: `combine` joins two of them, `named` are linalg's operations for it."""

    combine: Callable[[Value, Value, str], Value]
    named: dict[str, type]

    def first(self, dtype: str) -> float | int:
        """The number that changes nothing."""
        if self.combine is scalar.maximum:
            return scalar.limits(dtype)[0]
        return 0.0 if scalar.is_float(dtype) else 0


_MAX, _SUM = _Kind(scalar.maximum, NAMED_MAX), _Kind(scalar.add, NAMED_SUM)


def _kind(op: Op) -> _Kind:
    return _MAX if "max" in type(op)._op_name else _SUM


def _lowest_number(dtype: str) -> float | int:
    """The lowest finite number of an element type, the maximum of a window that is entirely in the padding."""
    if not scalar.is_float(dtype):
        return scalar.limits(dtype)[0]
    return float(ml_dtypes.finfo(DTYPES[dtype]).min)


def _may_miss(g: PoolGeometry, sizes: Sequence[Size], out: Sequence[Size]) -> bool:
    """Whether a window may be entirely in the padding."""
    for i, axis in enumerate(g.spatial):
        before = g.pads[i][0]
        last_start = (out[g.layout.index(axis)] - 1) * g.strides[i] - before
        if before >= extent(g.pool_size[i], g.dilation[i]) or bounds(sizes[i] - last_start)[0] <= 0:
            return True
    return False


def _reachable(g: PoolGeometry, sizes: Sequence[Size], out: Sequence[Size]) -> PoolGeometry:
    """The same pooling without the taps that are never inside the data (of `sizes` along the spatial axes; result of shape `out`).

    Exporters use windows far larger than the data, with ceil_mode, to cover all of it.
    """
    kernel, pads = list(g.pool_size), list(g.pads)
    for i, axis in enumerate(g.spatial):
        size, windows, before = sizes[i], out[g.layout.index(axis)], g.pads[i][0]
        if not isinstance(size, int) or not isinstance(windows, int):
            continue
        last_start = (windows - 1) * g.strides[i] - before
        first = max(0, -(last_start // g.dilation[i]))
        end = min(g.pool_size[i], ceil_div(size + before, g.dilation[i]))
        if first < end:
            kernel[i], pads[i] = end - first, (before - first * g.dilation[i], 0)
    return replace(g, pool_size=tuple(kernel), pads=tuple(pads))


def _padded(data: Value, g: PoolGeometry, out: Sequence[Size], value: float | int, dtype: str) -> Value:
    """`data` with its padding, and after it the overhang of the last windows (ceil_mode)."""
    low: list[Size] = [0] * g.layout.rank
    high = list(low)
    for i, axis in enumerate(g.spatial):
        at = g.layout.index(axis)
        before, after = g.pads[i]
        hangs_over = (out[at] - 1) * g.strides[i] + extent(g.pool_size[i], g.dilation[i]) - shape(data)[at] - before
        low[at], high[at] = before, maximum(after, hangs_over)
    return pad(data, low, high, value, dtype)


def _windows(data: Value, g: PoolGeometry, out: TensorType, operand: str, kind: _Kind) -> Value:
    """Reduces the elements of each window of padded `data`."""
    window = empty(TensorType(g.pool_size, out.dtype))
    destination = fill(out, kind.first(out.dtype))
    if g.layout.text in kind.named and not scalar.is_unsigned(operand):
        numbers = {name: ir.DenseElementsAttr.get(np.array(v, np.int64)) for name, v in (("strides", g.strides), ("dilations", g.dilation))}
        op = kind.named[g.layout.text]([destination.type], [data, window], [destination], **numbers)
        linalg.fill_builtin_region(op.operation)
        return op.results[0]
    rank, loops = g.layout.rank, g.layout.rank + len(g.spatial)
    at = [dim(i) for i in range(rank)]
    for i, axis in enumerate(g.spatial):
        position = g.layout.index(axis)
        at[position] = dim(position) * g.strides[i] + dim(rank + i) * g.dilation[i]
    maps = [affine_map(loops, at), affine_map(loops, [dim(i) for i in range(rank, loops)])]

    def body(x: Value, _: Value, acc: Value) -> Value:
        return kind.combine(acc, scalar.convert(x, operand, out.dtype), out.dtype)

    return reduction([data, window], maps, destination, affine_map(loops, [dim(i) for i in range(rank)]), body)


@compute("nn_max_pool1d", "nn_max_pool2d", "nn_max_pool3d")
def max_pool(op: Op, data: Value) -> Value:
    return _windowed_max(op.geometry(), data, result_type(op))


def _windowed_max(g: PoolGeometry, data: Value, out: TensorType) -> Value:
    wide = accumulator(out.dtype)
    sizes = [shape(data)[g.layout.index(axis)] for axis in g.spatial]
    outside = _lowest_number(out.dtype) if _may_miss(g, sizes, out.sizes) else _MAX.first(out.dtype)
    g = _reachable(g, sizes, out.sizes)
    padded = _padded(data, g, out.sizes, outside, out.dtype)
    return narrowed(_windows(padded, g, out.with_dtype(wide), out.dtype, _MAX), out, wide)


@compute("nn_avg_pool1d", "nn_avg_pool2d", "nn_avg_pool3d")
def avg_pool(op: Op, data: Value) -> Value:
    return _windowed_avg(op.geometry(), data, result_type(op), op.count_include_pad)


def _windowed_avg(g: PoolGeometry, data: Value, out: TensorType, include_pad: bool) -> Value:
    """Sums, then divides by the number of counted elements: a constant if no window exceeds the counted region."""
    wide = out.with_dtype(accumulator(out.dtype))
    sizes = [shape(data)[g.layout.index(axis)] for axis in g.spatial]
    reachable = _reachable(g, sizes, out.sizes)
    padded = _padded(data, reachable, out.sizes, _SUM.first(out.dtype), out.dtype)
    sums = _windows(padded, reachable, wide, out.dtype, _SUM)

    def mean(total: Value) -> Value:
        count = _count(g, out, sizes, include_pad, wide.dtype)
        return scalar.convert(scalar.divide(total, count, wide.dtype), wide.dtype, out.dtype)

    return parallel(out, [sums], mean)


def _count(g: PoolGeometry, out: TensorType, sizes: Sequence[Size], include_pad: bool, dtype: str) -> Value:
    """Number of counted elements in the window at the loop point, as a scalar of `dtype`."""
    constant, counted = 1, None
    for i, axis in enumerate(g.spatial):
        position = g.layout.index(axis)
        before, after = g.pads[i]
        # The counted range along this axis, as positions in data.
        low, high = (-before, sizes[i] + after) if include_pad else (0, sizes[i])
        last = (out.sizes[position] - 1) * g.strides[i] - before + extent(g.pool_size[i], g.dilation[i])
        if low == -before and bounds(high - last)[0] >= 0:
            constant *= g.pool_size[i]
            continue
        here = _count_along(linalg.IndexOp(position).result, g.pool_size[i], g.strides[i], g.dilation[i], before, low, high)
        counted = here if counted is None else arith.muli(counted, here)
    fixed = scalar.constant(float(constant) if scalar.is_float(dtype) else constant, dtype)
    if counted is None:
        return fixed
    if _may_miss(g, sizes, out.sizes):
        counted = arith.maxsi(counted, index_constant(1))
    as_int = arith.index_cast(scalar.te_element("int32"), counted)
    return scalar.multiply(scalar.convert(as_int, "int32", dtype), fixed, dtype)


def _count_along(o: Value, kernel: int, stride: int, dilation: int, before: int, low: int, high: Size) -> Value:
    """Taps of window `o` along one axis that are in [low, high)."""
    start = arith.subi(arith.muli(o, index_constant(stride)), index_constant(before))

    def taps_before(bound: Size) -> Value:
        distance = arith.subi(index_constant(bound), start)
        if dilation > 1:
            # Rounded up, by a division of nonnegative numbers.
            positive = arith.maxsi(distance, index_constant(0))
            distance = arith.divui(arith.addi(positive, index_constant(dilation - 1)), index_constant(dilation))
        return arith.minsi(arith.maxsi(distance, index_constant(0)), index_constant(kernel))

    return arith.subi(taps_before(high), taps_before(low))


def _global(layout: Layout, data: Value, out: TensorType, kind: _Kind) -> Value:
    """The largest element, or the mean, over the spatial axes."""
    wide, rank = accumulator(out.dtype), layout.rank
    spatial = [i for i, axis in enumerate(layout.axes) if axis not in "NCc"]
    kept = [i for i in range(rank) if i not in spatial]
    rows_type = TensorType(tuple(out.shape[i] for i in kept), wide)
    rows = reduce(
        data, spatial, rows_type, kind.first(wide), lambda x, acc: kind.combine(x, acc, wide), lambda x: scalar.convert(x, out.dtype, wide)
    )
    count = prod(shape(data)[i] for i in spatial)

    def finished(x: Value) -> Value:
        return scalar.convert(x if kind is _MAX else scalar.divide(x, number(count, wide), wide), wide, out.dtype)

    return parallel(out, [rows], finished, [affine_map(rank, [dim(i) for i in kept])])


@compute("nn_global_max_pool2d", "nn_global_avg_pool2d")
def global_pool(op: Op, data: Value) -> Value:
    return _global(image_layout(op.layout, 2), data, result_type(op), _kind(op))


# ---- adaptive ---------------------------------------------------------------------------------------------------------------------


@compute(*(f"nn_adaptive_{name}_pool{n}d" for name in ("max", "avg") for n in (1, 2, 3)))
def adaptive_pool(op: Op, data: Value) -> Value:
    out, layout, kind = result_type(op), image_layout(op.layout, op.spatial_rank), _kind(op)
    if _is_global(layout, out):
        return _global(layout, data, out, kind)
    g = _equal_windows(op, layout, data, out)
    if g is not None:
        return _windowed_max(g, data, out) if kind is _MAX else _windowed_avg(g, data, out, include_pad=False)
    wide = out.with_dtype(accumulator(out.dtype))
    found = _adaptive(op, layout, data, wide, kind)
    if kind is _MAX:
        return narrowed(found, out, wide.dtype)
    axes = [layout.index(axis) for axis in SPATIAL[op.spatial_rank]]

    def mean(total: Value) -> Value:
        count = index_constant(1)
        for i in axes:
            start, end = _bounds(linalg.IndexOp(i).result, shape(data)[i], out.sizes[i])
            count = arith.muli(count, arith.subi(end, start))
        as_int = arith.index_cast(scalar.te_element("int32"), count)
        quotient = scalar.divide(total, scalar.convert(as_int, "int32", wide.dtype), wide.dtype)
        return scalar.convert(quotient, wide.dtype, out.dtype)

    return parallel(out, [found], mean)


def _equal_windows(op: Op, layout: Layout, data: Value, out: TensorType) -> PoolGeometry | None:
    """The ordinary pooling equal to an adaptive one, if the output divides the data along every axis, otherwise None."""
    letters = SPATIAL[op.spatial_rank]
    sizes: tuple[int, ...] = ()
    for at in map(layout.index, letters):
        length = exact(shape(data)[at], out.sizes[at])
        if not isinstance(length, int):
            return None
        sizes += (length,)
    return PoolGeometry(letters, sizes, sizes, (1,) * len(letters), ((0, 0),) * len(letters), layout)


def _is_global(layout: Layout, out: TensorType) -> bool:
    return all(n == 1 for n, axis in zip(out.shape, layout.axes, strict=True) if axis not in "NCc")


def _bounds(o: Value, size: Size, out: Size) -> tuple[Value, Value]:
    """First element of the window of output `o` and the first one after it: floor(o * size / out), ceil((o + 1) * size / out)."""
    first = arith.muli(o, index_constant(size))
    start = arith.divui(first, index_constant(out))
    return start, arith.divui(arith.addi(first, index_constant(size + out - 1)), index_constant(out))


def _longest(size: Size, out: Size) -> Size:
    """An upper bound of the length of the longest window."""
    if isinstance(size, int) and isinstance(out, int):
        return max(ceil_div((o + 1) * size, out) - o * size // out for o in range(out))
    # Both ends of a window may cut an element.
    quotient = exact(size, out)
    return size // maximum(out, 1) + 2 if quotient is None else quotient


def _adaptive(op: Op, layout: Layout, data: Value, out: TensorType, kind: _Kind) -> Value:
    """Reduces windows of different lengths: loops over the longest one, in which elements outside change nothing."""
    operand, rank, init = operand_type(op).dtype, layout.rank, kind.first(out.dtype)
    axes = [layout.index(axis) for axis in SPATIAL[op.spatial_rank]]
    longest = [_longest(shape(data)[i], out.sizes[i]) for i in axes]
    loops = rank + len(axes)
    # The window operand only gives the extents of the window loops.
    window = empty(TensorType(tuple(longest), out.dtype))

    def body(_: Value, acc: Value) -> Value:
        at = [linalg.IndexOp(i).result for i in range(rank)]
        inside = None
        for i, position in enumerate(axes):
            start, end = _bounds(at[position], shape(data)[position], out.sizes[position])
            here = arith.addi(start, linalg.IndexOp(rank + i).result)
            within = arith.cmpi(arith.CmpIPredicate.ult, here, end)
            inside = within if inside is None else arith.andi(inside, within)
            at[position] = arith.minui(here, index_constant(shape(data)[position] - 1))
        element = scalar.convert(extract(data, at), operand, out.dtype)
        return kind.combine(acc, scalar.select(inside, element, scalar.constant(init, out.dtype)), out.dtype)

    maps = [affine_map(loops, [dim(i) for i in range(rank, loops)])]
    return reduction([window], maps, fill(out, init), affine_map(loops, [dim(i) for i in range(rank)]), body)
