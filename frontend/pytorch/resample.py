"""Resampling of images."""

from typing import Any

from relayc.frontend.common.windows import SPATIAL_LAYOUTS
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import transpose

_OPERATORS = {
    **{f"aten.upsample_nearest{n}d": ("nearest", n) for n in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{n}d": ("exact", n) for n in (1, 2, 3)},
    **{"aten.upsample_linear1d": ("linear", 1), "aten.upsample_bilinear2d": ("linear", 2), "aten.upsample_trilinear3d": ("linear", 3)},
    "aten.upsample_bicubic2d": ("cubic", 2),
}


@aten(*(name.removeprefix("aten.") for name in _OPERATORS), keep=True)
def upsample(input: Any = None, self: Any = None, align_corners: bool = False, scale_factors: Any = None, **rest: Any) -> Tensor:
    x = self if input is None else input
    method, n = _OPERATORS[node().operator]
    scales = [rest.get(f"scales_{axis}") for axis in "dhw"[3 - n :]] if scale_factors is None else list(scale_factors)
    if n == 1 and scale_factors is None:
        scales = [rest.get("scales")]
    numbers = tuple(float(s) for s in scales if isinstance(s, (int, float)))
    given = () if align_corners or len(numbers) < n else numbers
    how: dict[str, Any] = {
        "nearest": {"coordinate_transformation_mode": "asymmetric", "rounding_method": "floor", "method": "nearest_neighbor"},
        "exact": {"coordinate_transformation_mode": "half_pixel", "rounding_method": "round_prefer_ceil", "method": "nearest_neighbor"},
    }.get(method, {"coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel", "method": method})
    if method == "cubic":
        how["cubic_alpha"] = -0.75
    return emit(f"image.resize{n}d", x, size=node().sizes[2:], scales=given, layout=SPATIAL_LAYOUTS[n], **how)


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", keep=True)
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    n = input.rank - 2
    method = ("bilinear", "nearest_neighbor", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    if n not in (2, 3):
        raise ModelError(f"input: expected two or three spatial axes, found {input.type}")
    places = transpose(grid, (0, grid.rank - 1, *range(1, grid.rank - 1)))
    return emit(
        "image.grid_sample", input, places, method=method, layout=SPATIAL_LAYOUTS[n], padding_mode=padding, align_corners=align_corners
    )
