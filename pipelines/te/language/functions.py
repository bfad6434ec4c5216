"""The functions of TVM's te on expressions: mathematics, rounding, bits, divisions, conditions.

Functions of floats require floats; 16-bit floats are computed in float32 and rounded once, as in Relay's operators.
"""

from collections.abc import Callable
from functools import reduce

from relayc.dialects.relay.errors import check
from relayc.pipelines.te.language.dtypes import is_integer
from relayc.pipelines.te.language.expressions import (
    Described,
    Expr,
    ExprLike,
    Operation,
    binary,
    bitwise,
    condition,
    const,
    expr,
    matched,
    select,
    unary,
)
from relayc.pipelines.te.language.naming import FLOAT_FUNCTIONS, called
from relayc.pipelines.te.rules import scalar


def _of_floats(name: str, doc: str, arity: int = 1) -> Callable[..., Expr]:
    def function(*values: ExprLike) -> Expr:
        check(len(values) == arity, f"te.{name}", f"{arity} values", len(values))
        operands = list(matched(values[0], values[1], f"te.{name}")) if arity == 2 else [expr(values[0], f"te.{name}")]
        dtype = operands[0].dtype
        check(scalar.is_float(dtype), Described(f"te.{name}", *operands), "floats (te.cast)", dtype)
        return Operation(name, operands, dtype)

    return called(function, name, doc)


# fmt: off
(
    exp, log, log2, log10, sqrt, rsqrt, sigmoid, erf, sin, cos,
    tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh,
) = (_of_floats(name, doc) for name, doc in FLOAT_FUNCTIONS.items())
# fmt: on
fmod = _of_floats("fmod", "The remainder of x / y with the sign of x, of floats.", 2)


def _rounding(name: str, doc: str) -> Callable[[ExprLike], Expr]:
    def function(x: ExprLike) -> Expr:
        x = expr(x, f"te.{name}")
        return x if is_integer(x.dtype) else unary(name, x)

    return called(function, name, doc)


floor = _rounding("floor", "Rounded down; integers stay as they are.")
ceil = _rounding("ceil", "Rounded up; integers stay as they are.")
trunc = _rounding("trunc", "Rounded towards 0; integers stay as they are.")
round = _rounding("round", "Rounded to the nearest whole number, halves to the even one; integers stay as they are.")
nearbyint = round


def abs(x: ExprLike) -> Expr:
    """The absolute value; the lowest integer is its own absolute value."""
    return unary("abs", x)


def _test(name: str, doc: str, of_integers: bool) -> Callable[[ExprLike], Expr]:
    def function(x: ExprLike) -> Expr:
        x = expr(x, f"te.{name}")
        if is_integer(x.dtype):
            return expr(of_integers)
        check(scalar.is_float(x.dtype), Described(f"te.{name}", x), "a float or an integer", x.dtype)
        return Operation(name, [x], "bool")

    return called(function, name, doc)


isnan = _test("isnan", "Whether x is NaN.", False)
isinf = _test("isinf", "Whether x is an infinity.", False)
isfinite = _test("isfinite", "Whether x is neither an infinity nor NaN.", True)


def _bits(name: str, doc: str) -> Callable[[ExprLike], Expr]:
    def function(x: ExprLike) -> Expr:
        x = expr(x, f"te.{name}")
        check(is_integer(x.dtype), Described(f"te.{name}", x), "an integer", x.dtype)
        return Operation(name, [x], x.dtype)

    return called(function, name, doc)


popcount = _bits("popcount", "How many bits are set.")
clz = _bits("clz", "How many of the highest bits are not set.")


def _of_two(name: str, make: Callable[[str, ExprLike, ExprLike], Expr], operation: str, doc: str) -> Callable[[ExprLike, ExprLike], Expr]:
    return called(lambda a, b: make(operation, a, b), name, doc)


floordiv = _of_two("floordiv", binary, "floor_divide", "a / b rounded down, as `//`.")
floormod = _of_two("floormod", binary, "floor_mod", "What remains of `floordiv`, with the sign of b, as `%`.")
add = _of_two("add", binary, "add", "a + b.")
subtract = _of_two("subtract", binary, "subtract", "a - b.")
multiply = _of_two("multiply", binary, "multiply", "a * b.")
bitwise_and = _of_two("bitwise_and", bitwise, "bitwise_and", "a & b.")
bitwise_or = _of_two("bitwise_or", bitwise, "bitwise_or", "a | b.")
bitwise_xor = _of_two("bitwise_xor", bitwise, "bitwise_xor", "a ^ b.")
shift_left = _of_two("shift_left", bitwise, "left_shift", "a << b.")
shift_right = _of_two("shift_right", bitwise, "right_shift", "a >> b; of signed integers the sign stays.")


def power(x: ExprLike, y: ExprLike) -> Expr:
    """x to the power of y, of floats or of integers."""
    return binary("power", x, y)


def div(a: ExprLike, b: ExprLike) -> Expr:
    """a / b; `truncdiv` for integers."""
    left, _ = matched(a, b, "te.div")
    return truncdiv(a, b) if is_integer(left.dtype) else binary("divide", a, b)


def _of_integers(name: str, operation: str, doc: str) -> Callable[[ExprLike, ExprLike], Expr]:
    def function(a: ExprLike, b: ExprLike) -> Expr:
        left, right = matched(a, b, f"te.{name}")
        check(is_integer(left.dtype), Described(f"te.{name}", left, right), "integers", left.dtype)
        return binary(operation, a, b)

    return called(function, name, doc)


truncdiv = _of_integers("truncdiv", "truncdiv", "a / b rounded towards 0, of integers.")
truncmod = _of_integers("truncmod", "truncmod", "What remains of `truncdiv`, with the sign of a.")
indexdiv = _of_integers("indexdiv", "floor_divide", "The quotient of two indices that are not negative.")
indexmod = _of_integers("indexmod", "floor_mod", "The remainder of two indices that are not negative.")


def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """a / b rounded up, of integers."""
    return indexdiv(expr(a) + expr(b) - 1, b)


def logaddexp(a: ExprLike, b: ExprLike) -> Expr:
    """log(exp(a) + exp(b)), of floats."""
    left, right = matched(a, b, "te.logaddexp")
    # The difference of two infinities is NaN.
    return select(left == right, left + log(const(2.0, left.dtype)), binary("maximum", left, right) + log(1.0 + exp(-abs(left - right))))


def bitwise_not(x: ExprLike) -> Expr:
    """~x."""
    return ~expr(x, "te.bitwise_not")


def all(*args: ExprLike) -> Expr:
    """Whether all conditions hold. Loads of a later condition that are out of bounds are not executed if an earlier one does not hold."""
    return _joined("and", "te.all", args)


def any(*args: ExprLike) -> Expr:
    """Whether any condition holds; loads as in `all`."""
    return _joined("or", "te.any", args)


def _joined(name: str, what: str, args: tuple[ExprLike, ...]) -> Expr:
    check(len(args) > 0, what, "one condition or more", "none")
    conditions = [condition(x, what) for x in args]
    return reduce(lambda a, b: Operation(name, [a, b], "bool", a.is_index and b.is_index), conditions)
