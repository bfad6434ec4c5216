"""Poolings: nn.max_pool1d/2d/3d, nn.avg_pool1d/2d/3d, nn.global_max_pool2d, nn.global_avg_pool2d, nn.adaptive_max/avg_pool1d/2d/3d.

All keep the layout of their data, which may be blocked in its channels ("NCHW16c").
"""

from dataclasses import dataclass

from relayc.dialects.relay.base import Ints, LayoutRole, Operand, Pattern, Precision, Sizes, TensorType, View, check
from relayc.dialects.relay.images import ImageOp
from relayc.dialects.relay.kinds import NUMBER
from relayc.dialects.relay.layout import Layout, layout
from relayc.dialects.relay.window import SPATIAL, Pairs, padding_pairs, per_axis, windows


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
    def of(op: "View | _Pool", n: int) -> "PoolGeometry":
        """Of the attributes of `op`, a pooling over `n` spatial axes. Raises RelayError for values that say nothing."""
        return PoolGeometry(
            spatial=SPATIAL[n],
            pool_size=per_axis(op.pool_size, n, "pool_size"),
            strides=per_axis(op.strides, n, "strides"),
            dilation=per_axis(op.dilation, n, "dilation"),
            pads=padding_pairs(op.padding, n),
            layout=pool_layout(op.layout, n),
        )


def pool_layout(text: str, n: int) -> Layout:
    """The layout of a pooling over `n` spatial axes. Raises RelayError where a spatial axis is blocked."""
    parsed = layout(text, "NC" + SPATIAL[n])
    check(parsed.blocks.keys() <= {"C"}, "layout", "only the axis C blocked", text)
    return parsed


class _Pool(ImageOp):
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


class MaxPool1d(_Pool, name="nn_max_pool1d", relay_name="nn.max_pool1d"):
    """Largest element of each window over one axis (Relay nn.max_pool1d; ONNX MaxPool)."""

    pool_size: Ints = (1,)
    strides: Ints = (1,)
    dilation: Ints = (1,)
    padding: Ints = (0,)
    layout: str = "NCW"
    spatial_rank = 1
    precision = Precision.EXACT


class MaxPool2d(_Pool, name="nn_max_pool2d", relay_name="nn.max_pool2d"):
    """Largest element of each window over two axes (Relay nn.max_pool2d; ONNX MaxPool)."""

    pool_size: Ints = (1, 1)
    strides: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding: Ints = (0, 0)
    layout: str = "NCHW"
    spatial_rank = 2
    precision = Precision.EXACT
    layout_role = LayoutRole.FOLLOWS
    layout_gain = 0.5


class MaxPool3d(_Pool, name="nn_max_pool3d", relay_name="nn.max_pool3d"):
    """Largest element of each window over three axes (Relay nn.max_pool3d; ONNX MaxPool)."""

    pool_size: Ints = (1, 1, 1)
    strides: Ints = (1, 1, 1)
    dilation: Ints = (1, 1, 1)
    padding: Ints = (0, 0, 0)
    layout: str = "NCDHW"
    spatial_rank = 3
    precision = Precision.EXACT


class AvgPool(_Pool):
    """Averages count the elements of the window that lie in the data, with `count_include_pad` those in the padding too. Means
    of integers are rounded towards 0."""

    count_include_pad: bool = False
    precision = Precision.AVERAGE


class AvgPool1d(AvgPool, name="nn_avg_pool1d", relay_name="nn.avg_pool1d"):
    """Mean of each window over one axis (Relay nn.avg_pool1d; ONNX AveragePool)."""

    pool_size: Ints = (1,)
    strides: Ints = (1,)
    dilation: Ints = (1,)
    padding: Ints = (0,)
    layout: str = "NCW"
    spatial_rank = 1


class AvgPool2d(AvgPool, name="nn_avg_pool2d", relay_name="nn.avg_pool2d"):
    """Mean of each window over two axes (Relay nn.avg_pool2d; ONNX AveragePool)."""

    pool_size: Ints = (1, 1)
    strides: Ints = (1, 1)
    dilation: Ints = (1, 1)
    padding: Ints = (0, 0)
    layout: str = "NCHW"
    spatial_rank = 2
    layout_role = LayoutRole.FOLLOWS
    layout_gain = 0.5


