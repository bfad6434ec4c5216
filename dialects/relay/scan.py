"""Running sums and products along an axis."""

from relayc.dialects.relay.base import Op, Operand, TensorType, View, check
from relayc.dialects.relay.kinds import NUMBER, check_conversion
from relayc.dialects.relay.shapes import normalize_axis, product
from relayc.dialects.relay.types import MLIR_NAMES


class _Scan(Op):
    """`axis` None scans the flattened tensor; `dtype` None keeps the operand's; `exclusive` excludes each element from its own result."""

    data: Operand
    axis: int | None = None
    dtype: str | None = None
    exclusive: bool = False

    @staticmethod
    def infer(op: View) -> TensorType:
        dtype = op.dtype or op.data.dtype
        check(dtype in MLIR_NAMES, "dtype", f"one of {', '.join(MLIR_NAMES)}", dtype)
        check(NUMBER.contains(TensorType((), dtype)), "dtype", NUMBER.expected, dtype)
        check_conversion(op.data.dtype, dtype)
        if op.axis is None:
            return TensorType((product(op.data.shape),), dtype)
        normalize_axis(op.axis, op.data.rank)
        return op.data.with_dtype(dtype)


class CumSum(_Scan, name="cumsum"):
    """Sum of the elements up to each position (ONNX CumSum); exclusive starts at 0."""


class CumProd(_Scan, name="cumprod"):
    """Product of the elements up to each position; exclusive starts at 1."""
