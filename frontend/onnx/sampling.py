"""Sampling of images at computed positions: GridSample, the positions that AffineGrid computes, and DeformConv."""

from collections.abc import Sequence
from functools import reduce
from math import lcm, prod

import numpy as np

from relayc.frontend.common.products import matmul
from relayc.frontend.common.windows import SPATIAL_LAYOUTS, explicit_padding, per_axis, spatial_rank
from relayc.frontend.converter import Tensor, assume, constant, emit, may_equal, simpler
from relayc.frontend.onnx.conv import window_of, with_bias
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import positions, size_tensor, sizes
from relayc.frontend.steps import (
    add,
    broadcast_to,
    cast,
    divide,
    in_float32,
    in_parts,
    multiply,
    reshape,
    strided_slice,
    subtract,
    transpose,
)
from relayc.symbolic import Size

_METHODS = {
    "nearest": "nearest_neighbor",
    "linear": "bilinear",
    "bilinear": "bilinear",
    "cubic": "bicubic",
    "bicubic": "bicubic",
}
"""Operator set 16 calls them by two dimensions."""


@converter(since=16)
def GridSample(x: Tensor, grid: Tensor, *, align_corners: bool = False, mode: str = "linear", padding_mode: str = "zeros") -> Tensor:
    n = spatial_rank(x)
    if mode not in _METHODS:
        raise OnnxError(f"attribute mode: expected {', '.join(_METHODS)}, found {mode!r}")
    if grid.rank != x.rank:
        raise OnnxError(f"input grid: expected rank {x.rank} as X has, found {list(grid.shape)}")
    batch = simpler(x.shape[0], grid.shape[0])
    x, grid = assume(x, (batch, *x.shape[1:])), assume(grid, (batch, *grid.shape[1:]))
    return emit(
        "image.grid_sample",
        x,
        transpose(grid, (0, grid.rank - 1, *range(1, grid.rank - 1))),
        method=_METHODS[mode],
        layout=SPATIAL_LAYOUTS[n],
        padding_mode=padding_mode,
        align_corners=align_corners,
    )


@converter(since=20)
def AffineGrid(theta: Tensor, size: Tensor, *, align_corners: bool = False) -> Tensor:
    """theta [N, k, k + 1] and the sizes N, C and k more: for each place of these, where theta moves it, [N, ..., k] with the last axis of
    the image first. Places are from -1 to 1: centers of pixels, or with `align_corners` those of the first and the last one."""
    batch, _, *extents = sizes(size, "size")
    k = len(extents)
    if theta.rank != 3 or k not in (2, 3) or not theta.is_float:
        raise OnnxError(f"expected theta [N, k, k + 1] of floats and k + 2 sizes, k of 2 or 3, found {theta.type} and {k + 2} sizes")
    theta = assume(theta, (batch, k, k + 1))

    def along(column: int) -> Tensor:
        return reshape(strided_slice(theta, (column,), (column + 1,), (1,), (2,)), (batch, *(1,) * k, k))

    found = along(k)
    for column, (axis, extent) in enumerate(reversed(list(enumerate(extents)))):
        at = _pixel_centers(extent, align_corners, theta.dtype)
        at = reshape(at, (1, *(extent if i == axis else 1 for i in range(k)), 1))
        found = add(found, multiply(at, along(column)))
    return broadcast_to(found, (batch, *extents, k))


def _pixel_centers(count: Size, align_corners: bool, dtype: str) -> Tensor:
    """The positions of pixels between -1 and 1."""
    number, total = cast(positions(count), dtype), cast(size_tensor(count), dtype)
    if align_corners:
        steps = emit("maximum", subtract(total, 1.0), constant(1.0, dtype))
        return subtract(divide(multiply(number, 2.0), steps), 1.0)
    return subtract(divide(add(multiply(number, 2.0), 1.0), total), 1.0)


@converter(since=19)
def DeformConv(
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    b: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The data that each place of the window reads is sampled for all windows, and multiplied with the weights in one product."""
    n = spatial_rank(x)
    if w.rank != x.rank or offset.rank != x.rank:
        raise OnnxError(f"inputs W and offset: expected rank {x.rank} as X has, found {list(w.shape)} and {list(offset.shape)}")
    kernel, stride, dilation = window_of(w, kernel_shape), per_axis(strides, n, "strides"), per_axis(dilations, n, "dilations")
    padding = explicit_padding(pads, n)
    spans = [(k - 1) * r + 1 for k, r in zip(kernel, dilation, strict=True)]
    out = [(d + padding[i] + padding[n + i] - spans[i]) // stride[i] + 1 for i, d in enumerate(x.shape[2:])]
    places, (batch, channels) = prod(kernel), x.shape[:2]
    groups = ((channels, group), (w.shape[0], group), (channels, offset_group))
    if group < 1 or offset_group < 1 or not all(may_equal(size % count, 0) for size, count in groups):
        raise OnnxError(f"expected channels in groups of {group} and of {offset_group}, found X {list(x.shape)} and W {list(w.shape)}")
    x, w = in_parts(x, 1, lcm(group, offset_group)), in_parts(w, 0, group)
    channels = x.shape[1]
    offset = assume(offset, (batch, offset_group * places * n, *out))
    if mask is not None:
        mask = assume(mask, (batch, offset_group * places, *out))
    parts = (batch * offset_group, channels // offset_group)

    def compute(y: Tensor) -> Tensor:
        moved = transpose(reshape(cast(offset, y.dtype), (batch * offset_group, places, n, *out)), (0, 2, 1, *range(3, n + 3)))
        at = emit("add", moved, _places(kernel, stride, dilation, padding, out, y.dtype))
        # Offsets are along the axes of the data in their order, a grid has them the other way round.
        grid = reshape(emit("reverse", at, axis=1), (parts[0], n, places * out[0], *out[1:]))
        read = emit("image.grid_sample", reshape(y, (*parts, *y.shape[2:])), grid, layout=SPATIAL_LAYOUTS[n], coordinates="pixel")
        if mask is not None:
            read = emit("multiply", read, reshape(cast(mask, y.dtype), (parts[0], 1, places * out[0], *out[1:])))
        columns = reshape(read, (batch, group, channels // group * places, prod(out)))
        weights = reshape(cast(w, y.dtype), (1, group, w.shape[0] // group, w.shape[1] * places))
        return reshape(matmul(weights, columns), (batch, w.shape[0], *out))

    return with_bias(in_float32(x, compute), b)


def _places(
    kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], padding: Sequence[int], out: Sequence[Size], dtype: str
) -> Tensor:
    """Where in the data the places of a window are, for each window, along each axis: [1, axes, places, *out]."""
    n = len(kernel)
    at = np.indices(kernel).reshape(n, -1) * np.reshape(dilations, (n, 1)) - np.reshape(padding[:n], (n, 1))
    in_window = constant(at.reshape(1, n, -1, *[1] * n), dtype)
    along = np.eye(n).reshape(n, 1, n, 1, *[1] * n)
    begins = [
        emit(
            "multiply",
            multiply(cast(reshape(positions(d), [d if j == 3 + i else 1 for j in range(n + 3)]), dtype), float(strides[i])),
            constant(along[i], dtype),
        )
        for i, d in enumerate(out)
    ]
    return reduce(lambda a, c: emit("add", a, c), begins, in_window)
