"""Resampling of images."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from math import inf, prod
from typing import Any

from relayc.frontend.common.functions import cubic_kernel
from relayc.frontend.common.late_resize import LateResize
from relayc.frontend.common.windows import SPATIAL_LAYOUTS
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.gradients import gradients
from relayc.frontend.pytorch.operands import operand, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import (
    add,
    binary,
    broadcast_to,
    cast,
    divide,
    like,
    multiply,
    reshape,
    strided_slice,
    subtract,
    transpose,
)
from relayc.symbolic import Size

_OPERATORS = {
    **{f"aten.upsample_nearest{n}d": ("nearest", n) for n in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{n}d": ("exact", n) for n in (1, 2, 3)},
    **{"aten.upsample_linear1d": ("linear", 1), "aten.upsample_bilinear2d": ("linear", 2), "aten.upsample_trilinear3d": ("linear", 3)},
    "aten.upsample_bicubic2d": ("cubic", 2),
}
_ANTIALIASED = {"aten._upsample_bilinear2d_aa": "linear", "aten._upsample_bicubic2d_aa": "cubic", "aten._upsample_lanczos2d_aa": "lanczos"}


def _factors(n: int, scale_factors: Any, named: Mapping[str, Any]) -> list[float | None]:
    """The factor of each spatial axis, where it is given."""
    if scale_factors is not None:
        scales = list(scale_factors)
    else:
        scales = [named.get("scales")] if n == 1 else [named.get(f"scales_{axis}") for axis in "dhw"[3 - n :]]
    return [float(s) if isinstance(s, (int, float)) else None for s in scales]


@aten(*(name.removeprefix("aten.") for name in _OPERATORS), input="x", self="x")
def upsample(x: Tensor, align_corners: bool = False, scale_factors: Any = None, **rest: Any) -> Tensor:
    method, n = _OPERATORS[node().operator]
    numbers = tuple(s for s in _factors(n, scale_factors, rest) if s is not None)
    given = () if align_corners or len(numbers) < n else numbers
    how: dict[str, Any] = {
        "nearest": {"coordinate_transformation_mode": "asymmetric", "rounding_method": "floor", "method": "nearest_neighbor"},
        "exact": {"coordinate_transformation_mode": "half_pixel", "rounding_method": "round_prefer_ceil", "method": "nearest_neighbor"},
    }.get(method, {"coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel", "method": method})
    if method == "cubic":
        how["cubic_alpha"] = -0.75
    return emit(f"image.resize{n}d", x, size=node().sizes[2:], scales=given, layout=SPATIAL_LAYOUTS[n], **how)


@aten(*(name.removeprefix("aten.") for name in _ANTIALIASED), input="x", self="x")
def antialiased(x: Tensor, align_corners: bool, scale_factors: Any = None, **rest: Any) -> Tensor:
    return _antialiased(x, node().sizes[2:], align_corners, _factors(2, scale_factors, rest))


def _antialiased(x: Tensor, sizes: Sequence[Size], align_corners: bool, scales: Sequence[float | None]) -> Tensor:
    """The middle of a pixel is at (i + 0.5) / factor, with align_corners too; elements outside of the image have no share."""
    method = _ANTIALIASED[node().operator.removesuffix("_backward")]
    factors = [_factor(x.shape[2 + i], size, align_corners, scales[i]) for i, size in enumerate(sizes)]
    how = LateResize(method, "half_pixel", "", -0.5, exclude_outside=True, extrapolation_value=0.0, antialias=True)
    return how.antialiased(x, (2, 3), sizes, factors)


@aten("_upsample_bilinear2d_aa_backward", "_upsample_lanczos2d_aa_backward")
def antialiased_backward(
    grad_output: Tensor, output_size: tuple[Size, ...], input_size: tuple[Size, ...], align_corners: bool, scales_h: Any, scales_w: Any
) -> Tensor:
    x = emit("zeros", shape=input_size, dtype=grad_output.dtype)  # no constant, whose steps would be folded
    scales = _factors(2, None, {"scales_h": scales_h, "scales_w": scales_w})
    return gradients(_antialiased(x, output_size, align_corners, scales), [x], grad_output)[0]


def _factor(before: Size, after: Size, align_corners: bool, scale: float | None) -> Tensor | float:
    if scale is not None and scale > 0 and not align_corners:
        return scale
    less = 1 if align_corners else 0
    if isinstance(before, int) and isinstance(after, int):
        return inf if align_corners and min(before, after) <= 1 else (after - less) / (before - less)
    length, count = operand(before - less, "float64"), operand(after - less, "float64")
    found = divide(count, length)
    return where(binary("greater", multiply(count, length), 0.0), found, like(inf, found)) if align_corners else found


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    n = input.rank - 2
    method = ("bilinear", "nearest_neighbor", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    places = transpose(grid, (0, grid.rank - 1, *range(1, grid.rank - 1)))
    return emit(
        "image.grid_sample", input, places, method=method, layout=SPATIAL_LAYOUTS[n], padding_mode=padding, align_corners=align_corners
    )


@aten("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Writes the samples as sums of elements of the image: the operators of the sums have rules of derivatives."""
    batch, channels, *sizes = input.shape
    n, points = len(sizes), prod(grid.shape[1:-1])
    taps = []
    for axis, size in enumerate(sizes):
        at = reshape(strided_slice(grid, (n - 1 - axis,), (n - axis,), (1,), (grid.rank - 1,)), (batch, points))
        at = divide(multiply(add(at, 1.0), operand(size - 1 if align_corners else size, at.dtype)), 2.0)
        taps.append(_taps(at if align_corners else subtract(at, 0.5), size, interpolation_mode, padding_mode, align_corners))
    data, terms = reshape(input, (batch, channels, prod(sizes))), []
    for chosen in product(*taps):
        place, weight = like(0, grid), like(1, grid)
        for (at, share), size in zip(chosen, sizes, strict=True):
            inside = _within(at, like(-0.5, at), operand(size, at.dtype))
            weight = multiply(weight, where(inside, share, like(0, at)))
            place = add(multiply(place, operand(size, at.dtype)), where(inside, at, like(0, at)))
        index = broadcast_to(reshape(cast(place, "int64"), (batch, 1, points)), (batch, channels, points))
        terms.append(multiply(emit("gather", data, index, axis=2, in_bounds=True), reshape(weight, (batch, 1, points))))
    found = gradients(reduce(add, terms), [input, grid], reshape(grad_output, (batch, channels, points)))
    return tuple(t if wanted else None for t, wanted in zip(found, output_mask, strict=True))


