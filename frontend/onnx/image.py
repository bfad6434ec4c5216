"""Resampling: Resize and its predecessor Upsample."""

from collections.abc import Sequence
from math import floor, prod
from typing import Any, Literal, TypeAlias

from relayc.frontend.common.late_resize import LateResize
from relayc.frontend.common.windows import SPATIAL_LAYOUTS
from relayc.frontend.converter import Tensor, axes_of, constant, emit, known
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import Inexact, Ratio, known_elements, objects, tensor_of
from relayc.frontend.sizes import sizes as shape_sizes
from relayc.frontend.steps import add, cast, reshape, transpose
from relayc.symbolic import Size

Factor: TypeAlias = Ratio | float
"""Of a size: a number, or a quotient of sizes."""

Mode = Literal["nearest", "linear", "cubic"]
_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}


def _factors(tensor: Tensor | None, what: str) -> tuple[Ratio | float, ...]:
    """Factors of sizes: numbers, and quotients of sizes."""
    elements = None if tensor is None or tensor.is_known else known_elements(tensor)
    if elements is None:
        return _floats(tensor, what)
    return tuple(e.num / e.den if e.is_number else e for e in elements.reshape(-1))


def _floats(tensor: Tensor | None, what: str) -> tuple[float, ...]:
    return () if tensor is None else tuple(float(v) for v in known(tensor, what).reshape(-1))


def _resize(
    x: Tensor, axes: tuple[int, ...], sizes: Sequence[Size], scales: Sequence[Factor], roi: Sequence[float], **attributes: Any
) -> Tensor:
    """Resizes `axes` of x to `sizes`: the axes that change are brought to the end, where Relay has the spatial ones."""
    changed = [i for i, a in enumerate(axes) if sizes[i] != x.shape[a] or scales[i] != 1.0]
    if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
        changed = list(range(len(axes)))
        changed = [i for i in changed if (sizes[i], scales[i], roi[i], roi[len(axes) + i]) != (x.shape[axes[i]], 1.0, 0.0, 1.0)]
    if not changed:
        return x
    if len(changed) > 3:
        # Axes are resampled independently of each other.
        for part in (changed[:3], changed[3:]):
            region = [roi[j * len(axes) + i] for j in (0, 1) for i in part] if roi else ()
            x = _resize(x, tuple(axes[i] for i in part), [sizes[i] for i in part], [scales[i] for i in part], region, **attributes)
        return x
    last = [axes[i] for i in changed]
    first = [a for a in range(x.rank) if a not in last]
    moved = transpose(x, (*first, *last))
    kept = moved.shape[: len(first)]
    n = len(changed)
    batch = moved if len(first) == 2 else reshape(moved, (1, prod(kept), *moved.shape[len(first) :]))
    factors = [scales[i] for i in changed]
    found = emit(
        f"image.resize{n}d",
        batch,
        size=[sizes[i] for i in changed],
        # Factors that are quotients of sizes are what Relay computes itself.
        scales=() if any(isinstance(f, Ratio) for f in factors) else factors,
        roi=[roi[j * len(axes) + i] for j in (0, 1) for i in changed] if roi else (),
        layout=SPATIAL_LAYOUTS[n],
        **attributes,
    )
    found = reshape(found, (*kept, *(sizes[i] for i in changed)))
    order = (*first, *last)
    return transpose(found, [order.index(a) for a in range(x.rank)])


def _scaled(x: Tensor, scales: Sequence[Factor], axes: Sequence[int]) -> tuple[Size, ...]:
    if len(scales) != len(axes):
        raise OnnxError(f"input scales: expected {len(axes)} values, found {len(scales)}")
    return tuple(_extent(x.shape[a], s) for a, s in zip(axes, scales, strict=True))


