"""Operators that are derivatives of others, built from the derivative rules of programs (relayc.frontend.gradients)."""

from typing import Any

from relayc.dialects.relay.attributes import REQUIRED
from relayc.dialects.relay.conv import ConvGeometry
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.window import padding_pairs, per_axis
from relayc.frontend.converter import Tensor, assume, emit
from relayc.frontend.gradients import gradients
from relayc.frontend.relay.op.composed.registry import CONV, composed
from relayc.frontend.steps import cast
from relayc.frontend.window_gradients import of_weight

_POOL = {"pool_size": REQUIRED, "strides": (1, 1), "padding": (0, 0), "layout": "NCHW", "out_layout": "", "ceil_mode": False}


def _of_pool(name: str, attributes: dict[str, Any]) -> None:
    """Registers the derivative of a pooling: of several equal elements of a window of nn.max_pool2d the first one counts."""

    @composed(f"{name}_grad", attributes=attributes, pool_size=(1, 1))
    def grad(out_grad: Tensor, data: Tensor, **attrs: Any) -> Tensor:
        check(attrs["out_layout"] in ("", attrs["layout"]), "out_layout", f"the layout of the data, {attrs['layout']}", attrs["out_layout"])
        pooled = emit(name, data, **{key: value for key, value in attrs.items() if key != "out_layout"})
        return gradients(pooled, [data], assume(out_grad, pooled.shape))[0]


_of_pool("nn.max_pool2d", _POOL)
_of_pool("nn.avg_pool2d", {**_POOL, "count_include_pad": False})


@composed("nn.conv2d_backward_weight", attributes=CONV, kernel_layout="NCHW", out_layout="OIHW")
def conv2d_backward_weight(grad: Tensor, data: Tensor, **attrs: Any) -> Tensor:
    """The derivative of nn.conv2d with respect to its weight.

    As in Relay, `data_layout` is the layout of `grad`, `kernel_layout` that of the data, and `out_layout` that of the result.
    """
    groups, kernel_size, channels = (attrs[name] for name in ("groups", "kernel_size", "channels"))
    if kernel_size is None:
        raise RelayError("kernel_size: expected the size of the weight, found None")
    window = ConvGeometry(
        spatial="HW",
        strides=per_axis(attrs["strides"], 2, "strides"),
        dilation=per_axis(attrs["dilation"], 2, "dilation"),
        pads=padding_pairs(attrs["padding"], 2),
        groups=groups,
        data_layout=layout(attrs["kernel_layout"], "NCHW", "kernel_layout"),
        kernel_layout=layout(attrs["out_layout"] or "OIHW", "OIHW", "out_layout"),
        out_layout=layout(attrs["data_layout"], "NCHW", "data_layout"),
    )
    own, outer = window.data_layout.logical(data.shape)["C"], window.out_layout.logical(grad.shape, "grad")["C"]
    check(channels in (None, outer), "channels", f"those of the gradient, {outer}", channels)
    for count, what in ((own, "data"), (outer, "grad")):
        check(isinstance(count, int) and count % groups == 0, f"channels of {what}", f"a multiple of {groups} (groups)", count)
    sizes = {"O": outer, "I": own // groups, **dict(zip("HW", per_axis(kernel_size, 2, "kernel_size"), strict=True))}
    shape = [d for d in window.kernel_layout.shape(sizes) if d is not None]
    return cast(of_weight(data, grad, shape, window), attrs["out_dtype"] or grad.dtype)