class AvgPool3d(AvgPool, name="nn_avg_pool3d", relay_name="nn.avg_pool3d"):
    """Mean of each window over three axes (Relay nn.avg_pool3d; ONNX AveragePool)."""

    pool_size: Ints = (1, 1, 1)
    strides: Ints = (1, 1, 1)
    dilation: Ints = (1, 1, 1)
    padding: Ints = (0, 0, 0)
    layout: str = "NCDHW"
    spatial_rank = 3


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
        parsed = pool_layout(op.layout, 2)
        return op.data.with_shape(parsed.shape({**parsed.logical(op.data.shape), "H": 1, "W": 1}))


class GlobalMaxPool2d(GlobalPool2d, name="nn_global_max_pool2d", relay_name="nn.global_max_pool2d"):
    """Largest element over both spatial axes, which stay with length 1 (Relay nn.global_max_pool2d)."""

    precision = Precision.EXACT
    reduction = "max"


class GlobalAvgPool2d(GlobalPool2d, name="nn_global_avg_pool2d", relay_name="nn.global_avg_pool2d"):
    """Mean over both spatial axes, which stay with length 1 (Relay nn.global_avg_pool2d)."""

    precision = Precision.AVERAGE
    reduction = "mean"


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
        parsed, letters = pool_layout(op.layout, cls.spatial_rank), SPATIAL[cls.spatial_rank]
        dims = parsed.logical(op.data.shape)
        if op.output_size:
            dims.update(zip(letters, per_axis(op.output_size, len(letters), "output_size"), strict=True))
        return op.data.with_shape(parsed.shape(dims))


class AdaptiveMaxPool1d(AdaptivePool, name="nn_adaptive_max_pool1d", relay_name="nn.adaptive_max_pool1d"):
    """Maxima such that the result has output_size elements (Relay nn.adaptive_max_pool1d)."""

    layout: str = "NCW"
    spatial_rank = 1
    precision = Precision.EXACT
    reduction = "max"


class AdaptiveMaxPool2d(AdaptivePool, name="nn_adaptive_max_pool2d", relay_name="nn.adaptive_max_pool2d"):
    """Maxima such that the result has output_size elements (Relay nn.adaptive_max_pool2d)."""

    layout: str = "NCHW"
    spatial_rank = 2
    precision = Precision.EXACT
    reduction = "max"


class AdaptiveMaxPool3d(AdaptivePool, name="nn_adaptive_max_pool3d", relay_name="nn.adaptive_max_pool3d"):
    """Maxima such that the result has output_size elements (Relay nn.adaptive_max_pool3d)."""

    layout: str = "NCDHW"
    spatial_rank = 3
    precision = Precision.EXACT
    reduction = "max"


class AdaptiveAvgPool1d(AdaptivePool, name="nn_adaptive_avg_pool1d", relay_name="nn.adaptive_avg_pool1d"):
    """Means such that the result has output_size elements (Relay nn.adaptive_avg_pool1d)."""

    layout: str = "NCW"
    spatial_rank = 1
    precision = Precision.AVERAGE
    reduction = "mean"


class AdaptiveAvgPool2d(AdaptivePool, name="nn_adaptive_avg_pool2d", relay_name="nn.adaptive_avg_pool2d"):
    """Means such that the result has output_size elements (Relay nn.adaptive_avg_pool2d)."""

    layout: str = "NCHW"
    spatial_rank = 2
    precision = Precision.AVERAGE
    reduction = "mean"


class AdaptiveAvgPool3d(AdaptivePool, name="nn_adaptive_avg_pool3d", relay_name="nn.adaptive_avg_pool3d"):
    """Means such that the result has output_size elements (Relay nn.adaptive_avg_pool3d)."""

    layout: str = "NCDHW"
    spatial_rank = 3
    precision = Precision.AVERAGE
    reduction = "mean"
