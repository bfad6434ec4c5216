"""Forms of GELU, and the activations that other operators of ONNX Runtime apply to their results."""

from collections.abc import Sequence

from relayc.frontend.common.activations import gelu, hard_sigmoid, swish
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.onnx import activation, unary
from relayc.frontend.onnx.contrib.domain import microsoft
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import add, last_part, multiply


@microsoft()
def Gelu(x: Tensor) -> Tensor:
    return gelu(x)


@microsoft()
def BiasGelu(x: Tensor, bias: Tensor) -> Tensor:
    return Gelu(add(x, bias))


@microsoft()
def FastGelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    """By tanh."""
    return gelu(x if bias is None else add(x, bias), approximate="tanh")


@microsoft()
def QuickGelu(x: Tensor, *, alpha: float = 1.7021484375) -> Tensor:
    return swish(x, alpha=alpha)


@microsoft()
def BiasSplitGelu(x: Tensor, bias: Tensor) -> Tensor:
    """Of the halves of x + bias along the last axis, the first times GELU of the second."""
    shifted, half = add(x, bias), x.shape[-1] // 2
    return multiply(last_part(shifted, 0, half), Gelu(last_part(shifted, half, x.shape[-1])))


_PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Elu": ("alpha",), "Clip": ("min", "max")}
_CONVERTERS = {"LeakyRelu": activation.LeakyRelu, "HardSigmoid": hard_sigmoid, "Elu": unary.Elu, "Clip": unary.Clip}


def activated(x: Tensor, name: str | None, parameters: Sequence[float] = ()) -> Tensor:
    """The activation of that name in ONNX, with its attributes in order; x where there is none. Raises OnnxError for another name."""
    if not name:
        return x
    if name == "Relu":
        return emit("nn.relu", x)
    if name in ("Tanh", "Sigmoid"):
        return emit(name.lower(), x)
    if name == "HardSwish":
        return unary.HardSwish(x)
    if name not in _CONVERTERS:
        raise OnnxError(f"attribute activation: expected Relu, Tanh, Sigmoid, HardSwish or {', '.join(_CONVERTERS)}, found {name!r}")
    if len(parameters) > len(_PARAMETERS[name]):
        raise OnnxError(f"activation {name}: expected the parameters {', '.join(_PARAMETERS[name])}, found {list(parameters)}")
    return _CONVERTERS[name](x, **dict(zip(_PARAMETERS[name], parameters, strict=False)))
