"""Convolutions in two operators: one transforms the weight ahead of time, the other convolves with a weight that is transformed.

Winograd's transforms are those of relayc.dialects.relay.winograd, at the points at which Relay has them. Weights of products of matrices
(gemm) are cut into tiles, with zeros behind.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from relayc.dialects.relay.attributes import Ints
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.types import BYTES
from relayc.dialects.relay.window import padding_pairs, per_axis
from relayc.dialects.relay.winograd import matrices
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.registry import CONV, composed
from relayc.frontend.steps import cast, filled, reshape, strided_slice, transpose
from relayc.symbolic import Size, ceil_div

_FIRST, _NEXT = (0, -1, 1, 1 / 2), (0, -1, 1, 1 / 2, -1 / 2, 2, -2, -1 / 4)
_POINTS: dict[int, tuple[float, ...]] = {
    3: _FIRST[:3],
    4: _FIRST,
    5: (*_FIRST, -2),
    6: (*_FIRST, -2, -1 / 2),
    7: _NEXT[:7],
    8: _NEXT,
    9: (*_NEXT, 4),
    10: (*_NEXT, 3 / 4, -4 / 3),
    11: (*_NEXT, 4, 3 / 4, -4 / 3),
    12: (*_NEXT, 4, 3 / 4, -4 / 3, 1 / 4),
    13: (*_NEXT, 4, 1 / 4, -3 / 4, 4 / 3, -4),
}
"""Points by their number, of small errors (Barabasz and others, Error Analysis and Improving the Accuracy of Winograd Convolution for Deep
Neural Networks, 2020)."""


def _matrices(tile: int, taps: Size) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    check(1 < tile < 9, "tile_size", "2 to 8", tile)
    check(isinstance(taps, int) and 2 < taps < 8, "size of the kernel", "3 to 7", taps)
    return matrices(_POINTS[tile + taps - 2], tile, taps)  # type: ignore[arg-type,index] # checked


def _applied(x: Tensor, matrix: np.ndarray, count: int) -> Tensor:
    """A matrix applied to each of the first `count` axes of x: these axes come last, in their order."""
    rows, columns = matrix.shape
    made, shape = constant(matrix.T, x.dtype), x.shape
    for _ in range(count):
        x = emit("nn.matmul", reshape(x, (columns, prod(x.shape) // columns)), made, transpose_a=True)
    return reshape(x, (*shape[count:], *(rows,) * count))


def _weight(weight: Tensor, tile: int, axes: int) -> Tensor:
    """Weights [O, I, ...] with their last axes transformed: these come first, then those of ..., O and I."""
    taps, inner = weight.shape[-1], list(range(2, weight.rank - axes))
    check(set(weight.shape[-axes:]) == {taps}, "weight", f"{axes} equal sizes behind", weight.shape)
    spatial = list(range(weight.rank - axes, weight.rank))
    found = _applied(transpose(weight, [*spatial, *inner, 0, 1]), _matrices(tile, taps)[2], axes)
    rest = found.rank - axes
    return transpose(found, [*range(rest, found.rank), *range(rest)])


@composed("nn.contrib_conv2d_winograd_weight_transform")
def conv2d_winograd_weight_transform(weight: Tensor, *, tile_size: int) -> Tensor:
    """Weights OIHW as [tile + H - 1, tile + W - 1, O, I]."""
    check(weight.rank == 4, "rank of weight", 4, weight.rank)
    return _weight(weight, tile_size, 2)


@composed("nn.contrib_conv3d_winograd_weight_transform")
def conv3d_winograd_weight_transform(weight: Tensor, *, tile_size: int) -> Tensor:
    """Weights OIDHW as [tile + D - 1, tile + H - 1, tile + W - 1, O, I], or [tile + H - 1, tile + W - 1, D, O, I] where D is not H."""
    check(weight.rank == 5, "rank of weight", 5, weight.rank)
    return _weight(weight, tile_size, 3 if weight.shape[2] == weight.shape[3] else 2)


@composed("nn.contrib_conv2d_winograd_nnpack_weight_transform")
def conv2d_winograd_nnpack_weight_transform(weight: Tensor, *, convolution_algorithm: int, out_dtype: str = "") -> Tensor:
    """Weights [O, I, 3, 3] transformed for tiles of 6x6, as [O, I, 8, 8]: NNPACK's algorithms 3 and 6, or its own choice, 0."""
    check(convolution_algorithm in (0, 3, 6), "convolution_algorithm", "one on tiles (3 or 6), or 0", convolution_algorithm)
    check(weight.rank == 4 and weight.shape[2:] == (3, 3), "weight", "kernels of 3x3", weight.shape)
    return cast(transpose(_weight(weight, 6, 2), (2, 3, 0, 1)), out_dtype or weight.dtype)


