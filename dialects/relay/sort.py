"""Sorting along an axis. Equal elements keep their order; NaN counts as the largest value."""

from relayc.dialects.relay.base import Op, Operand, Pattern, Size, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least, require_at_most
from relayc.dialects.relay.kinds import COMPARED, INTEGER, NUMBER, same_dtype
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.types import MLIR_NAMES
from relayc.symbolic import Dim, minimum

_RET_TYPES = ("both", "values", "indices")


def _check_index_dtype(dtype: str) -> None:
    check(dtype in MLIR_NAMES, "dtype", f"one of {', '.join(MLIR_NAMES)}", dtype)
    check(INTEGER.contains(TensorType((), dtype)), "dtype", INTEGER.expected, dtype)


class Sort(Op, name="sort"):
    """The elements of each line along `axis` in ascending (or descending) order."""

    data: Operand
    axis: int = -1
    is_ascend: bool = True
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        NUMBER.require("data", op.data)
        normalize_axis(op.axis, op.data.rank)
        return op.data


class ArgSort(Op, name="argsort"):
    """The indices along `axis` that sort each line."""

    data: Operand
    axis: int = -1
    is_ascend: bool = True
    dtype: str = "int32"
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        NUMBER.require("data", op.data)
        normalize_axis(op.axis, op.data.rank)
        _check_index_dtype(op.dtype)
        return op.data.with_dtype(op.dtype)


class ArgSortRows(Op, name="argsort_rows"):
    """The indices that sort the rows of a matrix. Two rows compare as the first elements in which they differ.

    Not in Relay: what Unique of ONNX needs along an axis.
    """

    data: Operand
    dtype: str = "int64"
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        NUMBER.require("data", op.data)
        check(op.data.rank == 2, "data", "rank 2", op.data)
        _check_index_dtype(op.dtype)
        return TensorType(op.data.shape[:1], op.dtype)


class TopK(Op, name="topk"):
    """The k largest (smallest where `is_ascend`) elements of each line along `axis`, in order, and their indices (ONNX TopK).

    `ret_type` says which: "both" (two results), "values" or "indices". A number k below 1 means all; an expression k is 1 or more, or 0
    where the axis has no elements. Among equals the lower index comes first.
    """

    data: Operand
    k: Size = 1
    axis: int = -1
    ret_type: str = "both"
    is_ascend: bool = False
    dtype: str = "int32"
    pattern = Pattern.OPAQUE
    result_names = ("values", "indices")

    @staticmethod
    def infer(op: View) -> list[TensorType]:
        NUMBER.require("data", op.data)
        check(op.ret_type in _RET_TYPES, "ret_type", f"one of {', '.join(_RET_TYPES)}", op.ret_type)
        _check_index_dtype(op.dtype)
        axis = normalize_axis(op.axis, op.data.rank)
        size = op.data.shape[axis]
        require_at_most(size, op.k, "k", f"at most the size of axis {axis}, {size}", op.k)
        if isinstance(op.k, Dim):
            least = 1 if size is None else minimum(1, size)
            require_at_least(least, op.k, "k", f"{least} or more", op.k)
        shape = list(op.data.shape)
        shape[axis] = op.k if isinstance(op.k, Dim) or op.k >= 1 else size
        values = op.data.with_shape(shape)
        indices = values.with_dtype(op.dtype)
        return {"both": [values, indices], "values": [values], "indices": [indices]}[op.ret_type]


class SearchSorted(Op, name="searchsorted"):
    """Where values would go into a sorted sequence (Relay searchsorted): of each value the number of elements that come before it.

    Operands: sorted_sequence [n], ascending, NaN last; values of the same element type and any shape. Strings are in the order of their
    numbers.

    Attributes:
      right: whether elements that are equal to a value come before it.
      dtype: of the result, int32 or int64.

    Result: the shape of values. Relay also takes a sequence for each row of values.
    """

    sorted_sequence: Operand
    values: Operand
    right: bool = False
    dtype: str = "int32"
    pattern = Pattern.OPAQUE

    @staticmethod
    def infer(op: View) -> TensorType:
        COMPARED.require("sorted_sequence", op.sorted_sequence)
        same_dtype(sorted_sequence=op.sorted_sequence, values=op.values)
        check(op.sorted_sequence.rank == 1, "sorted_sequence", "rank 1", op.sorted_sequence)
        check(op.dtype in ("int32", "int64"), "dtype", "int32 or int64", op.dtype)
        return op.values.with_dtype(op.dtype)
