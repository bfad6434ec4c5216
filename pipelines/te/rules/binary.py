"""Compute rules of the elementwise operators of two tensors, and of `where`."""

from collections.abc import Callable

from relayc.dialects.mlir import arith, math
from relayc.dialects.relay.base import Op
from relayc.pipelines.te.rules import scalar
from relayc.pipelines.te.rules.contraction import accumulator
from relayc.pipelines.te.rules.core import Value, compute, elementwise, operand_type
from relayc.pipelines.te.rules.literal import literal

Scalar = Callable[[Value, Value, str], Value]
"""A scalar function of two values of the given dtype."""


def _safe_divisor(a: Value, b: Value, dtype: str) -> Value:
    """A divisor that does not trap: 1 instead of 0, and instead of -1 for the lowest dividend (the quotient is the dividend)."""
    one = scalar.constant(1, dtype)
    traps = scalar.compare("eq", b, scalar.constant(0, dtype), dtype)
    if not scalar.is_unsigned(dtype):
        lowest = scalar.compare("eq", a, scalar.constant(scalar.limits(dtype)[0], dtype), dtype)
        overflows = arith.andi(lowest, scalar.compare("eq", b, scalar.constant(-1, dtype), dtype))
        traps = arith.ori(traps, overflows)
    return scalar.select(traps, one, b)


def _divide(a: Value, b: Value, dtype: str) -> Value:
    return scalar.divide(a, b if scalar.is_float(dtype) else _safe_divisor(a, b, dtype), dtype)


def _mod(a: Value, b: Value, dtype: str) -> Value:
    return scalar.remainder(a, b if scalar.is_float(dtype) else _safe_divisor(a, b, dtype), dtype)


def _signs_differ(remainder: Value, b: Value, dtype: str) -> Value:
    """Whether the remainder of a truncated division has another sign than the divisor: then floor and truncation differ."""
    zero = scalar.constant(0, dtype)
    below = [scalar.compare("lt", v, zero, dtype) for v in (remainder, b)]
    return arith.andi(scalar.compare("ne", remainder, zero, dtype), arith.xori(*below))


def _floor_divide(a: Value, b: Value, dtype: str) -> Value:
    quotient = _divide(a, b, dtype)
    if scalar.is_float(dtype):
        return math.floor(quotient)
    if scalar.is_unsigned(dtype):
        return quotient
    one_less = scalar.subtract(quotient, scalar.constant(1, dtype), dtype)
    return scalar.select(_signs_differ(_mod(a, b, dtype), b, dtype), one_less, quotient)


def _floor_mod(a: Value, b: Value, dtype: str) -> Value:
    remainder = _mod(a, b, dtype)
    if scalar.is_unsigned(dtype):
        return remainder
    return scalar.select(_signs_differ(remainder, b, dtype), scalar.add(remainder, b, dtype), remainder)


def _power(a: Value, b: Value, dtype: str) -> Value:
    return math.powf(a, b) if scalar.is_float(dtype) else _integer_power(a, b, dtype)


def _integer_power(a: Value, b: Value, dtype: str) -> Value:
    """Square and multiply over every bit of the exponent, as straight-line code that vectorizes; wraps as multiplication does."""
    zero, one = scalar.constant(0, dtype), scalar.constant(1, dtype)
    result, square = one, a
    for i in range(scalar.bits(dtype) - (not scalar.is_unsigned(dtype))):
        bit = arith.andi(b, scalar.constant(1 << i, dtype))
        result = scalar.select(scalar.compare("ne", bit, zero, dtype), scalar.multiply(result, square, dtype), result)
        square = scalar.multiply(square, square, dtype)
    if scalar.is_unsigned(dtype):
        return result
    # 1 / a**|b| truncates to 0 except for a = 1 and a = -1, whose powers have period 2: the low bits of a negative b suffice for them.
    is_unit = scalar.compare("eq", scalar.absolute(a, dtype), one, dtype)
    reciprocal = scalar.select(is_unit, result, zero)
    return scalar.select(scalar.compare("lt", b, zero, dtype), reciprocal, result)


