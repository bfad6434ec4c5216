"""Compute rules of the elementwise operators of one tensor."""

from collections.abc import Callable

from relayc.dialects.mlir import arith, math
from relayc.dialects.relay.base import Op
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, compute, elementwise, operand_type, result_type

Scalar = Callable[[Value, str], Value]
"""A scalar function of a value of the given dtype."""


def _math(operation: type) -> Scalar:
    return lambda x, dtype: operation(x).result


def _sigmoid(x: Value, dtype: str) -> Value:
    one = scalar.constant(1, dtype)
    return arith.DivFOp(one, arith.AddFOp(one, math.ExpOp(arith.NegFOp(x).result).result).result).result


def _rsqrt(x: Value, dtype: str) -> Value:
    return arith.DivFOp(scalar.constant(1, dtype), math.SqrtOp(x).result).result


TRANSCENDENTAL: dict[str, Scalar] = {
    "exp": _math(math.ExpOp),
    "log": _math(math.LogOp),
    "log2": _math(math.Log2Op),
    "log10": _math(math.Log10Op),
    "sqrt": _math(math.SqrtOp),
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "sin": _math(math.SinOp),
    "cos": _math(math.CosOp),
    "tan": _math(math.TanOp),
    "asin": _math(math.AsinOp),
    "acos": _math(math.AcosOp),
    "atan": _math(math.AtanOp),
    "sinh": _math(math.SinhOp),
    "cosh": _math(math.CoshOp),
    "tanh": _math(math.TanhOp),
    "asinh": _math(math.AsinhOp),
    "acosh": _math(math.AcoshOp),
    "atanh": _math(math.AtanhOp),
    "erf": _math(math.ErfOp),
}
"""Functions of floats; 16-bit floats are computed in float32."""

ROUNDING: dict[str, Scalar] = {
    "ceil": _math(math.CeilOp),
    "floor": _math(math.FloorOp),
    "round": _math(math.RoundEvenOp),
    "trunc": _math(math.TruncOp),
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
    return arith.XOrIOp(x, scalar.constant(1 if dtype == "bool" else (1 << scalar.bits(dtype)) - 1, dtype)).result


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
        return x if x.type == type_ else arith.BitcastOp(type_, x).result

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