def _within(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return emit("logical_and", emit("greater", x, low), emit("less", x, high))


def _taps(at: Tensor, size: Size, method: int, padding: int, align_corners: bool) -> list[tuple[Tensor, Tensor]]:
    """Places along an axis and their shares in a sample at `at`."""

    def padded(x: Tensor) -> Tensor:
        return _padded(x, size, padding, align_corners)

    if method == 1:
        at = emit("round", padded(at))
        return [(at, emit("ones", shape=at.shape, dtype=at.dtype))]
    at = padded(at) if method == 0 else at
    low = emit("floor", at)
    share = subtract(at, low)
    if method == 0:
        return [(low, subtract(like(1, share), share)), (add(low, 1.0), share)]
    return [(padded(add(low, float(i))), cubic_kernel(emit("abs", subtract(share, float(i))), -0.75, i in (0, 1))) for i in range(-1, 3)]


def _padded(x: Tensor, size: Size, padding: int, align_corners: bool) -> Tensor:
    """Places moved into an image: at its border their derivatives are 0, as torch has it."""
    if padding == 0:
        return x
    last = operand(size - 1, x.dtype)
    if padding == 2:
        low, span = (0.0, last) if align_corners else (-0.5, operand(size, x.dtype))
        x = emit("abs", subtract(x, low))
        times = emit("floor", divide(x, binary("maximum", span, 1e-30)))
        rest = subtract(x, multiply(times, span))
        is_even = binary("equal", emit("floor_mod", times, like(2, times)), 0.0)
        x = add(where(is_even, rest, subtract(span, rest)), low)
    return where(_within(x, like(0, x), last), x, where(binary("greater", x, 0.0), last, like(0, x)))