def _extent(size: Size, factor: Factor, rest: float = 0.0) -> Size:
    """size * factor + rest, rounded down; by the program where that is no expression. Raises OnnxError for a number that is no size."""
    if isinstance(size, int) and isinstance(factor, float):
        found = factor * size + rest
        if not 0 <= found < 1 << 63:
            raise OnnxError(f"input scales: expected sizes of 0 or more, found {found}")
        return floor(found)
    try:
        product = Ratio(size) * (factor if isinstance(factor, Ratio) else Ratio.number(factor))
        return (product + Ratio.number(rest)).floor().num
    except Inexact:
        exact = tensor_of(objects([1], [Ratio(size)]), "float32")
        scale = tensor_of(objects([1], [factor]), "float32") if isinstance(factor, Ratio) else constant([factor], "float32")
        computed = add(emit("multiply", exact, scale), rest)
        return shape_sizes(cast(emit("floor", computed), "int64"), "scales")[0]


def _asymmetric(x: Tensor, scales: tuple[Factor, ...], mode: str, rounding: str = "floor") -> Tensor:
    axes = tuple(range(x.rank))
    sizes = _scaled(x, scales, axes)
    return _resize(x, axes, sizes, scales, (), method=_METHODS[mode], coordinate_transformation_mode="asymmetric", rounding_method=rounding)


@converter("Upsample")
def Upsample_1(x: Tensor, *, height_scale: float, width_scale: float, mode: Literal[Mode, "bilinear"] = "nearest") -> Tensor:
    if x.rank != 4:
        raise OnnxError(f"input X: expected a batch of images, found {list(x.shape)}")
    return _asymmetric(x, (1.0, 1.0, height_scale, width_scale), {"bilinear": "linear"}.get(mode, mode))


@converter(since=7)
def Upsample(x: Tensor, *, scales: Sequence[float], mode: Mode = "nearest") -> Tensor:
    return _asymmetric(x, tuple(scales), mode)


@converter("Upsample", since=9)
def Upsample_9(x: Tensor, scales: Tensor, *, mode: Mode = "nearest") -> Tensor:
    if _is_late(scales):
        late = LateResize(mode, "asymmetric", "floor", -0.75, False, 0.0, False)
        return late.by_scales(x, range(x.rank), scales, None)
    return _asymmetric(x, _factors(scales, "scales"), mode)


@converter(since=10)
def Resize(x: Tensor, scales: Tensor, *, mode: Mode = "nearest") -> Tensor:
    """The mode nearest rounds positions up along axes that become smaller, and down along other axes."""
    if _is_late(scales):
        return LateResize(mode, "asymmetric", "", -0.75, False, 0.0, False).by_scales(x, range(x.rank), scales, None)
    factors = _factors(scales, "scales")
    if mode != "nearest":
        return _asymmetric(x, factors, mode)
    x = _asymmetric(x, tuple(max(f, 1.0) if isinstance(f, float) else f for f in factors), mode)
    return _asymmetric(x, tuple(min(f, 1.0) if isinstance(f, float) else 1.0 for f in factors), mode, "ceil")


def _is_late(tensor: Tensor | None) -> bool:
    """Whether an input of floats is known to the program alone."""
    return tensor is not None and tensor.type.num_elements != 0 and not tensor.is_known and known_elements(tensor) is None


