"""Resampling of images: image.resize1d/2d/3d, nn.upsampling and nn.upsampling3d."""

from relayc.dialects.relay.base import Floats, LayoutRole, Operand, Pattern, Precision, Sizes, TensorType, View, check, declare
from relayc.dialects.relay.conditions import require_at_least, require_at_most
from relayc.dialects.relay.images import ImageOp, image_layout
from relayc.dialects.relay.kinds import NUMBER
from relayc.dialects.relay.shapes import shape_text
from relayc.dialects.relay.window import SPATIAL, per_axis
from relayc.symbolic import Size, minimum

METHODS = ("nearest_neighbor", "linear", "cubic")
COORDINATE_MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
ROUNDING_METHODS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


LONGEST = 1 << 24
"""Elements along a resampled axis: their positions are computed in float32, which has no more whole numbers."""


class _Resampling(ImageOp):
    """An operator that reads its image at computed positions."""

    data: Operand
    pattern = Pattern.INJECTIVE
    gathers = True
    precision = Precision.FOLLOW


class _Resize(_Resampling):
    """What the resizing operators share.

    Attributes:
      size: elements of each spatial axis in the result.
      roi: the starts of all axes, then their ends, as fractions; read by tf_crop_and_resize only.
      method: nearest_neighbor, linear or cubic.
      coordinate_transformation_mode: how a position in the result becomes one in data; the names and rules of ONNX Resize.
      rounding_method: of nearest_neighbor; where empty, round (halves up) for align_corners, else floor, of what is no less than
        a whole position by rounding errors.
      cubic_alpha, cubic_exclude: the coefficient of cubic; whether positions outside data have no weight (not 0) or the edge's value (0).
      extrapolation_value: of positions outside data under tf_crop_and_resize.
      scales: not in Relay: the factors that coordinates are computed with; size by size where empty (ONNX uses the factors given).
    """

    size: Sizes
    roi: Floats = ()
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = ""
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: str = ""
    scales: Floats = ()
    spatial_rank = 0

    @classmethod
    def infer(cls, op: View) -> TensorType:
        letters = SPATIAL[cls.spatial_rank]
        parsed = image_layout(op.layout, cls.spatial_rank)
        NUMBER.require("data", op.data)
        check(op.method in METHODS, "method", " or ".join(METHODS), op.method)
        mode = op.coordinate_transformation_mode
        check(mode in COORDINATE_MODES, "coordinate_transformation_mode", " or ".join(COORDINATE_MODES), mode)
        check(op.rounding_method in ROUNDING_METHODS, "rounding_method", " or ".join(ROUNDING_METHODS[1:]), op.rounding_method)
        check(len(op.scales) in (0, len(letters)), "scales", f"{len(letters)} values", op.scales)
        check(all(s > 0 for s in op.scales), "scales", "values above 0", op.scales)
        if mode == "tf_crop_and_resize":
            check(len(op.roi) == 2 * len(letters), "roi", f"{2 * len(letters)} values", op.roi)
        dims = parsed.logical(op.data.shape)
        for axis in letters:
            require_at_least(1, dims[axis], f"data along axis {axis}", "at least one element", dims[axis])
        dims.update(zip(letters, per_axis(op.size, len(letters), "size"), strict=True))
        for size in op.size:
            require_at_most(LONGEST, size, "size", f"at most {LONGEST} elements", shape_text(op.size))
        return TensorType(parsed.shape(dims), op.out_dtype or op.data.dtype)


for _n, _axes in {1: "spatial axis", 2: "two spatial axes", 3: "three spatial axes"}.items():
    _doc = f"Resamples the {_axes} to `size` elements (Relay image.resize{_n}d; ONNX Resize)."
    _facts = {"layout_role": LayoutRole.FOLLOWS, "layout_gain": 2.0} if _n == 2 else {}
    declare(_Resize, {f"image.resize{_n}d": _doc}, {"layout": f"NC{SPATIAL[_n]}"}, spatial_rank=_n, **_facts)


_FINEST = 1 << 16
"""Largest denominator of a factor of a symbolic length, so that the product stays within 64 bits."""


def _rounded(length: Size, scale: float) -> Size:
    """length * scale, rounded as Python does: halves to even. Raises RelayError for an expression and a scale of no small denominator."""
    if isinstance(length, int):
        return round(length * scale)
    num, den = scale.as_integer_ratio()
    check(den <= _FINEST, "scale", f"a fraction of a denominator of at most {_FINEST} for a length of {length}", scale)
    rounded, rest = divmod(length * num * 2 + den, 2 * den)
    # Of a half, which is rounded up first, an odd result is one too many.
    is_half = 1 - minimum(rest, 1) if den % 2 == 0 else 0
    return rounded - is_half * (rounded % 2)


def _upsampled(op: View, scales: Floats, methods: tuple[str, ...]) -> TensorType:
    letters = SPATIAL[len(scales)]
    parsed = image_layout(op.layout, len(scales))
    NUMBER.require("data", op.data)
    check(op.method in methods, "method", " or ".join(methods), op.method)
    check(all(s > 0 for s in scales), "scale", "values above 0", scales)
    dims = parsed.logical(op.data.shape)
    for axis, scale in zip(letters, scales, strict=True):
        length = dims[axis]
        dims[axis] = None if length is None else _rounded(length, scale)
        require_at_most(LONGEST, dims[axis], "size", f"at most {LONGEST} elements", dims[axis])
    return op.data.with_shape(parsed.shape(dims))


class Upsampling(_Resampling, name="nn_upsampling", relay_name="nn.upsampling"):
    """Enlarges both spatial axes by scale_h and scale_w (Relay nn.upsampling).

    method is nearest_neighbor, bilinear or bicubic; coordinates follow align_corners if it is set, otherwise asymmetric.
    """

    scale_h: float = 1.0
    scale_w: float = 1.0
    layout: str = "NCHW"
    method: str = "nearest_neighbor"
    align_corners: bool = False
    layout_role = LayoutRole.FOLLOWS
    layout_gain = 1.0

    @staticmethod
    def infer(op: View) -> TensorType:
        return _upsampled(op, (op.scale_h, op.scale_w), ("nearest_neighbor", "bilinear", "bicubic"))


class Upsampling3d(_Resampling, name="nn_upsampling3d", relay_name="nn.upsampling3d"):
    """Enlarges the three spatial axes by scale_d, scale_h and scale_w (Relay nn.upsampling3d); method nearest_neighbor or trilinear."""

    scale_d: float = 1.0
    scale_h: float = 1.0
    scale_w: float = 1.0
    layout: str = "NCDHW"
    method: str = "nearest_neighbor"
    coordinate_transformation_mode: str = "half_pixel"

    @staticmethod
    def infer(op: View) -> TensorType:
        mode = op.coordinate_transformation_mode
        check(mode in COORDINATE_MODES[:-1], "coordinate_transformation_mode", " or ".join(COORDINATE_MODES[:-1]), mode)
        return _upsampled(op, (op.scale_d, op.scale_h, op.scale_w), ("nearest_neighbor", "trilinear"))
