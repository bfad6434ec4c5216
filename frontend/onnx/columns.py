"""What puts images together again: Col2Im of blocks, MaxUnpool of the largest elements of windows."""

from collections.abc import Sequence
from math import prod

from relayc.frontend.common.windows import SPATIAL_LAYOUTS, explicit_padding, per_axis, spatial_rank
from relayc.frontend.converter import Tensor, assume, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import sizes
from relayc.frontend.steps import filled, reshape
from relayc.symbolic import maximum


@converter(since=9)
def MaxUnpool(
    x: Tensor,
    indices: Tensor,
    output_shape: Tensor | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Elements go to their places in a tensor of the shape that was pooled, which what is larger begins with."""
    n = spatial_rank(x)
    kernel, stride = per_axis(kernel_shape, n, "kernel_shape"), per_axis(strides, n, "strides")
    padding = explicit_padding(pads, n)
    pooled = [(d - 1) * s - padding[i] - padding[n + i] + k for i, (d, s, k) in enumerate(zip(x.shape[2:], stride, kernel, strict=True))]
    shape = (*x.shape[:2], *pooled)
    places = reshape(assume(indices, x.shape), (prod(x.shape),))
    flat = emit("scatter_elements", filled((prod(shape),), 0, x.dtype), places, reshape(x, (prod(x.shape),)), axis=0, reduction="update")
    found = reshape(flat, shape)
    if output_shape is None:
        return found
    wanted = sizes(output_shape, "output_shape")
    if len(wanted) != x.rank:
        raise OnnxError(f"input output_shape: expected {x.rank} sizes, found {list(wanted)}")
    width = tuple(n for d, w in zip(shape, wanted, strict=True) for n in (0, w - d))
    return assume(emit("nn.pad", found, filled((), 0, x.dtype), pad_width=width), wanted)


@converter(since=18)
def Col2Im(
    x: Tensor,
    image_shape: Tensor,
    block_shape: Tensor,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    image, block = sizes(image_shape, "image_shape"), sizes(block_shape, "block_shape")
    n = len(image)
    if n not in SPATIAL_LAYOUTS or len(block) != n or x.rank != 3:
        raise OnnxError(f"expected blocks [batch, elements, blocks] of one to three axes, found {x.type}, {list(image)}, {list(block)}")
    stride, dilation = per_axis(strides, n, "strides"), per_axis(dilations, n, "dilations")
    if min(*stride, *dilation) < 1:
        raise OnnxError(f"attributes strides and dilations: expected values of 1 or more, found {list(stride)} and {list(dilation)}")
    padding = explicit_padding(pads, n)
    spans = [(k - 1) * r + 1 for k, r in zip(block, dilation, strict=True)]
    blocks = [(image[i] + padding[i] + padding[n + i] - spans[i]) // stride[i] + 1 for i in range(n)]
    batch, elements, _ = x.shape
    if any(d == 0 for d in block):
        raise OnnxError(f"input block_shape: expected sizes of 1 or more, found {list(block)}")
    channels = elements // maximum(prod(block), 1)
    return emit(
        "nn.col2im",
        reshape(x, (batch, channels, *block, *blocks)),
        image_shape=image,
        strides=stride,
        dilation=dilation,
        padding=padding,
    )
