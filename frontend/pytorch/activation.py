"""Activations, which are kept whole: relayc knows them as patterns, or has kernels for them."""

from collections.abc import Callable
from typing import Any

from relayc.frontend.common.activations import exp_below_zero, gelu, hard_sigmoid, mish, softplus, swish
from relayc.frontend.converter import Tensor, axis_of, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.operands import where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import add, binary, cast, divide, in_float32, like, multiply, subtract

_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": swish,
    "mish": mish,
    "hardsigmoid": lambda x: hard_sigmoid(x, alpha=1 / 6),
    "hardswish": lambda x: multiply(x, hard_sigmoid(x, alpha=1 / 6)),
    "relu6": lambda x: emit("clip", x, a_min=0.0, a_max=6.0),
    "log_sigmoid": lambda x: emit("negative", softplus(emit("negative", x))),
    "selu": lambda x: exp_below_zero(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946),
}


for _name, _function in _FUNCTIONS.items():
    aten(_name)(lambda self, _function=_function: in_float32(self, _function) if self.is_float else _function(self))


aten("gelu", self="x")(gelu)


@aten("leaky_relu")
def leaky_relu(self: Tensor, negative_slope: float) -> Tensor:
    return emit("nn.leaky_relu", self, alpha=float(negative_slope))


@aten("elu")
def elu(self: Tensor, alpha: Any, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    return exp_below_zero(self, float(alpha), float(scale), multiply(self, float(input_scale)) if input_scale != 1 else None)


@aten("softplus")
def softplus_(self: Tensor, beta: Any, threshold: Any) -> Tensor:
    scaled = multiply(self, float(beta))
    return where(binary("greater", scaled, float(threshold)), self, divide(softplus(scaled), float(beta)))


# ---- softmax ----------------------------------------------------------------------------------------------------------------------------


@aten("_softmax", "softmax", "special_softmax", "_log_softmax", "log_softmax", "special_log_softmax", "_safe_softmax")
def softmax(self: Tensor, dim: int) -> Tensor:
    relay_name = "nn.log_softmax" if "log_" in node().operator else "nn.softmax"
    x = cast(self, node().dtype)
    if x.rank == 0:
        return subtract(x, x) if "log_" in node().operator else add(subtract(x, x), 1.0)
    found = emit(relay_name, x, axis=axis_of(dim, x.rank))
    return where(emit("isnan", found), like(0, found), found) if node().operator == "aten._safe_softmax" else found


@aten("rrelu_with_noise", "rrelu_with_noise_functional")
def rrelu(self: Tensor, lower: float, upper: float, training: bool) -> Any:
    if training:
        raise ModelError("expected a model in inference, found rrelu in training: call model.eval() before the export")
    found = where(binary("less", self, 0.0), multiply(self, (float(lower) + float(upper)) / 2), self)
    return (found, None) if isinstance(node().dtype, tuple) else found
