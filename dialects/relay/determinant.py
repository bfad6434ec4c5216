"""Determinants of matrices."""

from relayc.dialects.relay.base import Op, Operand, Pattern, TensorType, View, check
from relayc.dialects.relay.conditions import require_equal
from relayc.dialects.relay.kinds import FLOAT


class Det(Op, name="det"):
    """The determinant of each matrix [..., n, n] of floats, as [...] (ONNX Det; not in Relay); 1 of a matrix without elements."""

    data: Operand
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        FLOAT.require("data", op.data)
        check(op.data.rank >= 2, "data", "rank 2 or more", op.data)
        rows, columns = op.data.shape[-2:]
        require_equal(rows, columns, "data", "as many rows as columns", op.data)
        return op.data.with_shape(op.data.shape[:-2])
