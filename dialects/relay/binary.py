"""Elementwise operators of two tensors (and `where` of three) under numpy broadcasting.

The operands share one element type; the result has it too, or is bool for comparisons.
"""

from typing import cast

from relayc.dialects.relay.base import LayoutRole, Op, Operand, Pattern, Precision, TensorType, View, declare
from relayc.dialects.relay.kinds import BITS, BOOL, COMPARED, COMPUTED, INTEGER, NUMBER, same_dtype
from relayc.dialects.relay.shapes import broadcast_shapes


class _Binary(Op):
    """lhs and rhs of one element type in `kind`; the result's is `out_dtype`, or theirs."""

    lhs: Operand
    rhs: Operand
    pattern = Pattern.BROADCAST
    kind = NUMBER
    out_dtype = cast("str | None", None)
    layout_role = LayoutRole.FOLLOWS
    broadcasts = True

    @classmethod
    def infer(cls, op: View) -> TensorType:
        dtype = same_dtype(lhs=op.lhs, rhs=op.rhs)
        cls.kind.require("lhs", op.lhs)
        return TensorType(broadcast_shapes(op.lhs.shape, op.rhs.shape), cls.out_dtype or dtype)


class Add(_Binary, name="add"):
    """lhs + rhs; integers wrap."""

    commutative = True
    precision = Precision.FOLLOW
    right_neutral = 0


class Subtract(_Binary, name="subtract"):
    """lhs - rhs; integers wrap."""

    precision = Precision.FOLLOW
    right_neutral = 0


class Multiply(_Binary, name="multiply"):
    """lhs * rhs; integers wrap."""

    commutative = True
    precision = Precision.FOLLOW
    right_neutral = 1


class Divide(_Binary, name="divide"):
    """lhs / rhs; of integers the quotient rounded toward zero (ONNX Div). An integer divided by zero gives itself."""

    precision = Precision.FOLLOW
    right_neutral = 1


declare(
    _Binary,
    {
        "floor_divide": "floor(lhs / rhs). An integer divided by zero gives itself.",
        "mod": "Remainder with the sign of lhs, as C's % and fmod (ONNX Mod with fmod=1). The remainder of an integer by zero is 0.",
        "floor_mod": "Remainder with the sign of rhs, as Python's % (ONNX Mod with fmod=0). The remainder of an integer by zero is 0.",
    },
)


class Power(_Binary, name="power"):
    """lhs to the power rhs; of integers, a negative rhs gives the truncated reciprocal (0 unless lhs is 1 or -1)."""

    right_neutral = 1


declare(
    _Binary,
    {
        "maximum": "The larger one; NaN where either is NaN. Of bools, or.",
        "minimum": "The smaller one; NaN where either is NaN. Of bools, and.",
    },
    commutative=True,
    kind=COMPUTED,
    precision=Precision.FOLLOW,
)


class _Compare(_Binary):
    """A comparison; with NaN all but not_equal are false."""

    kind = COMPUTED
    out_dtype = "bool"


declare(_Compare, {"equal": "lhs == rhs.", "not_equal": "lhs != rhs."}, commutative=True, kind=COMPARED)
declare(_Compare, {"less": "lhs < rhs.", "less_equal": "lhs <= rhs.", "greater": "lhs > rhs.", "greater_equal": "lhs >= rhs."})
declare(
    _Binary,
    {
        "logical_and": "lhs and rhs, of bools.",
        "logical_or": "lhs or rhs, of bools.",
        "logical_xor": "Whether exactly one of two bools holds.",
    },
    commutative=True,
    kind=BOOL,
)
declare(_Binary, {"bitwise_and": "lhs & rhs.", "bitwise_or": "lhs | rhs.", "bitwise_xor": "lhs ^ rhs."}, commutative=True, kind=BITS)
declare(
    _Binary,
    {
        "left_shift": "lhs shifted left by rhs bits, zeros in; 0 where rhs is not below the width (numpy).",
        "right_shift": "lhs shifted right by rhs bits: the sign comes in for signed types, zeros for unsigned; all sign or 0 "
        "from the width on (numpy).",
    },
    kind=INTEGER,
    right_neutral=0,
)


class Where(Op, name="where"):
    """x where the condition is true, otherwise y (ONNX Where); the three operands broadcast."""

    condition: Operand
    x: Operand
    y: Operand
    pattern = Pattern.BROADCAST
    layout_role = LayoutRole.FOLLOWS
    precision = Precision.FOLLOW
    broadcasts = True

    @staticmethod
    def infer(op: View) -> TensorType:
        BOOL.require("condition", op.condition)
        return TensorType(broadcast_shapes(op.condition.shape, op.x.shape, op.y.shape), same_dtype(x=op.x, y=op.y))
