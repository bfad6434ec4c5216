"""Elementwise operators: tables of the operators that Relay has, and operators composed of others."""

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.common.functions import atan2, expm1, log1p
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.sizes import Ratio
from relayc.frontend.stablehlo.registry import Node, op
from relayc.frontend.steps import add, as_numbers, binary, broadcast_shape, broadcast_to, cast, divide, in_float32, like, multiply, reshape
from relayc.symbolic import Size

_UNARY = {
    **{name: name for name in ("abs", "ceil", "floor", "log", "rsqrt", "sign", "sqrt", "tan", "tanh")},
    **{"cosine": "cos", "exponential": "exp", "logistic": "sigmoid", "negate": "negative", "sine": "sin", "is_finite": "isfinite"},
    "round_nearest_even": "round",
    **{f"chlo.{name}": name for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "sinh", "tan")},
}
_BINARY = {
    **{name: name for name in ("add", "maximum", "minimum", "multiply", "power", "subtract")},
    "remainder": "mod",
}
_OF_BOOLS = {"add": "logical_or", "maximum": "logical_or", "minimum": "logical_and", "multiply": "logical_and"}
COMPARISONS = {"EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal"}


def combined(name: str, a: Tensor, b: Tensor) -> Tensor:
    """An operator of Relay on two operands, of bools, too."""
    for x, bound in ((a, b), (b, a)):  # as jax.nn.softmax has it of the largest elements
        if name in ("maximum", "minimum") and x.is_float and bound.rank == 0 and bound.is_known:
            if float(bound.array) == (-inf if name == "maximum" else inf):
                return x
            if float(bound.array) == 0 and name == "maximum":
                return emit("nn.relu", x)
    return emit(_OF_BOOLS[name] if a.dtype == "bool" else name, a, b)


def bitwise(name: str, *operands: Tensor) -> Tensor:
    """and, or, xor or not, of bools, too."""
    return emit(f"{'logical' if operands[0].dtype == 'bool' else 'bitwise'}_{name}", *operands)


for _name, _relay_name in _UNARY.items():
    op(_name, elementwise=True)(lambda node, x, relay_name=_relay_name: emit(relay_name, x))
for _name, _relay_name in _BINARY.items():
    op(_name, elementwise=True)(lambda node, a, b, relay_name=_relay_name: combined(relay_name, a, b))
for _name in ("and", "or", "xor", "not"):
    op(_name, elementwise=True)(lambda node, *operands, name=_name: bitwise(name, *operands))


@op("divide", elementwise=True)
def divide_(node: Node, a: Tensor, b: Tensor) -> Tensor:
    """A quotient; a sum by the number of its elements is a mean."""
    found = node.program.sums.get(id(a))
    if found is not None and a.is_float and b.type.is_static and b.type.num_elements == 1:
        _, x, axes = found
        count = prod(x.shape[axis] for axis in axes)
        if count != 0 and _is_number(b, count):
            mean = emit("mean", x, axis=axes, keepdims=True)
            return mean if a.rank == x.rank else node.program.without(mean, axes)
    return emit("divide", a, b)


def _is_number(x: Tensor, number: Size) -> bool:
    """Whether the only element of x is a number, or an expression of sizes."""
    if x.is_known:
        return bool(float(x.array.reshape(())) == number)
    found = None if x.elements is None else x.elements.reshape(-1)[0]
    return isinstance(found, Ratio) and found.den == 1 and found.num == number


@op("compare", elementwise=True)
def compare(node: Node, a: Tensor, b: Tensor) -> Tensor:
    return emit(COMPARISONS[node.attribute("comparison_direction")], as_numbers(a), as_numbers(b))


op("select", elementwise=True)(lambda node, condition, a, b: emit("where", condition, a, b))


@op("clamp", elementwise=True)
def clamp(node: Node, low: Tensor, x: Tensor, high: Tensor) -> Tensor:
    if x.is_float and all(t.is_known and t.rank == 0 for t in (low, high)):
        return emit("clip", x, a_min=float(low.array), a_max=float(high.array))
    return emit("minimum", emit("maximum", x, low), high)


@op("convert", elementwise=True)
def convert(node: Node, x: Tensor) -> Tensor:
    dtype = node.dtype
    if dtype == "bool" and x.dtype != "bool":
        return binary("not_equal", x, 0)
    return cast(x, dtype)


_BITS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
"""Bits of the exponent and of the mantissa."""


@op("reduce_precision", elementwise=True)
def reduce_precision(node: Node, x: Tensor) -> Tensor:
    """Rounds numbers to fewer mantissa bits, halves to even. With fewer exponent bits, too large numbers become infinite, and numbers below
    the smallest normal number become zero."""
    wanted = node.attribute("exponent_bits"), node.attribute("mantissa_bits")
    exponent, mantissa = map(min, wanted, _BITS[x.dtype])
    if (exponent, mantissa) == _BITS[x.dtype]:
        return x
    width, own = _BITS[x.dtype]
    kind = f"uint{8 * DTYPES[x.dtype].itemsize}"
    bits, dropped = emit("reinterpret", x, dtype=kind), own - mantissa
    sign, infinite = 1 << (width + own), ((1 << width) - 1) << own
    if dropped:
        odd = binary("bitwise_and", binary("right_shift", bits, dropped), 1)
        up = binary("add", odd, (1 << (dropped - 1)) - 1)
        bits = binary("bitwise_and", emit("add", bits, up), 2 * sign - (1 << dropped))
    size, signs = binary("bitwise_and", bits, sign - 1), binary("bitwise_and", bits, sign)
    middle, reach = (1 << (width - 1)) - 1, (1 << (exponent - 1)) - 1
    if exponent < width:
        scale = binary("bitwise_and", bits, infinite)
        size = emit("where", binary("greater", scale, (middle + reach) << own), constant(infinite, kind), size)
        size = emit("where", binary("less_equal", scale, (middle - reach) << own), constant(0, kind), size)
    found = emit("reinterpret", emit("bitwise_or", signs, size), dtype=x.dtype)
    return emit("where", emit("isnan", x), x, found)


