"""Operators of networks: losses, blocks of space, correlation and deformable convolution."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.registry import CONV, composed
from relayc.frontend.relay.op.composed.terms import Term
from relayc.frontend.steps import binary, cast, divide, multiply, reshape, strided_slice, transpose


@composed("nn.nll_loss")
def nll_loss(predictions: Tensor, targets: Tensor, weights: Tensor, *, reduction: str = "mean", ignore_index: int = -100) -> Tensor:
    """The negative predictions [n, classes, ...] at the targets [n, ...], weighted by class: each, their sum, or their weighted mean."""
    targets = cast(targets, "int64")
    count = predictions.shape[1]
    apart = reshape(targets, (targets.shape[0], 1, *targets.shape[1:]))
    safe = binary("minimum", binary("maximum", apart, 0), count - 1) if isinstance(count, int) else binary("maximum", apart, 0)
    chosen = reshape(emit("gather", predictions, safe, axis=1), targets.shape)
    counted = Term(emit("not_equal", targets, constant(ignore_index, "int64")))
    weight = counted.where(Term(emit("take", weights, targets, axis=0, mode="clip")), 0)
    losses = -(Term(chosen) * weight)
    if reduction == "none":
        return losses.tensor
    axes = tuple(range(targets.rank))
    total = emit("sum", losses.tensor, axis=axes)
    return total if reduction == "sum" else emit("divide", total, emit("sum", weight.tensor, axis=axes))


@composed("nn.cross_entropy")
def cross_entropy(x: Tensor, y: Tensor) -> Tensor:
    """The mean over the first axis of -sum(y * log(x))."""
    return _mean_entropy(emit("log", x), y)


@composed("nn.cross_entropy_with_logits")
def cross_entropy_with_logits(x: Tensor, y: Tensor) -> Tensor:
    """The mean over the first axis of -sum(y * x), of logarithms x."""
    return _mean_entropy(x, y)


def _mean_entropy(logarithms: Tensor, y: Tensor) -> Tensor:
    terms = emit("sum", emit("multiply", logarithms, y), axis=tuple(range(1, y.rank)))
    return multiply(emit("mean", terms, axis=(0,)), -1.0)


@composed("nn.space_to_batch_nd")
def space_to_batch_nd(data: Tensor, *, block_shape: Sequence[int], paddings: Sequence[Sequence[int]], pad_value: float = 0.0) -> Tensor:
    """Blocks of the axes after the first, padded, as more entries of the batch."""
    blocks = len(block_shape)
    width = [0, 0, *(w for pair in paddings for w in pair)]
    width += [0] * (2 * data.rank - len(width))
    padded = emit("nn.pad", data, constant(pad_value, data.dtype), pad_width=width, pad_mode="constant") if any(width) else data
    batch, *rest = padded.shape
    pairs = [d for size, block in zip(rest, block_shape, strict=False) for d in (size // block, block)]
    parts = reshape(padded, (batch, *pairs, *rest[blocks:]))
    order = (*range(2, 2 * blocks + 1, 2), 0, *range(1, 2 * blocks, 2), *range(2 * blocks + 1, parts.rank))
    return reshape(transpose(parts, order), (batch * prod(block_shape), *pairs[::2], *rest[blocks:]))


@composed("nn.batch_to_space_nd")
def batch_to_space_nd(data: Tensor, *, block_shape: Sequence[int], crops: Sequence[Sequence[int]]) -> Tensor:
    """The reverse of space_to_batch_nd, cropped."""
    blocks = len(block_shape)
    batch, *rest = data.shape
    parts = reshape(data, (*block_shape, batch // prod(block_shape), *rest))
    pairs = [axis for i in range(blocks) for axis in (blocks + 1 + i, i)]
    joined = [size * block for size, block in zip(rest, block_shape, strict=False)]
    whole = reshape(transpose(parts, (blocks, *pairs, *range(2 * blocks + 1, parts.rank))), (parts.shape[blocks], *joined, *rest[blocks:]))
    begin, end = [c[0] for c in crops], [d - c[1] for d, c in zip(joined, crops, strict=True)]
    return strided_slice(whole, begin, end, [1] * blocks, list(range(1, blocks + 1)))


@composed("nn.fifo_buffer")
def fifo_buffer(data: Tensor, buffer: Tensor, *, axis: int) -> Tensor:
    """The last elements along an axis of a buffer and new data: as many as the buffer has."""
    joined = emit("concatenate", buffer, data, axis=axis)
    return strided_slice(joined, [data.shape[axis]], [joined.shape[axis]], [1], [axis % data.rank])


@composed("nn.correlation")
def correlation(
    data1: Tensor,
    data2: Tensor,
    *,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    padding: Sequence[int] = (0, 0),
    is_multiply: bool = True,
    layout: str = "NCHW",
) -> Tensor:
    """The mean product (or absolute difference) of windows of an image and those of another one at displacements: a channel for each."""
    sides = list(padding) if isinstance(padding, tuple | list) else [padding]
    top, left, bottom, right = (sides * 4)[:4] if len(sides) != 2 else (*sides, *sides)
    width = (0, 0, 0, 0, top, bottom, left, right)
    first, second = (emit("nn.pad", x, constant(0, x.dtype), pad_width=width, pad_mode="constant") for x in (data1, data2))
    batch, channels, *extent = first.shape
    border, radius = max_displacement + (kernel_size - 1) // 2, max_displacement // stride2
    out = [(int(d) - 2 * border + stride1 - 1) // stride1 for d in extent]
    # All rows and columns that windows read, and those of the other image for each displacement.
    places = [np.arange((n - 1) * stride1 + kernel_size) + max_displacement for n in out]
    steps = np.arange(-radius, radius + 1)[:, None] * stride2
    for axis, at in enumerate(places):
        first = emit("take", first, constant(at, "int64"), axis=2 + axis, mode="clip")
        second = emit("take", second, constant(at + steps, "int64"), axis=2 + 2 * axis, mode="clip")
    rows, columns = (len(at) for at in places)
    here = reshape(first, (batch, channels, 1, rows, 1, columns))
    found = emit("multiply", here, second) if is_multiply else emit("abs", emit("subtract", here, second))
    summed = transpose(emit("sum", found, axis=(1,)), (0, 1, 3, 2, 4))
    channel_count = (2 * radius + 1) ** 2
    means = emit(
        "nn.avg_pool2d", reshape(summed, (batch, channel_count, rows, columns)), pool_size=(kernel_size,) * 2, strides=(stride1,) * 2
    )
    return divide(means, float(channels))


@composed(
    "nn.deformable_conv2d",
    "data offset weight strides padding dilation deformable_groups groups channels kernel_size data_layout "
    "kernel_layout out_layout out_dtype",
    attributes=CONV,
)
def deformable_conv2d(data: Tensor, offset: Tensor, weight: Tensor, *, deformable_groups: int = 1, **attrs: Any) -> Tensor:
    """A convolution whose windows read at places that are moved by offsets; nothing is read where a place is outside of the image."""
    from relayc.frontend.onnx.sampling import DeformConv, _places

    is_last = attrs["data_layout"] == "NHWC"
    strides, padding, dilation = attrs["strides"], attrs["padding"], attrs["dilation"]
    if is_last:
        data, offset = transpose(data, (0, 3, 1, 2)), transpose(offset, (0, 3, 1, 2))
    weight = transpose(weight, [attrs["kernel_layout"].index(axis) for axis in "OIHW"])
    kernel, out = TensorType(weight.shape[2:], "int64").static_shape, offset.shape[2:]
    pads = [*padding, *padding][:4]
    count = prod(kernel)
    moved = reshape(offset, (offset.shape[0] * deformable_groups, count, 2, *out))
    at = Term(emit("add", transpose(moved, (0, 2, 1, 3, 4)), _places(kernel, strides, dilation, pads, out, offset.dtype)))
    inside = list[Term]()
    for axis in range(2):
        place = at.part(1, axis)
        inside.append((place >= 0) & (place < data.shape[2 + axis]))
    mask = reshape(cast((inside[0] & inside[1]).tensor, data.dtype), (offset.shape[0], deformable_groups * count, *out))
    groups = {"group": attrs["groups"], "offset_group": deformable_groups}
    found = DeformConv(data, weight, offset, None, mask, dilations=dilation, pads=pads, strides=strides, **groups)
    found = cast(found, attrs["out_dtype"] or data.dtype)
    return transpose(found, (0, 2, 3, 1)) if is_last else found


@composed("nn.contrib_dense_pack", "data weight weight_layout units out_dtype")
def contrib_dense_pack(data: Tensor, weight: Tensor, *, units: int | None = None, out_dtype: str = "", weight_layout: str = "NC") -> Tensor:
    """nn.dense with weights [N / n, C, n] (layout NCnn)."""
    if weight.rank == 3:
        outer, inner, block = weight.shape
        weight = reshape(transpose(weight, (0, 2, 1)), (outer * block, inner))
    return emit("nn.dense", data, weight, units=units, out_dtype=out_dtype)


def _global_pool(kind: str, axes: int, letters: str) -> None:
    """Registers a pooling of all elements along the spatial axes."""

    @composed(f"nn.global_{kind}_pool{axes}d")
    def pool(data: Tensor, *, layout: str = letters, out_layout: str = "") -> Tensor:
        return emit(f"nn.adaptive_{kind}_pool{axes}d", data, output_size=(1,) * axes, layout=layout)


for _kind in ("max", "avg"):
    _global_pool(_kind, 1, "NCW")
    _global_pool(_kind, 3, "NCDHW")
