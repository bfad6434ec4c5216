"""Compute rules of resampling: image.resize1d/2d/3d, nn.upsampling, nn.upsampling3d.

Positions are computed in float32, by the operations of the formulas of ONNX Resize in their order, so that ties round identically.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from relayc.dialects.mlir import arith, ir, math
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.window import SPATIAL, per_axis
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.core import (
    Value,
    affine_map,
    compute,
    dim,
    empty,
    extract,
    gather,
    index_constant,
    operand_type,
    parallel,
    result_type,
    shape,
)
from relayc.pipelines.te.rules.literal import index_of_float
from relayc.pipelines.te.rules.measure import Computed, Measure, absolute, less, measure, scalar_of, where
from relayc.pipelines.te.rules.scalar import both
from relayc.symbolic import Size, exact

F32 = "float32"


@dataclass(frozen=True)
class Coordinate:
    """The position in data for position x of the result, along an axis: (x + shift) * factor / divisor + offset."""

    shift: Measure = 0.0
    factor: Measure = 1.0
    divisor: Measure = 1.0
    offset: Measure = 0.0

    def table(self, length: int) -> np.ndarray:
        """The positions for a result of `length` elements, in float32, for static sizes."""
        given = (self.shift, self.factor, self.divisor, self.offset)
        shift, factor, divisor, offset = (np.float32(v) for v in given if not isinstance(v, Computed))
        x = np.arange(length, dtype=np.float32) + shift
        return x * factor / divisor + offset

    def emit(self, index: Value) -> Value:
        """The position for a loop index, as operations."""
        as_int = arith.index_cast(scalar.te_element("int32"), index)
        x = scalar.convert(as_int, "int32", F32)
        steps: tuple[tuple[Callable[..., Value], Measure, float], ...] = (
            (arith.addf, self.shift, 0.0),
            (arith.mulf, self.factor, 1.0),
            (arith.divf, self.divisor, 1.0),
            (arith.addf, self.offset, 0.0),
        )
        for op, value, neutral in steps:
            if value != neutral:
                x = op(x, scalar_of(value, F32))
        return x


@dataclass(frozen=True)
class Axis:
    """A resampled axis: its dimension, its length before and after, the scale, its part of the region of interest."""

    position: int
    size: Size
    out: Size
    scale: Measure
    roi: tuple[float, float]

    @property
    def last(self) -> Measure:
        """The last position in data."""
        return measure(self.size - 1)

    @property
    def is_static(self) -> bool:
        return isinstance(self.size, int) and isinstance(self.out, int)


@dataclass(frozen=True)
class Sampling:
    """The interpolation; the values are the attributes of image.resize2d."""

    method: str
    mode: str
    rounding: str = ""
    cubic_alpha: float = -0.5
    cubic_exclude: bool = False
    extrapolation: float = 0.0


def _at_corners(a: Axis) -> Coordinate:
    # ONNX uses the unrounded length scale * size; rounding errors of the scale itself are ignored.
    size, out = measure(a.size), measure(a.out)
    unrounded = a.scale * size
    length = where(less(absolute(unrounded - out), 1e-4), out, unrounded)
    return _unless_single(a, Coordinate(factor=size - 1, divisor=length - 1))


def _unless_single(a: Axis, several: Coordinate, offset: Measure = 0.0) -> Coordinate:
    """`several` for an axis of more than one element, otherwise the constant `offset`."""
    condition, single = less(1, measure(a.out)), Coordinate(factor=0.0, offset=offset)
    names = ("shift", "factor", "divisor", "offset")
    return Coordinate(*(where(condition, getattr(several, name), getattr(single, name)) for name in names))


def _half_pixel(a: Axis) -> Coordinate:
    return Coordinate(shift=0.5, divisor=a.scale, offset=-0.5)


def _symmetric(a: Axis) -> Coordinate:
    # Result and data are aligned at their centres, if the length is not exactly scale * size.
    size = measure(a.size)
    center = size / 2 * (1 - measure(a.out) / (a.scale * size))
    return Coordinate(shift=0.5, divisor=a.scale, offset=center - 0.5)


def _crop(a: Axis) -> Coordinate:
    start, end = a.roi
    several = Coordinate(factor=(end - start) * a.last, divisor=measure(a.out) - 1, offset=start * a.last)
    return _unless_single(a, several, offset=0.5 * (start + end) * a.last)


COORDINATES: dict[str, Callable[[Axis], Coordinate]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda a: _unless_single(a, _half_pixel(a)),
    "align_corners": _at_corners,
    "asymmetric": lambda a: Coordinate(divisor=a.scale),
    "tf_half_pixel_for_nn": lambda a: Coordinate(shift=0.5, divisor=a.scale),
    "tf_crop_and_resize": _crop,
}

ROUNDINGS: dict[str, tuple[float, Callable[..., Value], Callable[[np.ndarray], np.ndarray]]] = {
    "round_prefer_floor": (-0.5, math.ceil, np.ceil),
    "round_prefer_ceil": (0.5, math.floor, np.floor),
    "floor": (0.0, math.floor, np.floor),
    "ceil": (0.0, math.ceil, np.ceil),
    "round": (0.5, math.floor, np.floor),
    "": (1e-5, math.floor, np.floor),
}
"""Rounding to an integer position: a number to add first, and the operation, as MLIR's and as numpy's. Without a name: Relay's default,
floor, tolerant of rounding errors just below an integer."""

_BY_SCALE_ONLY = ("half_pixel", "half_pixel_symmetric", "asymmetric", "tf_half_pixel_for_nn")
"""Modes in which a position does not depend on sizes if their ratio is an integer."""
_MANY = 1 << 10


@dataclass(frozen=True)
class Tap:
    """An element along one axis that a position reads: its index, its weight (None for 1), and whether it counts (None: it does)."""

    index: Value
    weight: Value | None
    inside: Value | None = None


class _Sampler:
    """Finds the taps along one axis of the element at a loop index."""

    def __init__(self, axis: Axis, sampling: Sampling) -> None:
        self.axis = axis
        self.sampling = sampling
        self.coordinate = COORDINATES[sampling.mode](axis)
        self.crops = sampling.mode == "tf_crop_and_resize"
        self.rounding = ROUNDINGS[sampling.rounding or ("round" if sampling.mode == "align_corners" else "")]

    def linear_form(self) -> Callable[[ir.AffineExpr], ir.AffineExpr] | None:
        """The index of the one element read as an affine expression of the loop, if it is affine."""
        if self.crops:
            return None
        if not self.axis.is_static:
            alike = self._of_numbers()
            return None if alike is None else _Sampler(alike, self.sampling).linear_form()
        size, out = self.axis.size, self.axis.out
        assert isinstance(size, int) and isinstance(out, int)
        table = self.coordinate.table(out)
        if self.sampling.method == "nearest_neighbor":
            shift, _, whole = self.rounding
            table = np.clip(whole(table + np.float32(shift)), 0, size - 1)
        here = np.arange(out)
        if out and (table == table[0]).all() and 0 <= table[0] < size and table[0] == int(table[0]):
            return lambda d: ir.AffineExpr.get_constant(int(table[0]))
        # The loop itself can only be the index if both lengths are equal.
        if out == size and (table == here).all():
            return lambda d: d
        if self.sampling.method != "nearest_neighbor":
            return None
        first, up, down = int(table[0]), out // size, size // out
        if up > 1 and (table == here // up).all():
            return lambda d: ir.AffineExpr.get_floor_div(d, up)
        if down > 1 and (table == here * down + first).all():
            return lambda d: d * down + first
        return None

    def _of_numbers(self) -> Axis | None:
        """An axis with many elements and the same integer scale, as a static representative: its indices do not depend on the sizes."""
        axis = self.axis
        up, down = exact(axis.out, axis.size), exact(axis.size, axis.out)
        if isinstance(up, int) and axis.scale == up:
            # Index 0 if both lengths are 1.
            follows = up == 1 or self.sampling.mode == "pytorch_half_pixel"
            alike = replace(axis, size=_MANY, out=_MANY * up)
        elif isinstance(down, int) and axis.scale == 1 / down:
            follows, alike = False, replace(axis, size=_MANY * down, out=_MANY)
        else:
            return None
        return alike if follows or self.sampling.mode in _BY_SCALE_ONLY else None

    def taps(self, index: Value) -> tuple[list[Tap], Value | None]:
        """The taps, and whether the position is outside data (None if irrelevant)."""
        x = self.coordinate.emit(index)
        found = getattr(self, f"_{self.sampling.method}")(x)
        return found, self._outside(x) if self.crops else None

    def _outside(self, x: Value) -> Value:
        before = scalar.compare("lt", x, scalar.constant(0.0, F32), F32)
        after = scalar.compare("gt", x, scalar_of(self.axis.last, F32), F32)
        return arith.ori(before, after)

    def _clamped(self, position: Value) -> Value:
        """An integral float position clipped to an index of data."""
        last = scalar_of(self.axis.last, F32)
        within = scalar.minimum(scalar.maximum(position, scalar.constant(0.0, F32), F32), last, F32)
        return index_of_float(within)

    def _nearest_neighbor(self, x: Value) -> list[Tap]:
        shift, whole, _ = self.rounding
        return [Tap(self._clamped(whole(_plus(x, shift))), None)]

    def _linear(self, x: Value) -> list[Tap]:
        below = math.floor(x)
        upper = arith.subf(x, below)
        lower = arith.subf(scalar.constant(1.0, F32), upper)
        return [Tap(self._clamped(below), lower), Tap(self._clamped(_plus(below, 1.0)), upper)]

    def _cubic(self, x: Value) -> list[Tap]:
        below = math.floor(x)
        s = arith.subf(x, below)
        weights = cubic_weights(s, self.sampling.cubic_alpha, F32)
        positions = [_plus(below, float(n)) for n in (-1, 0, 1, 2)]
        if self.sampling.cubic_exclude:
            weights = self._without_outside(positions, weights)
        return [Tap(self._clamped(p), w) for p, w in zip(positions, weights, strict=True)]

    def _without_outside(self, positions: Sequence[Value], weights: Sequence[Value]) -> list[Value]:
        """Sets weights outside data to 0, and scales the others so that they sum to 1."""
        zero = scalar.constant(0.0, F32)
        kept = [scalar.select(self._outside(p), zero, w) for p, w in zip(positions, weights, strict=True)]
        total = reduce(lambda a, b: scalar.add(a, b, F32), kept)
        return [arith.divf(w, total) for w in kept]


def _plus(x: Value, value: float, dtype: str = F32) -> Value:
    return arith.addf(x, scalar.constant(value, dtype)) if value else x


def _polynomial(coefficients: Sequence[float], x: Value, dtype: str) -> Value:
    """Evaluates a polynomial; coefficients start with the constant."""
    *rest, last = coefficients
    value = scalar.constant(last, dtype)
    for c in reversed(rest):
        value = _plus(arith.mulf(value, x), c, dtype)
    return value


def cubic_weights(s: Value, a: float, dtype: str) -> list[Value]:
    """Weights of the four elements around a position, `s` after the second one (Keys, with the coefficient `a`)."""
    t = arith.subf(scalar.constant(1.0, dtype), s)
    far, near = (-4 * a, 8 * a, -5 * a, a), (1.0, 0.0, -(a + 3), a + 2)
    given = ((far, _plus(s, 1.0, dtype)), (near, s), (near, t), (far, _plus(t, 1.0, dtype)))
    return [_polynomial(coefficients, x, dtype) for coefficients, x in given]


def resample(op: Op, data: Value, axes: Sequence[Axis], sampling: Sampling) -> Value:
    """The result of `op`: `data` resampled along `axes`.

    One element read at affine indices if possible (nearest_neighbor by an integer factor), otherwise gathered.
    """
    source, out = operand_type(op), result_type(op)
    samplers = {axis.position: _Sampler(axis, sampling) for axis in axes}
    forms = {position: sampler.linear_form() for position, sampler in samplers.items()}
    linear = {position: form for position, form in forms.items() if form is not None}
    if len(linear) == len(forms):
        exprs = [linear[i](dim(i)) if i in linear else dim(i) for i in range(out.rank)]
        return parallel(out, [data], lambda x: scalar.convert(x, source.dtype, out.dtype), [affine_map(out.rank, exprs)])
    weighted = sampling.method != "nearest_neighbor"
    wide = source.dtype if not weighted else "float64" if source.dtype == "float64" else F32

    def element(indices: list[Value]) -> Value:
        taps: list[list[Tap]] = []
        outside = None
        for i, index in enumerate(indices):
            if i in forms and i not in linear:
                found, beyond = samplers[i].taps(index)
                outside = beyond if outside is None else arith.ori(outside, beyond)
                taps.append(found)
            else:
                taps.append([Tap(_affine_index(linear[i], index) if i in linear else index, None)])
        value = weighted_sum(data, source.dtype, (F32, wide), taps, [])
        if outside is not None:
            value = scalar.select(outside, scalar.constant(sampling.extrapolation, wide), value)
        return converted(value, wide, out.dtype)

    return gather(out, element)


def _affine_index(form: Callable[[ir.AffineExpr], ir.AffineExpr], index: Value) -> Value:
    """The index that an affine form of a Sampler computes from a loop index, as operations."""
    expr = form(dim(0))
    if isinstance(expr, ir.AffineDimExpr):
        return index
    if isinstance(expr, ir.AffineConstantExpr):
        return index_constant(expr.value)
    if isinstance(expr, ir.AffineFloorDivExpr):
        return arith.divui(index, index_constant(ir.AffineConstantExpr(expr.rhs).value))
    factor, first = form(ir.AffineExpr.get_constant(1)), form(ir.AffineExpr.get_constant(0))
    first = ir.AffineConstantExpr(first).value
    factor = ir.AffineConstantExpr(factor).value - first
    return arith.addi(arith.muli(index, index_constant(factor)), index_constant(first))


def weighted_sum(
    data: Value, source: str, dtypes: tuple[str, str], taps: Sequence[Sequence[Tap]], at: list[Value], inside: Value | None = None
) -> Value:
    """Sum over the taps of the first axis of weight * the sum over the other axes, of data of dtype `source`.

    `dtypes` are those of the weights and of the sums, `at` the indices chosen so far, and `inside` is whether they count.
    """
    weights, wide = dtypes
    if not taps:
        value = scalar.convert(extract(data, at), source, wide)
        return value if inside is None else scalar.select(inside, value, scalar.constant(0, wide))
    total = None
    for tap in taps[0]:
        within = tap.inside if inside is None else inside if tap.inside is None else both(inside, tap.inside)
        value = weighted_sum(data, source, dtypes, taps[1:], [*at, tap.index], within)
        if tap.weight is not None:
            value = scalar.multiply(value, scalar.convert(tap.weight, weights, wide), wide)
        total = value if total is None else scalar.add(total, value, wide)
    assert total is not None  # at least one tap
    return total


def converted(value: Value, wide: str, dtype: str) -> Value:
    """Converts `value` to `dtype`; a float is clipped to the range of an integer type first (cubic overshoots)."""
    if scalar.is_float(wide) and not scalar.is_float(dtype):
        low, high = (scalar.constant(float(v), wide) for v in scalar.limits(dtype))
        value = scalar.minimum(scalar.maximum(value, low, wide), high, wide)
    return scalar.convert(value, wide, dtype)


def _ratio(out: Size, size: Size) -> Measure:
    """out / size; a constant if it is the same for all sizes."""
    if isinstance(out, int) and isinstance(size, int):
        return out / size
    up, down = exact(out, size), exact(size, out)
    if isinstance(up, int):
        return float(up)
    return 1 / down if isinstance(down, int) and down else measure(out) / measure(size)


@compute("image_resize1d", "image_resize2d", "image_resize3d")
def resize(op: Op, data: Value) -> Value:
    letters = SPATIAL[op.spatial_rank]
    parsed = layout(op.layout)
    sizes = per_axis(op.size, len(letters), "size")
    roi = op.roi if op.coordinate_transformation_mode == "tf_crop_and_resize" else (0.0,) * (2 * len(letters))
    axes = []
    for i, letter in enumerate(letters):
        position = parsed.index(letter)
        size = shape(data)[position]
        scale = op.scales[i] if op.scales else _ratio(sizes[i], size)
        axes.append(Axis(position, size, sizes[i], scale, (roi[i], roi[len(letters) + i])))
    sampling = Sampling(
        op.method,
        op.coordinate_transformation_mode,
        op.rounding_method,
        op.cubic_alpha,
        bool(op.cubic_exclude),
        op.extrapolation_value,
    )
    return resample(op, data, axes, sampling)


METHODS = {"nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


@compute("nn_upsampling", "nn_upsampling3d")
def upsampling(op: Op, data: Value) -> Value:
    """Lengths are rounded: coordinates are then scaled by the ratio of the rounded lengths, as in Relay."""
    if type(op)._op_name == "nn_upsampling":
        letters, mode = "HW", "align_corners" if op.align_corners else "asymmetric"
    else:
        letters, mode = "DHW", op.coordinate_transformation_mode
    parsed, out = layout(op.layout), result_type(op)
    if out.num_elements == 0:
        return empty(out)
    axes = []
    for letter in letters:
        position = parsed.index(letter)
        size, wanted = shape(data)[position], out.sizes[position]
        axes.append(Axis(position, size, wanted, _ratio(wanted, size), (0.0, 0.0)))
    return resample(op, data, axes, Sampling(METHODS[op.method], mode))
