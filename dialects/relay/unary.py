"""Elementwise operators of one tensor: the result has the operand's shape."""

from typing import cast

from relayc.dialects.relay.base import LayoutRole, Op, Operand, Pattern, Precision, TensorType, View, check, declare
from relayc.dialects.relay.kinds import ANY, BITS, BOOL, FLOAT, NUMBER, check_conversion
from relayc.dialects.relay.types import DTYPES, MLIR_NAMES


class _Unary(Op):
    """One tensor in, one of the same shape out; `kind` is the set of element types, `out_dtype` the result's where it differs."""

    data: Operand
    pattern = Pattern.ELEMWISE
    kind = FLOAT
    out_dtype = cast("str | None", None)
    layout_role = LayoutRole.FOLLOWS
    keeps_shape = True

    @classmethod
    def infer(cls, op: View) -> TensorType:
        cls.kind.require("data", op.data)
        return op.data.with_dtype(cls.out_dtype) if cls.out_dtype else op.data


class Abs(_Unary, name="abs"):
    """Absolute value; the lowest value of a signed integer type stays as it is."""

    kind = NUMBER
    precision = Precision.FOLLOW
    idempotent = True


class Negative(_Unary, name="negative"):
    """-x; integers wrap."""

    kind = NUMBER
    precision = Precision.FOLLOW
    involutory = True


declare(
    _Unary,
    {
        "sign": "-1, 0 or 1 by the sign of x; NaN for NaN (ONNX Sign).",
        "ceil": "Smallest integer not below x; integers pass unchanged.",
        "floor": "Largest integer not above x; integers pass unchanged.",
        "round": "Nearest integer, halves to even (ONNX Round); integers pass unchanged.",
        "trunc": "x without its fraction; integers pass unchanged.",
    },
    idempotent=True,
    kind=NUMBER,
)
declare(
    _Unary,
    {
        "exp": "e to the power x.",
        "log": "Natural logarithm: -inf at 0, NaN below.",
        "log2": "Logarithm to base 2.",
        "log10": "Logarithm to base 10.",
    },
)
declare(
    _Unary,
    {
        "sqrt": "Square root: NaN below 0.",
        "rsqrt": "1 / sqrt(x).",
        "sigmoid": "1 / (1 + exp(-x)).",
    },
    precision=Precision.FOLLOW,
)
declare(
    _Unary,
    {
        "sin": "Sine of x in radians.",
        "cos": "Cosine of x in radians.",
        "tan": "Tangent of x in radians.",
        "asin": "Arc sine in radians: NaN outside [-1, 1].",
        "acos": "Arc cosine in radians: NaN outside [-1, 1].",
        "atan": "Arc tangent in radians.",
        "sinh": "Hyperbolic sine.",
        "cosh": "Hyperbolic cosine.",
    },
)
declare(_Unary, {"tanh": "Hyperbolic tangent."}, precision=Precision.FOLLOW)
declare(
    _Unary,
    {
        "asinh": "Inverse hyperbolic sine.",
        "acosh": "Inverse hyperbolic cosine: NaN below 1.",
        "atanh": "Inverse hyperbolic tangent: infinite at -1 and 1, NaN outside.",
    },
)
declare(_Unary, {"erf": "The error function."}, precision=Precision.FOLLOW)
declare(_Unary, {"logical_not": "not x, of bools."}, kind=BOOL, involutory=True)
declare(_Unary, {"bitwise_not": "Every bit flipped; of a bool, not x."}, kind=BITS, involutory=True)
declare(
    _Unary,
    {
        "isnan": "Whether x is NaN.",
        "isinf": "Whether x is an infinity of either sign.",
        "isfinite": "Whether x is neither NaN nor an infinity.",
    },
    out_dtype="bool",
)


class Copy(_Unary, name="copy"):
    """The operand itself, in its own storage."""

    kind = ANY
    precision = Precision.EXACT
    moves_only = True


ROUND_MODES = ("up", "down", "nearest")


class Cast(Op, name="cast"):
    """Converts the elements to `dtype` as ONNX Cast does: float to integer truncates, to bool tests for non-zero.

    Floats of 8 bits and less are rounded to nearest, ties to even; float8_e8m0fnu, which has powers of 2 only, as `round_mode` says: "up"
    (where it is None), "down" or "nearest", ties up, and without regard to signs. `saturate` says what becomes of values out of range:
    the largest finite ones (None or True), or infinity where the type has it and NaN where it has not. Types with neither saturate; NaN
    is 0 there.
    """

    data: Operand
    dtype: str
    saturate: bool | None = None
    round_mode: str | None = None
    pattern = Pattern.ELEMWISE
    layout_role = LayoutRole.FOLLOWS
    keeps_shape = True
    moves_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.dtype in MLIR_NAMES, "dtype", f"one of {', '.join(MLIR_NAMES)}", op.dtype)
        check_conversion(op.data.dtype, op.dtype)
        check(op.round_mode in (None, *ROUND_MODES), "round_mode", f"one of {', '.join(ROUND_MODES)}", op.round_mode)
        return op.data.with_dtype(op.dtype)


class Reinterpret(Op, name="reinterpret"):
    """The bits of each element read as `dtype`, of as many bits (ONNX BitCast). As a bool, what is not zero is true."""

    data: Operand
    dtype: str
    pattern = Pattern.ELEMWISE
    keeps_shape = True
    moves_only = True

    @staticmethod
    def infer(op: View) -> TensorType:
        check(op.dtype in MLIR_NAMES, "dtype", f"one of {', '.join(MLIR_NAMES)}", op.dtype)
        check_conversion(op.data.dtype, op.dtype)
        found, wanted = (8 * DTYPES[dtype].itemsize for dtype in (op.data.dtype, op.dtype))
        check(found == wanted, "dtype", f"one of {found} bits, those of {op.data.dtype}", op.dtype)
        return op.data.with_dtype(op.dtype)


class Clip(_Unary, name="clip"):
    """x limited to [a_min, a_max]: min(max(x, a_min), a_max), NaN passed on (ONNX Clip).

    Bounds outside an integer type's range stand for its limits; None (Relay has no such value) leaves that side open.
    """

    a_min: float | None
    a_max: float | None
    kind = NUMBER
    precision = Precision.FOLLOW
