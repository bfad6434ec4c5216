"""Blocks of images: nn.col2im puts them together, nn.max_pool_indices finds where the largest elements of windows are."""

from relayc.dialects.relay.base import Ints, Op, Operand, Pattern, Sizes, TensorType, View, check
from relayc.dialects.relay.conditions import require_equal, require_type
from relayc.dialects.relay.kinds import NUMBER
from relayc.dialects.relay.pool import PoolGeometry
from relayc.dialects.relay.shapes import shape_text
from relayc.dialects.relay.window import SPATIAL, padding_pairs, per_axis, windows


class Col2Im(Op, name="nn_col2im", relay_name="nn.col2im"):
    """The sum of blocks, each at its place in an image (ONNX Col2Im; not in Relay).

    data [batch, channels, *block, *blocks] has an element of each place in a block, and of each block, for one to three axes of an image;
    the result is [batch, channels, *image_shape]. Block b has the elements b * stride + i * dilation - padding before of each axis; what of
    it lies in the padding is left out.
    """

    data: Operand
    image_shape: Sizes
    strides: Ints = (1,)
    dilation: Ints = (1,)
    padding: Ints = (0,)
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    @staticmethod
    def infer(op: View) -> TensorType:
        NUMBER.require("data", op.data)
        n = len(op.image_shape)
        check(n in SPATIAL, "image_shape", "one to three sizes", shape_text(op.image_shape))
        check(op.data.rank == 2 * n + 2, "data", f"rank {2 * n + 2} for images of {n} axes", op.data)
        strides, dilation = per_axis(op.strides, n, "strides"), per_axis(op.dilation, n, "dilation")
        pads = padding_pairs(op.padding, n)
        for i, axis in enumerate(SPATIAL[n]):
            expected = windows(op.image_shape[i], op.data.shape[2 + i], strides[i], dilation[i], pads[i], False, axis)
            require_equal(op.data.shape[2 + n + i], expected, f"data, dimension {2 + n + i}", expected, op.data)
        return op.data.with_shape((*op.data.shape[:2], *op.image_shape))


class MaxPoolIndices(Op, name="nn_max_pool_indices", relay_name="nn.max_pool_indices"):
    """Where in `data` the first element of each window is that is `largest`, the result of its pooling (ONNX MaxPool; not in Relay).

    Indices are those of the flattened data, as int64; with `column_major` they count as if its spatial axes were in the opposite order.
    The layout is NCW, NCHW or NCDHW, by the number of axes.
    """

    data: Operand
    largest: Operand
    pool_size: Ints
    strides: Ints = (1,)
    dilation: Ints = (1,)
    padding: Ints = (0,)
    ceil_mode: bool = False
    column_major: bool = False
    layout: str = "NCHW"
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    @property
    def geometry(self) -> PoolGeometry:
        """The attributes in long form."""
        return PoolGeometry.of(self, len(self.layout) - 2)

    @staticmethod
    def infer(op: View) -> TensorType:
        NUMBER.require("data", op.data)
        n = op.data.rank - 2
        check(n in SPATIAL and op.layout == f"NC{SPATIAL[n]}", "layout", "NCW, NCHW or NCDHW, as data has axes", op.layout)
        g = PoolGeometry.of(op, n)
        dims = list(op.data.shape)
        for i, axis in enumerate(g.spatial):
            dims[2 + i] = windows(dims[2 + i], g.pool_size[i], g.strides[i], g.dilation[i], g.pads[i], op.ceil_mode, axis)
        require_type(op.data.with_shape(dims), op.largest, "largest")
        return op.largest.with_dtype("int64")