def _tiled(x: Tensor, matrix: np.ndarray, tile: int, first: int) -> Tensor:
    """Overlapping tiles, `tile` apart, of spatial axes from `first` on, transformed: [N, C, ...] -> [N, C, rows of matrix..., tiles...].

    A row of the matrix is a filter along an axis.
    """
    batch, channels, n = x.shape[0], x.shape[1], x.rank - 2
    x = reshape(x, (batch * channels, 1, *x.shape[2:]))
    for axis in range(first, n):
        shape = [len(matrix), 1, *(matrix.shape[1] if i == axis else 1 for i in range(n))]
        x = emit(f"nn.conv{n}d", x, constant(matrix.reshape(shape), x.dtype), strides=[tile if i == axis else 1 for i in range(n)])
        x = reshape(x, (x.shape[0] * len(matrix), 1, *x.shape[2:]))
    return reshape(x, (batch, channels, *(len(matrix),) * (n - first), *x.shape[2:]))


def _convolved(data: Tensor, points: Tensor, tile: int, strides: Ints, padding: Ints) -> Tensor:
    """The convolution of [N, C, ...] by points [points..., O, C] of all axes, or [points..., D, O, C] of all but the first one."""
    n, alpha = data.rank - 2, points.shape[0]
    if not isinstance(alpha, int):
        raise RelayError(f"weight: expected points whose number is known, found {alpha}")
    first = int(n == 3 and points.shape[2] != alpha)
    depth, (out, channels) = points.shape[2] if first else 1, points.shape[-2:]
    back, forth, _ = _matrices(tile, alpha - tile + 1)
    steps = per_axis(strides, n, "strides")
    check(set(steps[first:]) == {1}, "strides", "steps of 1", steps)
    width: list[Size] = [0] * 4
    sizes = []
    for i, (before, after) in enumerate(padding_pairs(padding, n)):
        size = data.shape[2 + i] + before + after - (depth if i < first else alpha - tile + 1) + 1
        sizes.append((size - 1) // steps[i] + 1)
        width += [before, after if i < first else after + ceil_div(size, tile) * tile - size]
    padded = emit("nn.pad", data, filled((), 0, data.dtype), pad_width=width, pad_mode="constant")
    x, axes, batch = _tiled(padded, forth, tile, first), n - first, data.shape[0]
    count, maps = alpha**axes, x.shape[2 + axes :]
    x = transpose(reshape(x, (batch, channels, count, *maps)), (0, 2, 1, *range(3, 3 + n)))
    order = (*range(axes), points.rank - 2, points.rank - 1, *range(axes, points.rank - 2))
    weight = reshape(transpose(points, order), (count * out, channels, depth, *(1,) * (n - 1)))
    attrs = {"strides": steps, "groups": count, "channels": count * out}
    x = emit(f"nn.conv{n}d", reshape(x, (batch, count * channels, *maps)), weight, **attrs)
    maps = x.shape[2:]
    apart = reshape(x, (batch, *(alpha,) * axes, out, *maps))
    x = _applied(transpose(apart, (*range(1, axes + 1), 0, *range(axes + 1, apart.rank))), back, axes)
    rest = 2 + n  # the following axes are the elements of a tile
    pairs = [a for i in range(n) for a in ((2 + i,) if i < first else (2 + i, rest + i - first))]
    whole = reshape(transpose(x, (0, 1, *pairs)), (batch, out, *(m if i < first else m * tile for i, m in enumerate(maps))))
    return strided_slice(whole, [0] * n, sizes, [1] * n, range(2, rest))


def _without_transform(data: Tensor, weight: Tensor, tile: int, own: Size, attrs: Mapping[str, Any]) -> Tensor:
    """As _convolved, with the attributes checked; `own` is the number of channels of the weight."""
    check(set(attrs["dilation"]) == {1}, "dilation", "windows of neighbours", attrs["dilation"])
    check(attrs["groups"] == 1, "groups", 1, attrs["groups"])
    check(weight.rank == data.rank and weight.shape[0] == weight.shape[1], "weight", "a transformed one", weight.shape)
    check(own == data.shape[1], f"channels of weight {list(weight.shape)}", f"those of the data, {data.shape[1]}", own)
    check(attrs["channels"] in (None, weight.shape[-2]), "channels", f"those of the weight, {weight.shape[-2]}", attrs["channels"])
    return cast(_convolved(data, weight, tile, attrs["strides"], attrs["padding"]), attrs["out_dtype"] or data.dtype)


@composed("nn.contrib_conv2d_winograd_without_weight_transform", attributes=CONV)
def conv2d_winograd_without_weight_transform(data: Tensor, weight: Tensor, *, tile_size: int, **attrs: Any) -> Tensor:
    """nn.conv2d by a transformed weight: as in Relay's passes [rows, columns, I, O] for NCHW, and [rows, columns, O, I] for NHWC."""
    layout = attrs["data_layout"]
    check(layout in ("NCHW", "NHWC") and attrs["out_layout"] in ("", layout), "data_layout", "NCHW or NHWC, as the result has", layout)
    is_last = layout == "NHWC"
    x = transpose(data, (0, 3, 1, 2)) if is_last else data
    weight = weight if is_last else transpose(weight, (0, 1, 3, 2))
    found = _without_transform(x, weight, tile_size, weight.shape[3], attrs)
    return transpose(found, (0, 2, 3, 1)) if is_last else found


_CONV3D = {"strides": (1, 1, 1), "padding": (0, 0, 0), "dilation": (1, 1, 1), "data_layout": "NCDHW", "kernel_layout": "OIDHW"}


@composed("nn.contrib_conv3d_winograd_without_weight_transform", attributes={**CONV, **_CONV3D})
def conv3d_winograd_without_weight_transform(data: Tensor, weight: Tensor, *, tile_size: int, **attrs: Any) -> Tensor:
    """nn.conv3d with a weight from conv3d_winograd_weight_transform."""
    layout = attrs["data_layout"]
    check(layout == "NCDHW" and attrs["out_layout"] in ("", layout), "data_layout", "NCDHW", layout)
    return _without_transform(data, weight, tile_size, weight.shape[4], attrs)


# ---- products of matrices ---------------------------------------------------------------------------------------------------------------


def _tile_order(dtype: str) -> tuple[int, ...]:
    """The axes (tile of N, tile of K, N in it, K in it) of tiles of weights: those of bytes have K last."""
    return (0, 1, 2, 3) if dtype in BYTES else (0, 1, 3, 2)


@composed("nn.contrib_conv2d_gemm_weight_transform")
def conv2d_gemm_weight_transform(weights: Tensor, *, tile_N: int, tile_K: int) -> Tensor:
    """Weights HWIO as tiles of the matrix [H * W * I, O]: of it, K has zeros behind up to 4 tiles, and N up to one."""
    depth, units = prod(weights.shape[:3]), weights.shape[3]
    width = (0, -depth % (4 * tile_K), 0, -units % tile_N)
    flat = emit("nn.pad", reshape(weights, (depth, units)), filled((), 0, weights.dtype), pad_width=width, pad_mode="constant")
    rows, columns = flat.shape
    tiles = transpose(reshape(flat, (rows // tile_K, tile_K, columns // tile_N, tile_N)), (2, 0, 3, 1))
    return transpose(tiles, _tile_order(weights.dtype))


@composed("nn.contrib_conv2d_gemm_without_weight_transform", attributes=CONV)
def conv2d_gemm_without_weight_transform(data: Tensor, weight: Tensor, **attrs: Any) -> Tensor:
    """nn.conv2d of images NHWC by tiles of a weight as conv2d_gemm_weight_transform gives them."""
    layout, kernel_size, channels = (attrs[name] for name in ("data_layout", "kernel_size", "channels"))
    check(layout == "NHWC" and attrs["out_layout"] in ("", "NHWC"), "data_layout", "NHWC", layout)
    check(attrs["groups"] == 1, "groups", 1, attrs["groups"])
    if kernel_size is None or channels is None:
        raise RelayError(f"kernel_size and channels: expected those of the weight, found {kernel_size} and {channels}")
    check(weight.rank == 4, "rank of weight", 4, weight.rank)
    kernel = per_axis(kernel_size, 2, "kernel_size")
    tiles = transpose(weight, _tile_order(weight.dtype))
    n_tiles, k_tiles, n, k = tiles.shape
    flat = reshape(transpose(tiles, (1, 3, 0, 2)), (k_tiles * k, n_tiles * n))
    used = strided_slice(flat, [0, 0], [prod(kernel) * data.shape[3], channels], [1, 1], [0, 1])
    same = {name: attrs[name] for name in ("strides", "padding", "dilation", "data_layout", "out_dtype")}
    return emit("nn.conv2d", data, reshape(used, (*kernel, data.shape[3], channels)), **same, kernel_layout="HWIO")
