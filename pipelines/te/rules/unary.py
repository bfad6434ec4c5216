"""Compute rules of the elementwise operators of one tensor."""

from collections.abc import Callable

from relayc.dialects.mlir import arith, math
from relayc.dialects.relay.base import Op
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, compute, elementwise, operand_type, result_type

Scalar = Callable[[Value, str], Value]
"""A scalar function of a value of the given dtype."""


def _math(operation: Callable[..., Value]) -> Scalar:
    return lambda x, dtype: operation(x)


def _sigmoid(x: Value, dtype: str) -> Value:
    one = scalar.constant(1, dtype)
    return arith.divf(one, arith.addf(one, math.exp(arith.negf(x))))


def _rsqrt(x: Value, dtype: str) -> Value:
    return arith.divf(scalar.constant(1, dtype), math.sqrt(x))


TRANSCENDENTAL: dict[str, Scalar] = {
    "exp": _math(math.exp),
    "log": _math(math.log),
    "log2": _math(math.log2),
    "log10": _math(math.log10),
    "sqrt": _math(math.sqrt),
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "sin": _math(math.sin),
    "cos": _math(math.cos),
    "tan": _math(math.tan),
    "asin": _math(math.asin),
    "acos": _math(math.acos),
    "atan": _math(math.atan),
    "sinh": _math(math.sinh),
    "cosh": _math(math.cosh),
    "tanh": _math(math.tanh),
    "asinh": _math(math.asinh),
    "acosh": _math(math.acosh),
    "atanh": _math(math.atanh),
    "erf": _math(math.erf),
}
"""Functions of floats; 16-bit floats are computed in float32."""

ROUNDING: dict[str, Scalar] = {
    "ceil": _math(math.ceil),
    "floor": _math(math.floor),
    "round": _math(math.roundeven),
    "trunc": _math(math.trunc),
}
"""Rounding of floats, 16-bit ones in float32; integers stay as they are."""


@compute(*TRANSCENDENTAL, *ROUNDING)
def in_float(op: Op, data: Value) -> Value:
    dtype = operand_type(op).dtype
    if not scalar.is_float(dtype):
        return data
    wide = accumulator(dtype)
    function = (TRANSCENDENTAL | ROUNDING)[type(op)._op_name]

    def body(x: Value) -> Value:
        return scalar.convert(function(scalar.convert(x, dtype, wide), wide), wide, dtype)

    return elementwise(op, [data], body)


def _sign(x: Value, dtype: str) -> Value:
    zero, one = scalar.constant(0, dtype), scalar.constant(1, dtype)
    # NaN compares false and is returned.
    result = scalar.select(scalar.compare("eq", x, zero, dtype), zero, x)
    result = scalar.select(scalar.compare("gt", x, zero, dtype), one, result)
    if scalar.is_unsigned(dtype):
        return result
    return scalar.select(scalar.compare("lt", x, zero, dtype), scalar.constant(-1, dtype), result)


def _bitwise_not(x: Value, dtype: str) -> Value:
    return arith.xori(x, scalar.constant(1 if dtype == "bool" else (1 << scalar.bits(dtype)) - 1, dtype))


def _is_nan(x: Value, dtype: str) -> Value:
    return scalar.to_bool(scalar.compare("ne", x, x, dtype))


def _is_inf(x: Value, dtype: str) -> Value:
    return scalar.to_bool(scalar.compare("eq", scalar.absolute(x, dtype), scalar.constant(float("inf"), dtype), dtype))


def _is_finite(x: Value, dtype: str) -> Value:
    return scalar.to_bool(scalar.compare("lt", scalar.absolute(x, dtype), scalar.constant(float("inf"), dtype), dtype))


EXACT: dict[str, Scalar] = {
    "abs": scalar.absolute,
    "negative": scalar.negative,
    "sign": _sign,
    "logical_not": _bitwise_not,
    "bitwise_not": _bitwise_not,
    "isnan": _is_nan,
    "isinf": _is_inf,
    "isfinite": _is_finite,
    "copy": lambda x, dtype: x,
}
"""Functions computed in the operand's own type."""


@compute(*EXACT)
def exact(op: Op, data: Value) -> Value:
    dtype = operand_type(op).dtype
    return elementwise(op, [data], lambda x: EXACT[type(op)._op_name](x, dtype))


@compute("cast")
def cast(op: Op, data: Value) -> Value:
    source, target = operand_type(op).dtype, result_type(op).dtype
    return elementwise(op, [data], lambda x: scalar.convert(x, source, target, op.saturate is not False, op.round_mode or "up"))


@compute("reinterpret")
def reinterpret(op: Op, data: Value) -> Value:
    source, target = operand_type(op).dtype, result_type(op).dtype

    def body(x: Value) -> Value:
        if target == "bool":
            return scalar.convert(x, source, target)
        type_ = scalar.te_element(target)
        return x if x.type == type_ else arith.bitcast(type_, x)

    return elementwise(op, [data], body)


def _bound(value: float, dtype: str) -> Value:
    """A bound of clip in `dtype`: integers beyond the type's range become its limits."""
    low, high = scalar.limits(dtype)
    return scalar.constant(min(max(value, low), high), dtype)


@compute("clip")
def clip(op: Op, data: Value) -> Value:
    dtype = operand_type(op).dtype

    def body(x: Value) -> Value:
        if op.a_min is not None:
            x = scalar.maximum(x, _bound(op.a_min, dtype), dtype)
        return x if op.a_max is None else scalar.minimum(x, _bound(op.a_max, dtype), dtype)

    return elementwise(op, [data], body)
