"""Elementwise operators: tables of those that Relay has, and the few that are made of others."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from relayc.frontend.common.functions import BITS, expm1, log1p
from relayc.frontend.common.functions import atan2 as atan2_of
from relayc.frontend.common.functions import hypot as hypot_of
from relayc.frontend.common.functions import signbit as sign_bit
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.pytorch.operands import operand, promoted, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import add, binary, broadcast_to, cast, divide, in_float32, like, multiply, subtract

_UNARY = {
    **{
        name: name
        for name in ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "erf", "exp")
    },
    **{name: name for name in ("floor", "log", "log10", "log2", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh")},
    **{"neg": "negative", "relu": "nn.relu", "trunc": "trunc"},
}
_SAME = (
    *("alias", "clone", "detach", "lift_fresh_copy", "lift_fresh", "_to_copy", "conj_physical", "_conj", "_conj_physical", "_neg_view"),
)
"""What gives the elements as they are, in the dtype of the result."""
_BINARY = {
    **{"mul": "multiply", "maximum": "maximum", "minimum": "minimum", "remainder": "floor_mod", "fmod": "mod"},
    **{f"bitwise_{name}": f"bitwise_{name}" for name in ("and", "or", "xor")},
    **{"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "__lshift__": "left_shift", "__rshift__": "right_shift"},
    **{"max.other": "maximum", "min.other": "minimum", "floor_divide": "floor_divide"},
}
_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_LOGICAL = ("logical_and", "logical_or", "logical_xor")


def _as_bool(x: Tensor) -> Tensor:
    """Whether elements are other than 0."""
    return x if x.dtype == "bool" else binary("not_equal", x, 0)


def to_dtype(x: Tensor, dtype: str) -> Tensor:
    """x in another element type, as torch converts it: of bool it is whether an element is other than 0."""
    return _as_bool(x) if dtype == "bool" and x.dtype != "bool" else cast(x, dtype)


def _unary(relay_name: str, self: Tensor) -> Tensor:
    x = cast(self, node().dtype)
    if not x.is_float and relay_name in ("ceil", "floor", "round", "trunc"):
        return x
    if x.dtype == "bool":
        return emit("logical_not", x) if relay_name == "bitwise_not" else x
    return emit(relay_name, x)


def _binary(relay_name: str, self: Any, other: Any) -> Tensor:
    a, b = operand(self), operand(other)
    if a.dtype == "bool":
        relay = {"multiply": "logical_and", "maximum": "logical_or", "minimum": "logical_and"}.get(relay_name, relay_name)
        return emit(relay.replace("bitwise", "logical"), a, b)
    return emit(relay_name, a, b)


def _compared(relay_name: str, self: Any, other: Any) -> Tensor:
    dtype = promoted(self, other)
    dtype = "int8" if dtype == "bool" else dtype
    return emit(relay_name, operand(self, dtype), operand(other, dtype))


for _name, _relay_name in _UNARY.items():
    aten(_name)(partial(_unary, _relay_name))
for _name, _relay_name in _BINARY.items():
    aten(_name)(partial(_binary, _relay_name))
for _name, _relay_name in _COMPARISONS.items():
    aten(_name)(partial(_compared, _relay_name))
for _name in _LOGICAL:
    aten(_name)(lambda self, other, _name=_name: emit(_name, _as_bool(self), _as_bool(other)))


@aten(*_SAME, "prims.convert_element_type", a="self")
def same(self: Tensor) -> Tensor:
    return to_dtype(self, node().dtype)


aten("logical_not")(lambda self: emit("logical_not", _as_bool(self)))
for _name in ("isinf", "isnan"):
    aten(_name)(lambda self, _name=_name: emit(_name, self if self.is_float else cast(self, "float32")))


@aten("angle")
def angle(self: Tensor) -> Tensor:
    """Of real numbers."""
    x = cast(self, node().dtype)
    return where(emit("isnan", x), x, where(binary("less", x, 0.0), like(math.pi, x), like(0, x)))


@aten("round.decimals")
def round_decimals(self: Tensor, decimals: int) -> Tensor:
    if not self.is_float or decimals == 0:
        return emit("round", self) if self.is_float else self
    scale = 10.0 ** abs(decimals)
    return divide(emit("round", multiply(self, scale)), scale) if decimals > 0 else multiply(emit("round", divide(self, scale)), scale)


# ---- sums, quotients, powers ------------------------------------------------------------------------------------------------------------


def _scaled(x: Tensor, alpha: Any) -> Tensor:
    return x if alpha == 1 else emit("multiply", x, operand(alpha, x.dtype))


@aten("add")
def add_(self: Any, other: Any, alpha: Any) -> Tensor:
    a, b = operand(self), _scaled(operand(other), alpha)
    return emit("logical_or" if a.dtype == "bool" else "add", a, b)


@aten("sub")
def sub(self: Any, other: Any, alpha: Any = 1) -> Tensor:
    return emit("subtract", operand(self), _scaled(operand(other), alpha))


@aten("div")
def div(self: Any, other: Any, rounding_mode: str | None = None) -> Tensor:
    a, b = operand(self), operand(other)
    if rounding_mode == "floor":
        return emit("floor_divide", a, b)
    found = emit("divide", a, b)
    return emit("trunc", found) if rounding_mode == "trunc" and a.is_float else found


@aten("pow")
def power(self: Any, exponent: Any) -> Tensor:
    x = operand(self)
    known = {1: lambda: x, 2: lambda: multiply(x, x), 0.5: lambda: emit("sqrt", x), -1: lambda: divide(like(1, x), x)}
    if isinstance(exponent, (int, float)) and exponent in known and (x.is_float or exponent in (1, 2)):
        return known[exponent]()
    return emit("power", x, operand(exponent))


@aten("reciprocal")
def reciprocal(self: Tensor) -> Tensor:
    x = cast(self, node().dtype)
    return divide(like(1, x), x)


# ---- choices ----------------------------------------------------------------------------------------------------------------------------


@aten("where")
def where_(condition: Tensor, self: Any, other: Any) -> Tensor:
    return where(_as_bool(condition), operand(self), operand(other))


@aten("clamp", "clip", "clamp_min", "clamp_max", "hardtanh", min="low", max="high", min_val="low", max_val="high")
def clamp(self: Tensor, low: Any = None, high: Any = None) -> Tensor:
    x = cast(self, node().dtype)
    if all(b is None or (isinstance(b, (int, float)) and abs(b) < 1 << 53) for b in (low, high)) and x.is_float:
        return emit("clip", x, a_min=None if low is None else float(low), a_max=None if high is None else float(high))
    x = x if low is None else emit("maximum", x, operand(low))
    return x if high is None else emit("minimum", x, operand(high))


@aten("fmax", "fmin")
def fmax(self: Tensor, other: Tensor) -> Tensor:
    a, b = operand(self), operand(other)
    found = emit("maximum" if node().operator == "aten.fmax" else "minimum", a, b)
    if not a.is_float:
        return found
    return where(emit("isnan", a), b, where(emit("isnan", b), a, found))


@aten("copysign")
def copysign(self: Tensor, other: Any) -> Tensor:
    size, sign = emit("abs", operand(self)), operand(other)
    return where(signbit(sign), emit("negative", size), size)


@aten("signbit")
def signbit(self: Tensor) -> Tensor:
    if not self.is_float:
        return binary("less", self, 0) if self.dtype != "bool" else broadcast_to(constant(False), self.shape)
    return sign_bit(self)


# ---- functions made of others -----------------------------------------------------------------------------------------------------------


@aten("frexp")
def frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    """The mantissa, at least 1/2 and below 1, and the exponent, by the bits of float64."""
    wide = cast(self, "float64")
    bits = emit("reinterpret", wide, dtype="int64")
    raised = binary("bitwise_and", emit("right_shift", bits, constant(52, "int64")), 0x7FF)
    unit = binary("bitwise_or", binary("bitwise_and", bits, ~(0x7FF << 52)), 1022 << 52)
    plain = emit("logical_and", emit("isfinite", wide), binary("not_equal", wide, 0.0))
    mantissa = cast(where(plain, emit("reinterpret", unit, dtype="float64"), wide), self.dtype)
    return mantissa, cast(where(plain, subtract(raised, 1022), like(0, raised)), "int32")


@aten("nextafter")
def nextafter(self: Tensor, other: Tensor) -> Tensor:
    """The neighbour in the direction of another number: bits of floats count their magnitudes."""
    a, b = (broadcast_to(operand(x), node().sizes) for x in (self, other))
    bits = emit("reinterpret", a, dtype=BITS[a.dtype])
    outwards = emit("equal", emit("greater", b, a), binary("greater", a, 0.0))
    found = emit("reinterpret", add(bits, where(outwards, like(1, bits), like(-1, bits))), dtype=a.dtype)
    least = emit("reinterpret", like(1, bits), dtype=a.dtype)
    found = where(binary("equal", a, 0.0), where(binary("greater", b, 0.0), least, emit("negative", least)), found)
    found = where(emit("equal", a, b), b, found)
    return where(emit("logical_or", emit("isnan", a), emit("isnan", b)), like(math.nan, a), found)


def in_float64(x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    return cast(compute(cast(x, "float64")), node().dtype)


def _erfcx(x: Tensor) -> Tensor:
    """exp(x * x) * erfc(x): from 2 on by the continued fraction of the Digital Library of Mathematical Functions, 7.9.1."""
    size = emit("abs", x)
    near, far = emit("minimum", size, like(2.0, x)), emit("maximum", size, like(2.0, x))
    fraction = far
    for k in range(50, 0, -1):
        fraction = add(divide(like(k / 2, x), fraction), far)
    square = emit("exp", multiply(near, near))
    found = where(
        binary("less", size, 2.0), multiply(square, subtract(like(1, x), emit("erf", near))), divide(like(math.pi**-0.5, x), fraction)
    )
    return where(binary("less", x, 0.0), subtract(multiply(emit("exp", multiply(x, x)), 2.0), found), found)


def _erfinv(x: Tensor) -> Tensor:
    """By an estimate of two digits (Winitzki's) and three of Halley's steps."""
    share = 0.147
    logarithm = emit("log", subtract(like(1, x), multiply(x, x)))
    middle = add(multiply(logarithm, 0.5), 2 / (math.pi * share))
    size = emit("sqrt", subtract(emit("sqrt", subtract(multiply(middle, middle), divide(logarithm, share))), middle))
    found = multiply(emit("sign", x), size)
    for _ in range(3):
        slope = multiply(emit("exp", emit("negative", multiply(found, found))), 2 / math.sqrt(math.pi))
        step = divide(subtract(emit("erf", found), x), slope)
        found = subtract(found, divide(step, add(multiply(found, step), 1.0)))
    return where(binary("equal", emit("abs", x), 1.0), multiply(x, math.inf), found)


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "expm1": expm1,
    "erfcx": lambda x: in_float64(x, _erfcx),
    "erfinv": lambda x: in_float64(x, _erfinv),
    "log1p": log1p,
    "exp2": lambda x: emit("power", like(2, x), x),
    "erfc": lambda x: subtract(like(1, x), emit("erf", x)),
}
"""Functions of floats, which integers are converted to."""
for _name, _function in _FUNCTIONS.items():
    aten(_name, f"special_{_name}")(lambda self, _function=_function: in_float32(cast(self, node().dtype), _function))


@aten("atan2")
def atan2(self: Any, other: Any) -> Tensor:
    y, x = operand(self), operand(other)
    shape = node().sizes
    return atan2_of(broadcast_to(y, shape), broadcast_to(x, shape))


@aten("hypot")
def hypot(self: Tensor, other: Tensor) -> Tensor:
    return hypot_of(operand(self), operand(other))


@aten("ldexp")
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    return emit("multiply", operand(self), emit("power", constant(2, node().dtype), operand(other)))
