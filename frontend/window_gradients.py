"""Derivatives of convolutions and poolings: what windows over images give back to the images and to the weights."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from relayc.dialects.relay.base import Op
from relayc.dialects.relay.conv import ConvGeometry
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.pool import PoolGeometry
from relayc.dialects.relay.window import SPATIAL, Pairs
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import shape_tensor
from relayc.frontend.steps import binary, divide, filled, reshape, strided_slice, subtract, transpose
from relayc.symbolic import Size


def _laid_out(x: Tensor, source: str, target: str) -> Tensor:
    """A tensor in another layout."""
    return x if source == target else emit("layout_transform", x, src_layout=source, dst_layout=target)


def _both_ends(pads: Pairs) -> list[int]:
    return [before for before, _ in pads] + [after for _, after in pads]


def _left_over(x: Tensor, g: Tensor, kernel: Sequence[Size], window: ConvGeometry | PoolGeometry) -> list[int]:
    """Elements of padded images behind the last window, along each axis; of a last window that hangs over, a negative number."""
    found = []
    for i, (size, count) in enumerate(zip(x.shape[2:], g.shape[2:], strict=True)):
        left = size + sum(window.pads[i]) - ((count - 1) * window.strides[i] + window.dilation[i] * (kernel[i] - 1) + 1)
        if not isinstance(left, int):
            raise ModelError(f"expected windows of step 1 along an axis whose size is not known, found step {window.strides[i]}")
        found.append(left)
    return found


def _spread(g: Tensor, weight: Tensor, window: ConvGeometry | PoolGeometry, pads: Pairs, left: list[int], groups: int) -> Tensor:
    """Each element of g, times a weight [..., size of each axis of the window], added to where its window is."""
    geometry = {"strides": window.strides, "dilation": window.dilation, "padding": _both_ends(pads)}
    return emit(f"nn.conv{g.rank - 2}d_transpose", g, weight, **geometry, output_padding=left, groups=groups)


def of_convolved(x: Tensor, g: Tensor, weight: Tensor, window: ConvGeometry) -> Tensor:
    """The derivative with respect to the images of a convolution, from that with respect to its result."""
    letters = window.spatial
    images, layout = _laid_out(x, window.data_layout.text, f"NC{letters}"), window.out_layout.text
    weight = _laid_out(weight, window.kernel_layout.text, f"OI{letters}")
    g = _laid_out(g, layout, f"NC{letters}")
    found = _spread(g, weight, window, window.pads, _left_over(images, g, weight.shape[2:], window), window.groups)
    return _laid_out(found, f"NC{letters}", window.data_layout.text)


def transposed(window: ConvGeometry) -> ConvGeometry:
    """Of a transposed convolution, the convolution of its result that it is the derivative of, with the same weight."""
    letters = window.kernel_layout.text.translate(str.maketrans("IO", "OI"))
    return replace(window, kernel_layout=layout(letters), data_layout=window.out_layout, out_layout=window.data_layout)


def of_transposed(x: Tensor, g: Tensor, weight: Tensor, window: ConvGeometry) -> Tensor:
    """The derivative with respect to the images `x` of a transposed convolution; `window` is as `transposed` gives it."""
    n, letters = x.rank - 2, window.spatial
    g = _laid_out(g, window.data_layout.text, f"NC{letters}")
    weight = _laid_out(weight, window.kernel_layout.text, f"OI{letters}")
    geometry = {"strides": window.strides, "dilation": window.dilation, "padding": _both_ends(window.pads), "groups": window.groups}
    found = emit(f"nn.conv{n}d", g, weight, **geometry)  # longer than x where an output_padding was longer than a step
    axes, sizes = range(2, n + 2), [x.shape[window.out_layout.index(axis)] for axis in letters]
    return _laid_out(strided_slice(found, [0] * n, sizes, [1] * n, axes), f"NC{letters}", window.out_layout.text)


def of_weight(x: Tensor, g: Tensor, shape: Sequence[Size], window: ConvGeometry) -> Tensor:
    """The derivative with respect to the weight, of a shape, of a convolution.

    It is a convolution of the batch with the derivative in the place of the weight; the steps of one are the dilation of the other.
    """
    n, letters, groups = x.rank - 2, window.spatial, window.groups
    x, g = _laid_out(x, window.data_layout.text, f"NC{letters}"), _laid_out(g, window.out_layout.text, f"NC{letters}")
    axes, swapped = range(2, n + 2), [1, 0, *range(2, n + 2)]
    if groups == 1:
        images = transpose(x, swapped)
    else:  # the channels of a group are the batch, and the batch of each group the channels
        batch, channels, *extent = x.shape
        apart = reshape(x, (batch, groups, channels // groups, *extent))
        images = reshape(transpose(apart, [2, 1, 0, *range(3, n + 3)]), (channels // groups, groups * batch, *extent))
    geometry = {"strides": window.dilation, "dilation": window.strides, "padding": _both_ends(window.pads), "groups": groups}
    # The convolution reads the derivative in place if the channels are last.
    kernels = transpose(g, [*axes, 0, 1])
    found = emit(f"nn.conv{n}d", images, kernels, **geometry, kernel_layout=f"{letters}IO")
    kernel = [shape[window.kernel_layout.index(axis)] for axis in letters]
    return _laid_out(transpose(strided_slice(found, [0] * n, kernel, [1] * n, axes), swapped), f"OI{letters}", window.kernel_layout.text)


def of_averaged(x: Tensor, g: Tensor, op: Op) -> Tensor:
    """The derivative with respect to the images of an average pooling `op`, from that with respect to its result."""
    n = x.rank - 2
    window, plain = PoolGeometry.of(op, n), f"NC{SPATIAL[n]}"
    x, g = _laid_out(x, window.layout.text, plain), _laid_out(g, window.layout.text, plain)
    channels, count = x.shape[1], prod(window.pool_size)
    if not isinstance(channels, int):
        raise ModelError(f"expected a number of channels that is known, found {channels}")
    left = _left_over(x, g, window.pool_size, window)
    over = tuple((before, after + max(-rest, 0)) for (before, after), rest in zip(window.pads, left, strict=True))
    if over != window.pads or (any(map(any, window.pads)) and not op.count_include_pad):
        g = divide(g, binary("maximum", _counted(x, window, over, op.count_include_pad), 1 / count))
    part = filled((channels, 1, *window.pool_size), 1 / count, x.dtype)
    found = _spread(g, part, window, over, [max(rest, 0) for rest in left], channels)
    return _laid_out(found, plain, window.layout.text)


def _counted(x: Tensor, window: PoolGeometry, over: Pairs, with_padding: bool) -> Tensor:
    """The share of each window that counts in its average, [1, 1, windows along each axis]: what hangs over the padding never does."""
    n, found = x.rank - 2, filled((1, 1, *x.shape[2:]), 1, x.dtype)
    behind = tuple((0, more - after) for (_, more), (_, after) in zip(over, window.pads, strict=True))
    for pads, value in ((window.pads, float(with_padding)), (behind, 0.0)):
        width = [0, 0, 0, 0, *(w for pair in pads for w in pair)]
        found = emit("nn.pad", found, filled((), value, x.dtype), pad_width=width, pad_mode="constant")
    geometry = {"pool_size": window.pool_size, "strides": window.strides, "dilation": window.dilation}
    return emit(f"nn.avg_pool{n}d", found, **geometry, layout=f"NC{SPATIAL[n]}")


def of_largest(x: Tensor, y: Tensor, g: Tensor, op: Op) -> Tensor:
    """The derivative with respect to the images of a maximum pooling `op` of result y: of equal ones in a window the first counts."""
    plain = f"NC{SPATIAL[x.rank - 2]}"
    x, y, g = (_laid_out(t, op.layout, plain) for t in (x, y, g))
    window = {"pool_size": op.pool_size, "strides": op.strides, "dilation": op.dilation, "padding": op.padding}
    at = emit("nn.max_pool_indices", x, y, **window, ceil_mode=op.ceil_mode, layout=plain)
    count, updates = prod(g.shape), g
    if any(op.padding) or op.ceil_mode:  # a window may lie in the padding alone: its index is beyond all elements
        last = subtract(reshape(shape_tensor([prod(x.shape)]), ()), 1)
        updates = emit("where", emit("less_equal", at, last), g, filled((), 0, g.dtype))
        at = emit("minimum", at, last)
    flat = filled((prod(x.shape),), 0, g.dtype)
    found = emit("scatter_nd", flat, reshape(at, (1, count)), reshape(updates, (count,)), mode="add", in_bounds=True)
    return _laid_out(reshape(found, x.shape), plain, op.layout)
