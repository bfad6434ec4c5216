"""Convolutions and transposed convolutions over one to three spatial axes."""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from typing_extensions import Unpack

from relayc.frontend.common.windows import SPATIAL_LAYOUTS, padded, per_axis, spatial_rank, split_padding, window_padding
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.symbolic import Dim, maximum


def window_of(weight: Tensor, kernel_shape: Sequence[int] | None) -> tuple[int, ...]:
    """The window sizes of weights. Raises OnnxError if the attribute kernel_shape differs, or the sizes are unknown."""
    found = tuple(d for d in weight.shape[2:] if isinstance(d, int))
    if len(found) < weight.rank - 2:
        raise OnnxError(f"input W: expected a window of a known size, found {list(weight.shape)}")
    if kernel_shape is not None and tuple(kernel_shape) != found:
        raise OnnxError(f"attribute kernel_shape: expected {list(found)} as in W {list(weight.shape)}, found {list(kernel_shape)}")
    return found


def with_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    """x plus a bias per channel, if there is one."""
    return x if bias is None else emit("nn.bias_add", x, bias, axis=1)


class ConvAttributes(TypedDict, total=False):
    """The attributes of Conv, and of every other operator that is a convolution."""

    auto_pad: str
    dilations: Sequence[int]
    group: int
    kernel_shape: Sequence[int]
    pads: Sequence[int]
    strides: Sequence[int]


@converter()
def Conv(x: Tensor, w: Tensor, b: Tensor | None = None, **window: Unpack[ConvAttributes]) -> Tensor:
    return with_bias(convolution(x, w, **window), b)


def convolution(
    x: Tensor,
    w: Tensor,
    product: Callable[..., Tensor] = emit,
    zero: float | Tensor = 0,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The convolution of x and w, by the attributes of Conv. `product` builds the operator, and `zero` is what stands for 0 in x."""
    kernel, stride, dilation = _window(x, w, kernel_shape, strides, dilations)
    x, padding = padded(x, window_padding(auto_pad, pads, x.shape[2:], kernel, stride, dilation), zero)
    return _emitted(product, "", "OI", x, w, strides=stride, padding=padding, dilation=dilation, groups=group, kernel_size=kernel)


def _window(
    x: Tensor, w: Tensor, kernel_shape: Sequence[int] | None, strides: Sequence[int] | None, dilations: Sequence[int] | None
) -> tuple[tuple[int, ...], ...]:
    """The window of weights, its steps and the distances in it. Raises OnnxError."""
    n = spatial_rank(x)
    if w.rank != x.rank:
        raise OnnxError(f"input W: expected rank {x.rank} as X has, found {list(w.shape)}")
    return window_of(w, kernel_shape), per_axis(strides, n, "strides"), per_axis(dilations, n, "dilations")


def _emitted(product: Callable[..., Tensor], suffix: str, kernel: str, x: Tensor, w: Tensor, **attributes: Any) -> Tensor:
    """The operator of Relay, nn.conv1d to nn.conv3d with a suffix; `kernel` are the first letters of the weight's layout."""
    layout = SPATIAL_LAYOUTS[n := spatial_rank(x)]
    return product(f"nn.conv{n}d{suffix}", x, w, **attributes, data_layout=layout, kernel_layout=kernel + layout[2:])


@converter()
def ConvTranspose(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    n = spatial_rank(x)
    kernel, stride, dilation = _window(x, w, kernel_shape, strides, dilations)
    extra = per_axis(output_padding, n, "output_padding", 0)
    # The output without padding, from which pads are cropped.
    full = [(d - 1) * s + (k - 1) * r + 1 + o for d, s, k, r, o in zip(x.shape[2:], stride, kernel, dilation, extra, strict=True)]
    if output_shape is not None:
        if len(output_shape) not in (n, n + 2):
            raise OnnxError(f"attribute output_shape: expected {n} value(s), found {list(output_shape)}")
        wanted = tuple(output_shape)[-n:]
        cut = [f - o for f, o in zip(full, wanted, strict=True)]
        # The specification puts the odd one at the end unless SAME_UPPER asks for the beginning's half to be the larger.
        padding = split_padding("SAME_UPPER" if auto_pad == "SAME_UPPER" else "SAME_LOWER", [maximum(c, 0) for c in cut])
        if any(isinstance(c, Dim) for c in cut):
            raise OnnxError(
                f"attribute output_shape: expected none for an input of symbolic size {list(x.shape)}, found {list(output_shape)}"
            )
        extra = tuple(o + max(-c, 0) for o, c in zip(extra, cut, strict=True) if isinstance(c, int))
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        padding = split_padding(auto_pad, [maximum(f - d * s, 0) for f, d, s in zip(full, x.shape[2:], stride, strict=True)])
    else:
        padding = window_padding(auto_pad, pads, x.shape[2:], kernel, stride, dilation)
    shared = {"dilation": dilation, "groups": group, "kernel_size": kernel}
    found = _emitted(emit, "_transpose", "IO", x, w, strides=stride, padding=padding, output_padding=extra, **shared)
    return with_bias(found, b)
