"""Convolutions and transposed convolutions."""

from typing import Any

from relayc.frontend.common.windows import SPATIAL_LAYOUTS, spatial_rank
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import filled, reshape
from relayc.symbolic import Size


def each(value: Any, n: int) -> tuple[int, ...]:
    """One number for each axis, of one for all or of as many."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return values * n if len(values) == 1 else values


def _same_padding(input: Tensor, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[Tensor, tuple[int, ...]]:
    """The padding "same" of a convolution without strides: what is odd goes after."""
    total = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    if all(t % 2 == 0 for t in total):
        return input, tuple(t // 2 for t in total)
    width = (0, 0, 0, 0, *(p for t in total for p in (t // 2, t - t // 2)))
    return emit("nn.pad", input, filled((), 0, input.dtype), pad_width=width), (0,) * len(total)


@aten("convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    transposed: bool = False,
    output_padding: Any = 0,
    sizes: tuple[Size, ...] | None = None,
) -> Tensor:
    """`sizes`: of the result, by default the node's."""
    n = weight.rank - 2
    if input.rank == n + 1:
        input = reshape(input, (1, *input.shape))
    n = spatial_rank(input, "input")
    kernel = tuple(k for k in weight.shape[2:] if isinstance(k, int))
    if len(kernel) < n:
        raise ModelError(f"weight: expected sizes known at import, found {weight.type}")
    strides, dilations = each(stride, n), each(dilation, n)
    if padding in ("valid", "same"):
        input, pads = _same_padding(input, kernel, dilations) if padding == "same" else (input, (0,) * n)
    else:
        pads = each(padding, n)
    options: dict[str, Any] = {"strides": strides, "padding": pads * 2, "dilation": dilations, "groups": groups, "kernel_size": kernel}
    options["data_layout"] = SPATIAL_LAYOUTS[n]
    if transposed or "transpose" in node().operator:
        options |= {"output_padding": each(output_padding, n), "kernel_layout": "IO" + SPATIAL_LAYOUTS[n][2:]}
        found = emit(f"nn.conv{n}d_transpose", input, weight, **options)
    else:
        found = emit(f"nn.conv{n}d", input, weight, **options, kernel_layout="OI" + SPATIAL_LAYOUTS[n][2:])
    found = found if bias is None else emit("nn.bias_add", found, bias, axis=1)
    return reshape(found, sizes or node().sizes)
