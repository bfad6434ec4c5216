"""Winograd convolution in three operators: the tiles of the data transformed, a grouped 1x1 convolution, and the tiles transformed back.

F(4x4, 3x3) of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2015): a tile of 4x4 outputs of a 3x3 convolution needs 36
multiplications for each pair of channels instead of 144.
"""

import numpy as np

from relayc.dialects.relay.base import Ints, Op, Operand, Pattern, Size, TensorType, View, check
from relayc.dialects.relay.conditions import require_divides
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.window import padding_pairs
from relayc.symbolic import ceil_div

TILE = 4
"""Outputs of a tile along each axis; it reads TILE + 2 data elements."""
DATA = np.array(
    [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]],
    np.float32,
)
"""The data transform B^T: d -> B^T d B."""
WEIGHT = np.array(
    [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]],
    np.float64,
)
"""The weight transform G: g -> G g G^T."""
RESULT = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], np.float32)
"""The transform back A^T: m -> A^T m A."""
POINTS = DATA.shape[0] ** 2
"""Attribute of operations, and of kernels made of them, that compute an operator with fewer floating-point operations than it is by its
definition: how many that are. Where several operations do so together, one has them all and the others have 0."""


def transform_weights(weight: np.ndarray) -> np.ndarray:
    """Weights [O, I, 3, 3] as those of the grouped 1x1 convolution: [36 * O, I, 1, 1], a group for each point."""
    channels, per_group = weight.shape[:2]
    both, filters = np.kron(WEIGHT, WEIGHT), weight.reshape(-1, 9)
    points = np.empty((POINTS, len(filters)), weight.dtype)
    # In pieces that stay in the cache as f64, and too small for BLAS to wake its threads.
    for start in range(0, len(filters), 800):
        points[:, start : start + 800] = both @ filters[start : start + 800].astype(np.float64).T
    return points.reshape(POINTS * channels, per_group, 1, 1)


def tiles(extent: Size) -> Size:
    """Tiles that cover `extent` outputs."""
    return ceil_div(extent, TILE)


class WinogradInputTransform(Op, name="nn_winograd_input_transform", relay_name="nn.winograd_input_transform"):
    """Tiles of 6x6 data elements, 4 apart, transformed: [N, C/c, H, W, c] -> [N, 36 * C/c, tiles, tiles, c], points outermost."""

    data: Operand
    padding: Ints = (1, 1, 1, 1)
    layout: str = "NCHW8c"
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    def independent_axes(self) -> tuple[int, ...]:
        return (0, 1)

    @staticmethod
    def infer(op: View) -> TensorType:
        parsed = layout(op.layout, "NCHW")
        check(parsed.axes[-1] == "c" and op.data.rank == 5, "layout", "blocks of channels, as in NCHW8c", op.layout)
        check(op.data.dtype in ("float32", "float64"), "data", "float32 or float64", op.data.dtype)
        n, c, h, w, inner = op.data.shape
        check(None not in (c, h, w), "data", "known channels and sizes", op.data)
        sizes = [tiles(size + low + high - 2) for size, (low, high) in zip((h, w), padding_pairs(op.padding, 2), strict=True)]
        return op.data.with_shape((n, POINTS * c, *sizes, inner))


class WinogradOutputTransform(Op, name="nn_winograd_output_transform", relay_name="nn.winograd_output_transform"):
    """Tiles transformed back to 4x4 outputs: [N, 36 * C/c, tiles, tiles, c] -> [N, C/c, height, width, c]."""

    data: Operand
    height: Size
    width: Size
    layout: str = "NCHW8c"
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    def independent_axes(self) -> tuple[int, ...]:
        return (0, 1)

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.data.rank == 5, "data", "5 dimensions", op.data)
        n, c, h, w, inner = op.data.shape
        expected = (tiles(op.height), tiles(op.width))
        check((h, w) == expected, "tiles of data", expected, (h, w))
        check(c is not None, "channels of data", f"a multiple of {POINTS}", c)
        channels = require_divides(POINTS, c, "channels of data", f"a multiple of {POINTS}", c)
        return op.data.with_shape((n, channels, op.height, op.width, inner))