@op("bitcast_convert")
def bitcast_convert(node: Node, x: Tensor) -> Tensor:
    """The bits of elements as another type: a wider element becomes a last axis of narrower elements, and vice versa."""
    dtype = node.dtype
    before, after = DTYPES[x.dtype].itemsize, DTYPES[dtype].itemsize
    if before == after:
        return x if x.dtype == dtype else emit("reinterpret", x, dtype=dtype)
    parts = max(before, after) // min(before, after)
    places = constant(np.arange(parts) * 8 * min(before, after), f"uint{8 * max(before, after)}")
    whole = f"uint{8 * max(before, after)}"
    part = f"uint{8 * min(before, after)}"
    if before == parts * after:
        bits = reshape(x if x.dtype == whole else emit("reinterpret", x, dtype=whole), (*x.shape, 1))
        found = cast(emit("right_shift", bits, places), part)
    else:
        bits = cast(x if x.dtype == part else emit("reinterpret", x, dtype=part), whole)
        found = emit("sum", emit("left_shift", bits, places), axis=(x.rank - 1,))
    return found if found.dtype == dtype else emit("reinterpret", found, dtype=dtype)


# ---- shifts and bits --------------------------------------------------------------------------------------------------------------------


def _as(x: Tensor, kind: str) -> Tensor:
    """An integer of the same bits, signed ("int") or not ("uint")."""
    dtype = f"{kind}{8 * DTYPES[x.dtype].itemsize}"
    return x if x.dtype == dtype else emit("reinterpret", x, dtype=dtype)


op("shift_left", elementwise=True)(lambda node, x, by: emit("left_shift", x, by))


@op("shift_right_logical", "shift_right_arithmetic", elementwise=True)
def shift_right(node: Node, x: Tensor, by: Tensor) -> Tensor:
    kind = "uint" if node.name == "shift_right_logical" else "int"
    found = emit("right_shift", _as(x, kind), _as(by, kind))
    return found if found.dtype == x.dtype else emit("reinterpret", found, dtype=x.dtype)


def _bit_count(x: Tensor) -> Tensor:
    """The number of bits set of unsigned integers, by sums of ever wider fields."""
    width = 8 * DTYPES[x.dtype].itemsize
    mask = (1 << width) - 1
    step = 1
    while step < width:
        field = mask // ((1 << step) + 1)
        low = emit("bitwise_and", x, constant(field, x.dtype))
        high = emit("bitwise_and", binary("right_shift", x, step), constant(field, x.dtype))
        x, step = emit("add", low, high), 2 * step
    return x


op("popcnt", elementwise=True)(lambda node, x: cast(_bit_count(_as(x, "uint")), x.dtype))


@op("count_leading_zeros", elementwise=True)
def count_leading_zeros(node: Node, x: Tensor) -> Tensor:
    bits, step = _as(x, "uint"), 1
    width = 8 * DTYPES[x.dtype].itemsize
    while step < width:  # every bit below the highest one is set
        bits = emit("bitwise_or", bits, binary("right_shift", bits, step))
        step *= 2
    return cast(_bit_count(emit("bitwise_not", bits)), x.dtype)


# ---- functions composed of others -------------------------------------------------------------------------------------------------------


def _cbrt(x: Tensor) -> Tensor:
    root = binary("power", emit("abs", x), 1 / 3)
    # One step of Newton: a power in floats is some units off.
    square = multiply(root, root)
    better = emit("subtract", root, divide(emit("subtract", multiply(square, root), emit("abs", x)), multiply(square, 3.0)))
    better = emit("where", emit("logical_and", emit("isfinite", x), binary("not_equal", x, 0.0)), better, root)
    return emit("multiply", emit("sign", x), better)


def _half_away(x: Tensor) -> Tensor:
    size = emit("abs", x)
    whole = emit("floor", size)
    up = binary("greater_equal", emit("subtract", size, whole), 0.5)
    return emit("multiply", emit("sign", x), emit("where", up, add(whole, 1.0), whole))


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "cbrt": _cbrt,
    "exponential_minus_one": expm1,
    "log_plus_one": log1p,
    "round_nearest_afz": _half_away,
    "chlo.erfc": lambda x: emit("subtract", like(1, x), emit("erf", x)),
    "chlo.square": lambda x: multiply(x, x),
}


for _name, _function in _FUNCTIONS.items():
    op(_name, elementwise=True)(lambda node, x, function=_function: in_float32(x, function))


@op("atan2", elementwise=True)
def atan2_(node: Node, y: Tensor, x: Tensor) -> Any:
    if x.is_known and x.rank == 0 and float(x.array) == 1.0:
        return emit("atan", y)
    shape = broadcast_shape(y.shape, x.shape)
    return atan2(broadcast_to(y, shape), broadcast_to(x, shape))
