"""Operators that are derivatives of others: they come from the rules of the derivatives of programs (relayc.frontend.gradients)."""

from typing import Any

from relayc.dialects.relay.attributes import Ints
from relayc.dialects.relay.conv import ConvGeometry
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.window import padding_pairs, per_axis
from relayc.frontend.converter import Tensor, assume, emit
from relayc.frontend.gradients import gradients
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.steps import cast
from relayc.frontend.window_gradients import of_weight


def _of_pool(kind: str, out_grad: Tensor, data: Tensor, out_layout: str, **attrs: Any) -> Tensor:
    check(out_layout in ("", attrs["layout"]), "out_layout", f"the layout of the data, {attrs['layout']}", out_layout)
    pooled = emit(f"nn.{kind}_pool2d", data, **attrs)
    return gradients(pooled, [data], assume(out_grad, pooled.shape))[0]


@composed("nn.max_pool2d_grad", pool_size=(1, 1))
def max_pool2d_grad(
    out_grad: Tensor,
    data: Tensor,
    *,
    pool_size: Ints,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Tensor:
    """The derivative of nn.max_pool2d: of several equal elements of a window the first one counts."""
    return _of_pool(
        "max", out_grad, data, out_layout, pool_size=pool_size, strides=strides, padding=padding, layout=layout, ceil_mode=ceil_mode
    )


@composed("nn.avg_pool2d_grad", pool_size=(1, 1))
def avg_pool2d_grad(
    out_grad: Tensor,
    data: Tensor,
    *,
    pool_size: Ints,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """The derivative of nn.avg_pool2d."""
    attrs = {"pool_size": pool_size, "strides": strides, "padding": padding, "layout": layout}
    return _of_pool("avg", out_grad, data, out_layout, **attrs, ceil_mode=ceil_mode, count_include_pad=count_include_pad)


@composed("nn.conv2d_backward_weight")
def conv2d_backward_weight(
    grad: Tensor,
    data: Tensor,
    *,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Tensor:
    """The derivative of nn.conv2d with respect to its weight.

    As in Relay, `data_layout` is the layout of `grad`, `kernel_layout` that of the data, and `out_layout` that of the result.
    """
    if kernel_size is None:
        raise RelayError("kernel_size: expected the size of the weight, found None")
    window = ConvGeometry(
        spatial="HW",
        strides=per_axis(strides, 2, "strides"),
        dilation=per_axis(dilation, 2, "dilation"),
        pads=padding_pairs(padding, 2),
        groups=groups,
        data_layout=layout(kernel_layout, "NCHW", "kernel_layout"),
        kernel_layout=layout(out_layout or "OIHW", "OIHW", "out_layout"),
        out_layout=layout(data_layout, "NCHW", "data_layout"),
    )
    own, outer = window.data_layout.logical(data.shape)["C"], window.out_layout.logical(grad.shape, "grad")["C"]
    check(channels in (None, outer), "channels", f"those of the gradient, {outer}", channels)
    for count, what in ((own, "data"), (outer, "grad")):
        check(isinstance(count, int) and count % groups == 0, f"channels of {what}", f"a multiple of {groups} (groups)", count)
    sizes = {"O": outer, "I": own // groups, **dict(zip("HW", per_axis(kernel_size, 2, "kernel_size"), strict=True))}
    shape = [d for d in window.kernel_layout.shape(sizes) if d is not None]
    return cast(of_weight(data, grad, shape, window), out_dtype or grad.dtype)
