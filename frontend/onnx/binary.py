"""Elementwise operators of two or more tensors under numpy broadcasting."""

from typing import Literal

from relayc.frontend.converter import Tensor, assume, axis_of, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import cast, divide, like, reshape, variadic

_SAME_AS_RELAY = {
    **{"Add": "add", "Div": "divide", "Mul": "multiply", "Sub": "subtract", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor"},
    **{f"Bitwise{name.capitalize()}": f"bitwise_{name}" for name in ("and", "or", "xor")},
    **{"Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less", "LessOrEqual": "less_equal"},
}

_BROADCAST_BY_ATTRIBUTE = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Sub", "Xor")
"""Operators whose attribute `broadcast` said, before operator set 7, whether B is broadcast to A."""

_VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


def _register(onnx_name: str, relay_name: str) -> None:
    if onnx_name not in _BROADCAST_BY_ATTRIBUTE:
        converter(onnx_name)(lambda a, b: emit(relay_name, a, b))
        return

    @converter(onnx_name)
    def of_old(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: bool = False) -> Tensor:
        return emit(relay_name, a, _aligned(a, b, axis, broadcast))

    converter(onnx_name, since=7)(lambda a, b: emit(relay_name, a, b))


def _aligned(a: Tensor, b: Tensor, axis: int | None, broadcast: bool) -> Tensor:
    """B in a shape that broadcasts to that of A: before operator set 7 it has one element, or consecutive axes of A from `axis` on, by
    default the last ones, in their sizes or in 1. Raises OnnxError if it has others."""
    if not broadcast:
        return assume(b, a.shape)
    if b.type.num_elements == 1 and b.rank <= a.rank:
        return reshape(b, ())
    first = a.rank - b.rank if axis is None else axis_of(axis, a.rank)
    if first < 0 or first + b.rank > a.rank:
        raise OnnxError(f"input B: expected consecutive axes of {list(a.shape)} from {first} on, found {list(b.shape)}")
    b = assume(b, [1 if d == 1 else wanted for d, wanted in zip(b.shape, a.shape[first:], strict=False)])
    return reshape(b, (*b.shape, *(1,) * (a.rank - first - b.rank)))


def _register_variadic(onnx_name: str, relay_name: str) -> None:
    converter(onnx_name)(lambda first, *rest: variadic(relay_name, first, *rest))


for _onnx_name, _relay_name in _SAME_AS_RELAY.items():
    _register(_onnx_name, _relay_name)
for _onnx_name, _relay_name in _VARIADIC.items():
    _register_variadic(_onnx_name, _relay_name)


@converter()
def Mean(first: Tensor, *rest: Tensor) -> Tensor:
    return divide(variadic("add", first, *rest), 1 + len(rest))


@converter("Pow")
def Pow_1(x: Tensor, y: Tensor, *, axis: int | None = None, broadcast: bool = False) -> Tensor:
    return emit("power", x, _aligned(x, y, axis, broadcast))


@converter(since=7)
def Pow(x: Tensor, y: Tensor) -> Tensor:
    """x to the power y, in the type of x (they may differ from operator set 12 on)."""
    if x.dtype == y.dtype:
        return emit("power", x, y)
    if x.is_float or not y.is_float:
        return emit("power", x, cast(y, x.dtype))
    return cast(emit("power", cast(x, y.dtype), y), x.dtype)


@converter(since=10)
def Mod(a: Tensor, b: Tensor, *, fmod: bool = False) -> Tensor:
    return emit("mod" if fmod else "floor_mod", a, b)


@converter(since=11)
def BitShift(x: Tensor, y: Tensor, *, direction: Literal["LEFT", "RIGHT"]) -> Tensor:
    return emit("left_shift" if direction == "LEFT" else "right_shift", x, y)


@converter()
def Where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return emit("where", condition, x, y)


@converter("PRelu")
def PRelu_1(x: Tensor, slope: Tensor) -> Tensor:
    """One slope for all, or one for each channel."""
    if slope.type.num_elements == 1:
        return PRelu(x, reshape(slope, ()))
    if slope.rank == 1 and x.rank > 1:
        slope = reshape(assume(slope, x.shape[1:2]), (x.shape[1], *(1,) * (x.rank - 2)))
    return PRelu(x, slope)


@converter(since=7)
def PRelu(x: Tensor, slope: Tensor) -> Tensor:
    if _per_channel(x, slope):
        return emit("nn.prelu", x, reshape(slope, x.shape[1:2]), axis=1)
    return emit("where", emit("less", x, like(0, x)), emit("multiply", x, slope), x)


def _per_channel(x: Tensor, slope: Tensor) -> bool:
    """Whether there is a slope for each channel: [C, 1, ...], or [C] as exporters wrote it before operator set 9."""
    if not x.is_float or x.rank < 2 or slope.type.num_elements != x.shape[1]:
        return False
    trailing = slope.rank == x.rank - 1 and slope.shape[0] == x.shape[1]
    return trailing or (slope.rank == 1 and slope.shape[0] != x.shape[-1])
