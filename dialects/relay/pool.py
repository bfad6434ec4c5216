"""Poolings: nn.max_pool1d/2d/3d, nn.avg_pool1d/2d/3d, nn.global_max_pool2d, nn.global_avg_pool2d, nn.adaptive_max/avg_pool1d/2d/3d.

All keep the layout of their data, which may be blocked in its channels ("NCHW16c").
"""

from dataclasses import dataclass

from relayc.dialects.relay.base import Ints, LayoutRole, Operand, Pattern, Precision, Sizes, TensorType, View, declare
from relayc.dialects.relay.images import ImageOp, image_layout
from relayc.dialects.relay.kinds import NUMBER
from relayc.dialects.relay.layout import Layout
from relayc.dialects.relay.window import AXES, SPATIAL, Pairs, padding_pairs, per_axis, windows


@dataclass(frozen=True)
class PoolGeometry:
    """The attributes of a pooling in long form: one entry per spatial axis, the layout parsed."""

    spatial: str
    pool_size: Ints
    strides: Ints
    dilation: Ints
    pads: Pairs
    layout: Layout

    @staticmethod
    def of(op: "View | Pool", n: int) -> "PoolGeometry":
        """Of the attributes of `op`, a pooling over `n` spatial axes. Raises RelayError for values that say nothing."""
        return PoolGeometry(
            spatial=SPATIAL[n],
            pool_size=per_axis(op.pool_size, n, "pool_size"),
            strides=per_axis(op.strides, n, "strides"),
            dilation=per_axis(op.dilation, n, "dilation"),
            pads=padding_pairs(op.padding, n),
            layout=image_layout(op.layout, n),
        )


class Pool(ImageOp):
    """A pooling by windows of one size."""

    data: Operand
    ceil_mode: bool = False
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    spatial_rank = 0

    def geometry(self) -> PoolGeometry:
        """The attributes in long form."""
        return PoolGeometry.of(self, self.spatial_rank)

    @classmethod
    def infer(cls, op: View) -> TensorType:
        g = PoolGeometry.of(op, cls.spatial_rank)
        NUMBER.require("data", op.data)
        dims = g.layout.logical(op.data.shape)
        for i, axis in enumerate(g.spatial):
            dims[axis] = windows(dims[axis], g.pool_size[i], g.strides[i], g.dilation[i], g.pads[i], op.ceil_mode, axis)
        return op.data.with_shape(g.layout.shape(dims))


class MaxPool(Pool):
    """The largest element of each window."""

    precision = Precision.EXACT


class AvgPool(Pool):
    """Averages count the elements of the window that lie in the data, with `count_include_pad` those in the padding too. Means
    of integers are rounded towards 0."""

    count_include_pad: bool = False
    precision = Precision.AVERAGE


for _base, _names, _what in (
    (MaxPool, "nn.max_pool", "Largest element of each window over {} (Relay {}; ONNX MaxPool)."),
    (AvgPool, "nn.avg_pool", "Mean of each window over {} (Relay {}; ONNX AveragePool)."),
):
    for _n, _axes in AXES.items():
        _ones, _name = (1,) * _n, f"{_names}{_n}d"
        _attributes = {"pool_size": _ones, "strides": _ones, "dilation": _ones, "padding": (0,) * _n, "layout": f"NC{SPATIAL[_n]}"}
        _facts = {"layout_role": LayoutRole.FOLLOWS, "layout_gain": 0.5} if _n == 2 else {}
        declare(_base, {_name: _what.format(_axes, _name)}, _attributes, spatial_rank=_n, **_facts)


class GlobalPool2d(ImageOp):
    """Both spatial axes reduced, which stay with length 1; `reduction` is the operator that does the same over them."""

    data: Operand
    layout: str = "NCHW"
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    reduction = ""
    layout_role = LayoutRole.JOINS

    @classmethod
    def infer(cls, op: View) -> TensorType:
        NUMBER.require("data", op.data)
        parsed = image_layout(op.layout, 2)
        return op.data.with_shape(parsed.shape({**parsed.logical(op.data.shape), "H": 1, "W": 1}))


for _name, _reduction, _what, _precision in (
    ("nn.global_max_pool2d", "max", "Largest element", Precision.EXACT),
    ("nn.global_avg_pool2d", "mean", "Mean", Precision.AVERAGE),
):
    _doc = f"{_what} over both spatial axes, which stay with length 1 (Relay {_name})."
    declare(GlobalPool2d, {_name: _doc}, precision=_precision, reduction=_reduction)


class AdaptivePool(ImageOp):
    """Output i along an axis takes the elements from floor(i * in / out) up to ceil((i + 1) * in / out).

    `reduction` is the operator that does the same where the result has one element along each axis.
    """

    data: Operand
    output_size: Sizes = ()
    pattern = Pattern.OUT_ELEMWISE_FUSABLE
    spatial_rank = 0
    reduction = ""

    @classmethod
    def infer(cls, op: View) -> TensorType:
        NUMBER.require("data", op.data)
        parsed, letters = image_layout(op.layout, cls.spatial_rank), SPATIAL[cls.spatial_rank]
        dims = parsed.logical(op.data.shape)
        if op.output_size:
            dims.update(zip(letters, per_axis(op.output_size, len(letters), "output_size"), strict=True))
        return op.data.with_shape(parsed.shape(dims))


for _reduction, _what, _precision in (("max", "Maxima", Precision.EXACT), ("avg", "Means", Precision.AVERAGE)):
    for _n in AXES:
        _name = f"nn.adaptive_{_reduction}_pool{_n}d"
        _doc = f"{_what} such that the result has output_size elements (Relay {_name})."
        _facts = {"precision": _precision, "reduction": "max" if _reduction == "max" else "mean"}
        declare(AdaptivePool, {_name: _doc}, {"layout": f"NC{SPATIAL[_n]}"}, spatial_rank=_n, **_facts)
