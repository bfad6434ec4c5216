"""Winograd convolution in three operators: the tiles of the data transformed, a grouped 1x1 convolution, and the tiles transformed back.

F(4x4, 3x3) of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2015): a tile of 4x4 outputs of a 3x3 convolution needs 36
multiplications for each pair of channels instead of 144.
"""

from collections.abc import Sequence

import numpy as np

from relayc.dialects.relay.base import Ints, Op, Operand, Pattern, Size, TensorType, View, check
from relayc.dialects.relay.conditions import require_divides
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.window import padding_pairs
from relayc.symbolic import ceil_div

TILE = 4
"""Outputs of a tile along each axis; it reads TILE + 2 data elements."""


def matrices(points: Sequence[float], tile: int, taps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The transforms A^T, B^T and G of F(tile, taps): its outputs are A^T ((G g) * (B^T d)), of taps g and tile + taps - 1 data elements d.

    By the algorithm of Cook and Toom: polynomials are multiplied by their values at tile + taps - 2 points and at infinity. The sums over
    windows are the transpose of this product. The factors of the interpolation are in G; the first one is positive.
    """
    at = np.array(points, np.float64)
    scale = np.array([np.prod(a - np.delete(at, i)) for i, a in enumerate(at)])
    signs = np.where(np.arange(len(at)) == 0, np.sign(scale), 1)
    infinity = [[0.0] * (size - 1) + [1.0] for size in (tile, taps)]
    results = np.vstack([at[:, None] ** np.arange(tile), infinity[0]])
    weights = np.vstack([at[:, None] ** np.arange(taps) / (signs * scale)[:, None], infinity[1]])
    others = [sign * np.append(np.poly(np.delete(at, i))[::-1], 0.0) for i, sign in enumerate(signs)]
    return results.T, np.vstack([*others, np.poly(at)[::-1]]) + 0.0, weights + 0.0  # no zero is negative


RESULT, DATA, WEIGHT = matrices((0, 1, -1, 2, -2), TILE, 3)
"""The transforms back A^T: m -> A^T m A, of the data B^T: d -> B^T d B, and of the weight G: g -> G g G^T."""
POINTS = DATA.shape[0] ** 2
"""Attribute of operations, and of kernels made of them, that compute an operator with fewer floating-point operations than it is by its
definition: how many that are. Where several operations do so together, one has them all and the others have 0."""


def transform_weights(weight: np.ndarray) -> np.ndarray:
    """Weights [O, I, 3, 3] as those of the grouped 1x1 convolution: [36 * O, I, 1, 1], a group for each point."""
    channels, per_group = weight.shape[:2]
    both, filters = np.kron(WEIGHT, WEIGHT), weight.reshape(channels * per_group, 9)
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
