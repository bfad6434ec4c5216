"""Operators of backward graphs that torch does not decompose: by relay's rules of derivatives."""

from math import prod
from typing import Any

from relayc.frontend.common.products import einsum
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.gradients import gradients
from relayc.frontend.pytorch.convolution import convolution
from relayc.frontend.pytorch.indexing import taken_in_order
from relayc.frontend.pytorch.operands import where
from relayc.frontend.pytorch.pool import adaptive_windows, avg_pool, spatial_axes
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.pytorch.shape import pad_
from relayc.frontend.sizes import positions
from relayc.frontend.steps import broadcast_to, cast, divide, filled, reshape, subtract
from relayc.symbolic import Size


@aten("convolution_backward")
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    result = convolution(input, weight, None, stride, padding, dilation, groups, transposed, output_padding, grad_output.shape)
    wanted = [x for x, is_wanted in zip((input, weight), output_mask, strict=False) if is_wanted]
    found = iter(gradients(result, wanted, grad_output)) if wanted else iter(())
    axes = tuple(a for a in range(grad_output.rank) if a != 1)
    of_bias = emit("sum", grad_output, axis=axes) if output_mask[2] else None
    return (*(next(found) if is_wanted else None for is_wanted in output_mask[:2]), of_bias)


_WITH_INDICES = ("max_pool{}d_with_indices_backward", "adaptive_max_pool{}d_backward", "fractional_max_pool{}d_backward")


@aten(*(name.format(n) for n in (2, 3) for name in _WITH_INDICES))
def max_pool_backward(grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
    """Each element is added to where it came from in its channel."""
    n = spatial_axes()
    rows, places, count = prod(self.shape[:-n]), prod(indices.shape[-n:]), prod(self.shape[-n:])
    zeros = filled((rows, count), 0, self.dtype)
    at, g = reshape(indices, (rows, places)), reshape(grad_output, (rows, places))
    return reshape(emit("scatter_elements", zeros, at, g, axis=1, reduction="add", in_bounds=True), self.shape)


@aten("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Tensor:
    result = avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, grad_output.shape)
    return gradients(result, [self], grad_output)[0]


@aten(*(f"replication_pad{n}d_backward" for n in (1, 2, 3)))
def replication_pad_backward(grad_output: Tensor, self: Tensor, padding: tuple[Size, ...]) -> Tensor:
    return gradients(pad_(self, padding, mode="replicate"), [self], grad_output)[0]


@aten("masked_scatter_backward")
def masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: tuple[Size, ...]) -> Tensor:
    """Of the source, which has `sizes`."""
    holds, source = broadcast_to(mask, grad_output.shape), filled((prod(sizes),), 0, grad_output.dtype)
    seed = where(holds, grad_output, filled((), 0, grad_output.dtype))
    return reshape(gradients(taken_in_order(source, holds), [source], seed)[0], sizes)


@aten("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """A product along each axis with the matrix of the shares that elements have in means."""
    n, found = spatial_axes(), grad_output
    for axis in range(self.rank - n, self.rank):
        size, parts = self.shape[axis], grad_output.shape[axis]
        begins, ends = (reshape(t, (parts, 1)) for t in adaptive_windows(size, parts))
        at = reshape(positions(size), (1, size))
        inside = emit("logical_and", emit("greater_equal", at, begins), emit("less", at, ends))
        share = divide(cast(inside, self.dtype), cast(subtract(ends, begins), self.dtype))
        letters = "".join(chr(ord("a") + i) for i in range(self.rank))
        after = letters.replace(letters[axis], "z")
        found = einsum((found, share), f"{letters},{letters[axis]}z->{after}")
    return cast(found, node().dtype)
