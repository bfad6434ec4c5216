"""Resampling by factors, sizes or regions that only the program knows: an axis at a time, weighted sums of elements at computed positions.

Positions are computed by the formulas of ONNX Resize in their order: in float32 as image.resize2d computes those of known factors, with
antialias in float64 as frontend/common/antialias.py does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import pi

from relayc.frontend.common.antialias import HALF_WIDTHS, product_along, weights
from relayc.frontend.common.functions import cubic_kernel
from relayc.frontend.converter import Tensor, assume, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import positions, shape_tensor, size_tensor, sizes
from relayc.frontend.steps import add, binary, cast, divide, like, multiply, reshape, row, strided_slice, subtract
from relayc.symbolic import Size

F32 = "float32"


@dataclass(frozen=True)
class LateResize:
    """The attributes of a Resize, by ONNX's names; `mode` is nearest, linear or cubic, or lanczos with antialias. Without `nearest_mode`,
    as in operator set 10, positions are rounded up where an axis becomes smaller, else down."""

    mode: str
    coordinates: str
    nearest_mode: str
    cubic_coeff_a: float
    exclude_outside: bool
    extrapolation_value: float
    antialias: bool

    def by_scales(self, x: Tensor, axes: Sequence[int], scales: Tensor, roi: Tensor | None) -> Tensor:
        """x resized along `axes` by factors (float, one an axis); `roi` has the starts of all axes, then their ends."""
        lengths = _lengths(x, axes)
        factors = cast(_vector(scales, len(axes), "scales"), "float64")
        region = self._region(roi, len(axes))
        whole = multiply(factors, lengths)
        if region is not None:
            ends, starts = _halves(cast(region, "float64"))
            whole = multiply(subtract(ends, starts), whole)
        return self._along_each(x, axes, _counts(whole), factors, region)

    def by_sizes(self, x: Tensor, axes: Sequence[int], wanted: Sequence[Size], policy: str, roi: Tensor | None) -> Tensor:
        """x resized along `axes` to sizes, or by the least or greatest factor that these say."""
        lengths = _lengths(x, axes)
        factors = divide(cast(shape_tensor(wanted), "float64"), lengths)
        out = list(wanted)
        if policy != "stretch":
            one = emit("min" if policy == "not_larger" else "max", factors)
            factors = emit("broadcast_to", one, shape=(len(axes),))
            out = _counts(add(multiply(factors, lengths), 0.5))
        return self._along_each(x, axes, out, factors, self._region(roi, len(axes)))

    def antialiased(self, x: Tensor, axes: Sequence[int], out: Sequence[Size], factors: Sequence[Tensor | float]) -> Tensor:
        """x resized along `axes` to sizes with antialias; where a size and a factor are numbers, the weights are known at import.

        The last axis is resized first, as in torch and ONNX Runtime: after each axis bytes are rounded and clipped.
        """
        for axis, size, factor in reversed(list(zip(axes, out, factors, strict=True))):
            before = x.shape[axis]
            if isinstance(size, int) and isinstance(before, int) and isinstance(factor, float):
                shares = weights(self.mode, self.coordinates, before, size, factor, self.cubic_coeff_a, self.exclude_outside)
                x = product_along(x, axis, constant(shares, "float64"))
            else:
                one = constant(factor, "float64") if isinstance(factor, float) else factor
                x = self._along_each(x, (axis,), (size,), reshape(one, (1,)), None)
        return x

    def _region(self, roi: Tensor | None, axes: int) -> Tensor | None:
        if self.coordinates != "tf_crop_and_resize":
            return None
        if roi is None:
            raise ModelError("expected the input roi for tf_crop_and_resize, found none")
        return cast(_vector(roi, 2 * axes, "roi"), F32)

    def _along_each(self, x: Tensor, axes: Sequence[int], out: Sequence[Size], factors: Tensor, region: Tensor | None) -> Tensor:
        kept, outside = x.dtype, None
        if self.mode != "nearest" and x.dtype != "float64" and not (self.antialias and x.dtype == "uint8"):
            x = cast(x, F32)
        for i, (axis, count) in enumerate(zip(axes, out, strict=True)):
            exact = "float64" if self.antialias else F32
            ends = None if region is None else (cast(row(region, i), exact), cast(row(region, len(axes) + i), exact))
            along = _Axis(x.shape[axis], count, cast(row(factors, i), exact), ends)
            at = along.positions(self.coordinates, -0.5 if self.antialias else 0.0)
            if region is not None:
                beyond = emit("logical_or", binary("less", at, 0.0), emit("greater", at, along.last))
                beyond = reshape(beyond, [count if a == axis else 1 for a in range(x.rank)])
                outside = beyond if outside is None else emit("logical_or", outside, beyond)
            x = self._stretched(x, axis, along, at) if self.antialias else self._sampled(x, axis, along, at)
        if outside is not None:
            x = emit("where", outside, constant(self.extrapolation_value, x.dtype), x)
        return cast(x, kept)

    def _sampled(self, x: Tensor, axis: int, along: "_Axis", at: Tensor) -> Tensor:
        if self.mode == "nearest":
            if not self.nearest_mode:
                at = emit("where", binary("less", along.factor, 1.0), emit("ceil", at), emit("floor", at))
            elif self.nearest_mode not in _ROUNDINGS:
                raise ModelError(f"attribute nearest_mode: expected {', '.join(_ROUNDINGS)}, found {self.nearest_mode!r}")
            else:
                at = _ROUNDINGS[self.nearest_mode](at)
            return emit("take", x, along.clamped(at), axis=axis, mode="clip")
        below = emit("floor", at)
        taps = [add(below, float(n)) for n in ((0, 1) if self.mode == "linear" else (-1, 0, 1, 2))]
        shares = [self._kernel(emit("abs", subtract(tap, at))) for tap in taps]
        if self.exclude_outside and self.mode == "cubic":
            shares = [along.excluded(tap, weight) for tap, weight in zip(taps, shares, strict=True)]
            total = reduce(add, shares)
            shares = [divide(weight, total) for weight in shares]
        shape = [along.out if a == axis else 1 for a in range(x.rank)]
        parts = [
            multiply(emit("take", x, along.clamped(tap), axis=axis, mode="clip"), reshape(cast(weight, x.dtype), shape))
            for tap, weight in zip(taps, shares, strict=True)
        ]
        return reduce(add, parts)

    def _stretched(self, x: Tensor, axis: int, along: "_Axis", at: Tensor) -> Tensor:
        """Where the axis shrinks, the filter is as much wider: a product with weights of all elements, and of the edges' copies that the
        filter reaches."""
        stretch = binary("minimum", along.factor, 1.0)
        margin = 0 if self.exclude_outside else self._margin(stretch)
        wide = along.size + 2 * margin
        edge = cast(size_tensor(margin), at.dtype)
        taps = subtract(cast(positions(wide), at.dtype), edge)
        distance = emit("abs", subtract(reshape(taps, (1, wide)), reshape(at, (along.out, 1))))
        shares = self._kernel(multiply(distance, stretch))
        shares = divide(shares, emit("sum", shares, axis=(1,), keepdims=True))
        return product_along(x if self.exclude_outside else emit("take", x, along.clamped(taps), axis=axis, mode="clip"), axis, shares)

    def _margin(self, stretch: Tensor) -> Size:
        """How many copies of an edge the filter reaches."""
        reach = cast(emit("ceil", divide(like(HALF_WIDTHS[self.mode], stretch), stretch)), "int64")
        reach = binary("add", reach, 1)
        reach.name = "reach"
        return sizes(reshape(reach, (1,)), "scales")[0]

    def _kernel(self, distance: Tensor) -> Tensor:
        """The weight of an element at a distance."""
        if self.mode == "linear":
            return binary("maximum", subtract(like(1, distance), distance), 0.0)
        if self.mode == "lanczos":
            x = multiply(distance, pi)
            third = divide(x, 3.0)
            product = divide(multiply(emit("sin", x), emit("sin", third)), multiply(x, third))
            product = emit("where", binary("less", distance, 3.0), product, like(0, distance))
            return emit("where", binary("equal", distance, 0.0), like(1, distance), product)
        near, far = (cubic_kernel(distance, self.cubic_coeff_a, is_near) for is_near in (True, False))
        nothing = emit("where", binary("less", distance, 2.0), far, like(0, distance))
        return emit("where", binary("less_equal", distance, 1.0), near, nothing)


_ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "round_prefer_floor": lambda at: emit("ceil", subtract(at, 0.5)),
    "round_prefer_ceil": lambda at: emit("floor", add(at, 0.5)),
    "floor": lambda at: emit("floor", at),
    "ceil": lambda at: emit("ceil", at),
}


@dataclass(frozen=True)
class _Axis:
    """An axis that is resampled: its sizes before and after, and in scalars of one dtype the factor and the ends of its region."""

    size: Size
    out: Size
    factor: Tensor
    ends: tuple[Tensor, Tensor] | None

    @property
    def length(self) -> Tensor:
        return cast(size_tensor(self.size), self.factor.dtype)

    @property
    def last(self) -> Tensor:
        return subtract(self.length, 1.0)

    def positions(self, mode: str, single: float) -> Tensor:
        """float[out], the position in data of each element of the result; `single` is the position of the only element for
        pytorch_half_pixel."""
        x = cast(positions(self.out), self.factor.dtype)
        out = cast(size_tensor(self.out), self.factor.dtype)
        several = binary("greater", out, 1.0)
        if mode == "asymmetric":
            return divide(x, self.factor)
        if mode == "align_corners":
            whole = multiply(self.factor, self.length)
            near = binary("less", emit("abs", subtract(whole, out)), 1e-4)
            apart = subtract(emit("where", near, out, whole), 1.0)
            return emit("where", several, divide(multiply(x, self.last), apart), like(0, self.factor))
        if mode == "tf_crop_and_resize":
            assert self.ends is not None
            start, end = self.ends
            middle = multiply(multiply(add(start, end), 0.5), self.last)
            step = multiply(x, multiply(subtract(end, start), self.last))
            return emit("where", several, add(divide(step, subtract(out, 1.0)), multiply(start, self.last)), middle)
        at = divide(add(x, 0.5), self.factor)
        if mode == "tf_half_pixel_for_nn":
            return at
        if mode == "half_pixel_symmetric":
            share = subtract(like(1, self.factor), divide(out, multiply(self.factor, self.length)))
            return add(at, subtract(multiply(divide(self.length, 2.0), share), 0.5))
        at = subtract(at, 0.5)
        if mode == "half_pixel":
            return at
        if mode != "pytorch_half_pixel":
            raise ModelError(f"attribute coordinate_transformation_mode: expected one of operator set 19, found {mode!r}")
        return emit("where", several, at, like(single, self.factor))

    def clamped(self, at: Tensor) -> Tensor:
        """Whole positions as indices within data."""
        return cast(emit("minimum", binary("maximum", at, 0.0), self.last), "int64")

    def excluded(self, taps: Tensor, weights: Tensor) -> Tensor:
        """Weights of 0 outside data."""
        outside = emit("logical_or", binary("less", taps, 0.0), emit("greater", taps, self.last))
        return emit("where", outside, like(0, self.factor), weights)


def _vector(tensor: Tensor, count: int, what: str) -> Tensor:
    if not tensor.is_float or tensor.rank != 1:
        raise ModelError(f"input {what}: expected {count} floats, found {tensor.type}")
    return assume(tensor, (count,))


def _halves(region: Tensor) -> tuple[Tensor, Tensor]:
    """The ends and the starts of a region."""
    count = region.shape[0] // 2
    return strided_slice(region, [count], [2 * count], [1], [0]), strided_slice(region, [0], [count], [1], [0])


def _lengths(x: Tensor, axes: Sequence[int]) -> Tensor:
    return cast(shape_tensor([x.shape[a] for a in axes]), "float64")


def _counts(whole: Tensor) -> list[Size]:
    """Lengths as sizes, rounded down."""
    counts = cast(emit("floor", whole), "int64")
    counts.name = "size"
    return list(sizes(counts, "sizes"))