@converter("Resize", since=11)
def Resize_11(
    x: Tensor,
    roi: Tensor | None = None,
    scales: Tensor | None = None,
    sizes: Tensor | None = None,
    *,
    antialias: bool = False,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: Literal["stretch", "not_larger", "not_smaller"] = "stretch",
    mode: Mode = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    chosen = axes_of(axes, x.rank) if axes is not None else tuple(range(x.rank))
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    late = LateResize(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        exclude_outside,
        extrapolation_value,
        antialias and mode != "nearest",
    )
    if scales is not None and scales.type.num_elements != 0 and (_is_late(scales) or (crop and _is_late(roi))):
        return late.by_scales(x, chosen, scales, roi)
    factors = _factors(scales, "scales")
    if factors:
        wanted = _scaled(x, factors, chosen) if not crop else _cropped(x, factors, chosen, _floats(roi, "roi"))
    elif sizes is not None and sizes.type.num_elements != 0:
        lengths = shape_sizes(sizes, "sizes")
        if len(lengths) != len(chosen):
            raise OnnxError(f"input sizes: expected {len(chosen)} values, found {len(lengths)}")
        if (crop and _is_late(roi)) or _is_open(x, chosen, lengths, keep_aspect_ratio_policy != "stretch", late.antialias):
            return late.by_sizes(x, chosen, lengths, keep_aspect_ratio_policy, roi)
        wanted, factors = _sizes(x, lengths, chosen, keep_aspect_ratio_policy)
    else:
        raise OnnxError("expected one of the inputs scales and sizes, found neither")
    if late.antialias:
        changed = [i for i, a in enumerate(chosen) if wanted[i] != x.shape[a] or factors[i] != 1.0]
        quotients = [tensor_of(objects([1], [f]), "float64") if isinstance(f, Ratio) else f for f in factors]
        return late.antialiased(x, [chosen[i] for i in changed], [wanted[i] for i in changed], [quotients[i] for i in changed])
    return _resize(
        x,
        chosen,
        wanted,
        factors,
        _floats(roi, "roi") if crop else (),
        method=_METHODS[mode],
        coordinate_transformation_mode=coordinate_transformation_mode,
        rounding_method=nearest_mode if mode == "nearest" else "",
        cubic_alpha=cubic_coeff_a,
        cubic_exclude=int(exclude_outside),
        extrapolation_value=extrapolation_value,
    )


def _is_open(x: Tensor, axes: Sequence[int], sizes: Sequence[Size], one_factor: bool, antialias: bool) -> bool:
    """Whether sizes say less of the factors than is to be known at import: which is the least or greatest, or weights of all elements."""
    pairs = [(s, x.shape[a]) for s, a in zip(sizes, axes, strict=True)]
    is_known = all(isinstance(d, int) for pair in pairs for d in pair)
    return not is_known and (antialias or (one_factor and len({_quotient(*pair) for pair in pairs}) > 1))


def _cropped(x: Tensor, scales: Sequence[Factor], axes: Sequence[int], roi: Sequence[float]) -> tuple[Size, ...]:
    n = len(axes)
    if len(scales) != n or len(roi) != 2 * n or any(isinstance(s, Ratio) for s in scales):
        raise OnnxError(f"expected {n} scales and a roi of {2 * n} values, found {list(scales)} and {len(roi)}")
    return tuple(_extent(x.shape[a], (roi[n + i] - roi[i]) * s) for i, (a, s) in enumerate(zip(axes, scales, strict=True)))  # type: ignore[operator] # numbers


def _sizes(x: Tensor, sizes: Sequence[Size], axes: Sequence[int], policy: str) -> tuple[tuple[Size, ...], tuple[Factor, ...]]:
    """Sizes and factors; a policy other than stretch has one factor for all axes (operator set 18)."""
    factors = tuple(_quotient(s, x.shape[a]) for s, a in zip(sizes, axes, strict=True))
    if policy == "stretch":
        return tuple(sizes), factors
    # Where not all are numbers, all are the same.
    numbers = [f for f in factors if isinstance(f, float)]
    factor = factors[0] if len(numbers) < len(factors) else min(numbers) if policy == "not_larger" else max(numbers)
    return tuple(_extent(x.shape[a], factor, 0.5) for a in axes), (factor,) * len(axes)


def _quotient(size: Size, by: Size) -> Factor:
    if by == 0:
        raise OnnxError("input X: expected axes with elements to resize, found one of size 0")
    if isinstance(size, int) and isinstance(by, int):
        return size / by
    found = Ratio.of(size, by)
    return found.num / found.den if isinstance(found.num, int) and isinstance(found.den, int) else found
