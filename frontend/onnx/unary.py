"""Elementwise operators of one tensor."""

from onnx import TensorProto

from relayc.frontend.common.activations import exp_below_zero, gelu, hard_sigmoid, mish, shrink, softplus, softsign, swish
from relayc.frontend.converter import Tensor, constant, emit, scalar
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.onnx.text import converted
from relayc.frontend.steps import binary, cast, cast_as, divide, like, multiply

_SAME_AS_RELAY = {
    **{
        name.capitalize(): name
        for name in ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "floor", "log", "round")
    },
    **{name.capitalize(): name for name in ("sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh")},
    **{"BitwiseNot": "bitwise_not", "Neg": "negative", "Not": "logical_not"},
}


def _register(onnx_name: str, relay_name: str) -> None:
    converter(onnx_name)(lambda x: emit(relay_name, x))


for _onnx_name, _relay_name in _SAME_AS_RELAY.items():
    _register(_onnx_name, _relay_name)


@converter()
def Reciprocal(x: Tensor) -> Tensor:
    return divide(like(1, x), x)


def _computed_in(x: Tensor) -> Tensor:
    """x in a type that operators compute in: floats of 8 bits and less as float32."""
    return cast(x, "float32") if x.type.is_narrow else x


@converter()
def IsNaN(x: Tensor) -> Tensor:
    return emit("isnan", _computed_in(x))


@converter()
def IsInf(x: Tensor, *, detect_negative: bool = True, detect_positive: bool = True) -> Tensor:
    x = _computed_in(x)
    if detect_negative and detect_positive:
        return emit("isinf", x)
    if not detect_negative and not detect_positive:
        return constant(False, "bool") if x.rank == 0 else emit("less", x, x)
    return emit("equal", x, like(float("inf") if detect_positive else float("-inf"), x))


def _cast(x: Tensor, dtype: str, saturate: bool = True, round_mode: str = "up") -> Tensor:
    if x.dtype != dtype and "string" in (x.dtype, dtype):
        return converted(x, dtype)
    return cast_as(x, dtype, saturate, round_mode)


@converter("Cast")
def Cast_1(x: Tensor, *, to: str) -> Tensor:
    """The element type by its name."""
    if to.upper() not in dict(TensorProto.DataType.items()):
        raise OnnxError(f"attribute to: expected the name of an element type, found {to!r}")
    return _cast(x, dtype_name(TensorProto.DataType.Value(to.upper()), "attribute to"))


@converter(since=6)
def Cast(x: Tensor, *, to: int, saturate: bool = True, round_mode: str = "up") -> Tensor:
    return _cast(x, dtype_name(to, "attribute to"), saturate, round_mode)


@converter(since=26)
def BitCast(x: Tensor, *, to: int) -> Tensor:
    dtype = dtype_name(to, "attribute to")
    return x if dtype == x.dtype else emit("reinterpret", x, dtype=dtype)


@converter()
def CastLike(x: Tensor, target: Tensor, *, saturate: bool = True, round_mode: str = "up") -> Tensor:
    return _cast(x, target.dtype, saturate, round_mode)


@converter()
def Clip(x: Tensor, *, min: float | None = None, max: float | None = None) -> Tensor:
    return x if min is None and max is None else emit("clip", x, a_min=min, a_max=max)


@converter("Clip", since=11)
def Clip_11(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    known = all(t is None or (t.is_known and t.foldable and t.dtype != "bool") for t in (low, high))
    exact = x.is_float or all(t is None or abs(int(scalar(t, "min or max"))) < 1 << 53 for t in (low, high) if known)
    if known and exact:
        a_min, a_max = (None if t is None else float(scalar(t, "min or max")) for t in (low, high))
        return x if a_min is None and a_max is None else emit("clip", x, a_min=a_min, a_max=a_max)
    if low is not None:
        x = emit("maximum", x, low)
    return x if high is None else emit("minimum", x, high)


# ---- activations that Relay spells out ------------------------------------------------------------------------------------------------


converter("HardSigmoid")(hard_sigmoid)
converter("Softplus")(softplus)
converter("Softsign")(softsign)
converter("Shrink", since=9)(shrink)
converter("Mish", since=18)(mish)
converter("Gelu", since=20)(gelu)
converter("Swish", since=24)(swish)


@converter()
def Elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return exp_below_zero(x, alpha, 1.0)


@converter("Selu")
def Selu_1(x: Tensor, *, alpha: float = 1.6732, gamma: float = 1.0507) -> Tensor:
    return exp_below_zero(x, alpha, gamma)


@converter(since=6)
def Selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Tensor:
    return exp_below_zero(x, alpha, gamma)


@converter(since=12)
def Celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return exp_below_zero(x, alpha, 1.0, divide(x, alpha))


@converter(since=14)
def HardSwish(x: Tensor) -> Tensor:
    return multiply(x, hard_sigmoid(x, alpha=1 / 6))


@converter(since=10)
def ThresholdedRelu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return emit("where", binary("greater", x, alpha), x, like(0, x))