def _left_shift(a: Value, b: Value, dtype: str) -> Value:
    width = scalar.constant(scalar.bits(dtype), dtype)
    inside = arith.cmpi(arith.CmpIPredicate.ult, b, width)
    zero = scalar.constant(0, dtype)
    return scalar.select(inside, arith.shli(a, scalar.select(inside, b, zero)), zero)


def _right_shift(a: Value, b: Value, dtype: str) -> Value:
    bits = scalar.bits(dtype)
    if not scalar.is_unsigned(dtype):
        return arith.shrsi(a, arith.minui(b, scalar.constant(bits - 1, dtype)))
    inside = arith.cmpi(arith.CmpIPredicate.ult, b, scalar.constant(bits, dtype))
    zero = scalar.constant(0, dtype)
    return scalar.select(inside, arith.shrui(a, scalar.select(inside, b, zero)), zero)


def _comparison(predicate: str) -> Scalar:
    return lambda a, b, dtype: scalar.to_bool(scalar.compare(predicate, a, b, dtype))


def _bits(operation: Callable[..., Value]) -> Scalar:
    return lambda a, b, dtype: operation(a, b)


FUNCTIONS: dict[str, Scalar] = {
    "add": scalar.add,
    "subtract": scalar.subtract,
    "multiply": scalar.multiply,
    "divide": _divide,
    "maximum": scalar.maximum,
    "minimum": scalar.minimum,
    "equal": _comparison("eq"),
    "not_equal": _comparison("ne"),
    "less": _comparison("lt"),
    "less_equal": _comparison("le"),
    "greater": _comparison("gt"),
    "greater_equal": _comparison("ge"),
    "logical_and": _bits(arith.andi),
    "logical_or": _bits(arith.ori),
    "logical_xor": _bits(arith.xori),
    "bitwise_and": _bits(arith.andi),
    "bitwise_or": _bits(arith.ori),
    "bitwise_xor": _bits(arith.xori),
    "left_shift": _left_shift,
    "right_shift": _right_shift,
}
"""Functions computed in the operands' own type."""

WIDE: dict[str, Scalar] = {"floor_divide": _floor_divide, "mod": _mod, "floor_mod": _floor_mod, "power": _power}
"""Functions of several steps, computed in float32 for 16-bit floats."""


@compute(*FUNCTIONS)
def direct(op: Op, lhs: Value, rhs: Value) -> Value:
    dtype = operand_type(op).dtype
    return elementwise(op, [lhs, rhs], lambda a, b: FUNCTIONS[type(op)._op_name](a, b, dtype))


@compute(*WIDE)
def widened(op: Op, lhs: Value, rhs: Value) -> Value:
    dtype, function = operand_type(op).dtype, WIDE[type(op)._op_name]
    exponent = literal(op, 1) if type(op)._op_name == "power" else None
    if exponent in SMALL_POWERS:
        return elementwise(op, [lhs], lambda a: _small_power(a, exponent, dtype))
    wide = accumulator(dtype)

    def body(a: Value, b: Value) -> Value:
        return scalar.convert(function(scalar.convert(a, dtype, wide), scalar.convert(b, dtype, wide), wide), wide, dtype)

    return elementwise(op, [lhs, rhs], body)


SMALL_POWERS = (1, 2, 3, 4)
"""Exponents known at compile time for which multiplication is exact enough (within an ulp of pow) and far cheaper."""


def _small_power(a: Value, exponent: float, dtype: str) -> Value:
    wide = accumulator(dtype)
    a = scalar.convert(a, dtype, wide)
    result = a
    for _ in range(int(exponent) - 1):
        result = scalar.multiply(result, a, wide)
    return scalar.convert(result, wide, dtype)


@compute("where")
def where(op: Op, condition: Value, x: Value, y: Value) -> Value:
    return elementwise(op, [condition, x, y], lambda c, a, b: scalar.select(scalar.to_flag(c), a, b))
