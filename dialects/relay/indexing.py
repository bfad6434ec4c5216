"""Reading and writing at computed indices.

An index may be negative, counting from the end. One out of range, outside [-size, size), is clamped, so that no program reads or writes
elsewhere. Where an operator promises nothing of its indices (`checked_axes`), the program checks them before (graph.check_indices).
"""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import LayoutRole, Op, Operand, Pattern, RelayError, Size, Statement, TensorType, View, check
from relayc.dialects.relay.conditions import require_at_least, require_at_most, require_equal, require_type
from relayc.dialects.relay.kinds import COMPUTED, INTEGER, same_dtype
from relayc.dialects.relay.shapes import normalize_axis, product
from relayc.dialects.relay.types import MLIR_NAMES, RelayType
from relayc.symbolic import minimum

_TAKE_MODES = ("raise", "clip", "wrap", "fast")


class Take(Op, name="take"):
    """data with `axis` replaced by the axes of `indices` (ONNX Gather): out[..., i, ...] = data[..., indices[i], ...].

    `axis` None takes from the flattened tensor; the first `batch_dims` axes of both go together. mode: "raise" makes an index that is out
    of range an error of the call (as in numpy and ONNX), "clip" clamps it, also from below 0, "wrap" takes it modulo the size, "fast"
    trusts it (here: clamps it). A negative index counts from the end with "raise" and "fast".
    """

    data: Operand
    indices: Operand
    axis: int | None = None
    batch_dims: int = 0
    mode: str = "clip"
    pattern = Pattern.INJECTIVE
    gathers = True
    layout_role = LayoutRole.FOLLOWS

    def can_change_layout(self) -> bool:
        """Where the data is a table, from which each element of the indices takes one."""
        return self.axis in (0, -1) and self.batch_dims == 0 and TensorType.of(self.data).rank == 1

    def images(self) -> list[ir.Value]:
        return [self.indices]

    @staticmethod
    def infer(op: View) -> TensorType:
        INTEGER.require("indices", op.indices)
        check(op.mode in _TAKE_MODES, "mode", f"one of {', '.join(_TAKE_MODES)}", op.mode)
        if op.axis is None:
            return op.indices.with_dtype(op.data.dtype)
        axis = normalize_axis(op.axis, op.data.rank)
        batch = normalize_axis(op.batch_dims, op.indices.rank + 1, "batch_dims")
        check(batch <= axis, "batch_dims", f"at most axis, {axis}", op.batch_dims)
        _check_readable(op.data, axis, op.indices)
        _check_dims(op.indices, op.data, range(batch))
        return op.data.with_shape((*op.data.shape[:axis], *op.indices.shape[batch:], *op.data.shape[axis + 1 :]))

    @property
    def checked_axes(self) -> tuple[int | None, ...]:
        if self.mode != "raise":
            return ()
        return (None if self.axis is None else normalize_axis(self.axis, TensorType.of(self.data).rank),)


def _check_readable(data: TensorType, axis: int, indices: TensorType, purpose: str = "read") -> None:
    """Indices, of which there is one for each element of `indices`, need something to be clamped to."""
    if 0 not in indices.shape:
        count = product(indices.shape)
        least = 1 if count is None or isinstance(count, int) else minimum(count, 1)
        require_at_least(least, data.shape[axis], "data", f"at least one element along axis {axis} to {purpose}", data)


def _check_covered(indices: TensorType, data: TensorType, axis: int) -> None:
    for i, (a, b) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if i != axis:
            require_at_most(b, a, f"indices, dimension {i}", f"at most {b}", a)


def _check_dims(operand: TensorType, data: TensorType, axes: range) -> None:
    for i in axes:
        a, b = operand.shape[i], data.shape[i]
        require_equal(a, b, f"indices, dimension {i}", b, a)


class Gather(Op, name="gather"):
    """out[i, j, k] = data[i, indices[i, j, k], k] for axis 1, and so on (ONNX GatherElements); the result has the shape of `indices`.

    in_bounds: a promise that no index is out of range.
    """

    data: Operand
    indices: Operand
    axis: int = 0
    in_bounds: bool = False
    pattern = Pattern.INJECTIVE
    gathers = True

    @staticmethod
    def infer(op: View) -> TensorType:
        INTEGER.require("indices", op.indices)
        check(op.indices.rank == op.data.rank, "indices", f"rank {op.data.rank}, that of data", op.indices)
        axis = normalize_axis(op.axis, op.data.rank)
        _check_readable(op.data, axis, op.indices)
        _check_covered(op.indices, op.data, axis)
        return op.indices.with_dtype(op.data.dtype)

    @property
    def checked_axes(self) -> tuple[int | None, ...]:
        return () if self.in_bounds else (normalize_axis(self.axis, TensorType.of(self.data).rank),)


def _index_depth(indices: TensorType) -> int:
    INTEGER.require("indices", indices)
    check(indices.rank >= 1, "indices", "rank 1 or more", indices)
    depth = indices.shape[0]
    if not isinstance(depth, int):
        raise RelayError(f"indices: expected a known first dimension (the length of an index), found {indices}")
    return depth


class GatherNd(Op, name="gather_nd"):
    """out[b, y...] = data[b, indices[0, b, y...], indices[1, b, y...], ...]: an index is a column of `indices`, along its first axis.

    (ONNX GatherND has it along the last.) The first `batch_dims` axes of data and of an index's position go together. in_bounds: a promise
    that no index is out of range.
    """

    data: Operand
    indices: Operand
    batch_dims: int = 0
    in_bounds: bool = False
    pattern = Pattern.INJECTIVE
    gathers = True

    @staticmethod
    def infer(op: View) -> TensorType:
        depth, batch = _index_depth(op.indices), op.batch_dims
        check(0 <= batch < op.indices.rank, "batch_dims", f"a value in [0, {op.indices.rank})", batch)
        check(batch + depth <= op.data.rank, "indices", f"at most {op.data.rank - batch} in the first dimension", op.indices)
        _check_dims(op.indices.with_shape(op.indices.shape[1:]), op.data, range(batch))
        result = op.data.with_shape((*op.indices.shape[1:], *op.data.shape[batch + depth :]))
        for axis in range(batch, batch + depth):
            _check_readable(op.data, axis, result)
        return result

    @property
    def checked_axes(self) -> tuple[int | None, ...]:
        return () if self.in_bounds else tuple(range(self.batch_dims, self.batch_dims + _index_depth(TensorType.of(self.indices))))


_SCATTER_ELEMENTS = ("update", "add", "mul", "mean", "min", "max")
_SCATTER_ND = ("update", "add", "mul", "min", "max")


class ScatterElements(Op, name="scatter_elements"):
    """data, but out[i, indices[i, j, k], k] reduced with updates[i, j, k] for axis 1, and so on (ONNX ScatterElements).

    reduction: "update" replaces (the last one wins), "add", "mul", "min" and "max" combine with data, "mean" averages data and updates.
    distinct: a promise that no element is written twice, or that it does not matter what is there then: updates may come in any order.
    in_bounds: a promise that no index is out of range.
    """

    data: Operand
    indices: Operand
    updates: Operand
    axis: int = 0
    reduction: str = "update"
    distinct: bool = False
    in_bounds: bool = False

    @staticmethod
    def infer(op: View) -> TensorType:
        INTEGER.require("indices", op.indices)
        same_dtype(data=op.data, updates=op.updates)
        check(op.reduction in _SCATTER_ELEMENTS, "reduction", f"one of {', '.join(_SCATTER_ELEMENTS)}", op.reduction)
        if op.reduction != "update":
            COMPUTED.require("data", op.data)
        check(op.indices.rank == op.data.rank, "indices", f"rank {op.data.rank}, that of data", op.indices)
        axis = normalize_axis(op.axis, op.data.rank)
        _check_covered(op.indices, op.data, axis)
        expected = op.updates.with_shape(op.indices.shape)
        require_type(expected, op.updates, "updates")
        _check_readable(op.data, axis, expected, "write")
        return op.data

    @property
    def checked_axes(self) -> tuple[int | None, ...]:
        return () if self.in_bounds else (normalize_axis(self.axis, TensorType.of(self.data).rank),)


class ScatterNd(Op, name="scatter_nd"):
    """data, but out[indices[0, y...], indices[1, y...], ...] reduced with updates[y...]; an index is a column of `indices`.

    (ONNX ScatterND has it along the last axis.) mode: "update" replaces (the last one wins), "add", "mul", "min", "max" combine.
    distinct: a promise that no element is written twice, or that it does not matter what is there then: updates may come in any order.
    in_bounds: a promise that no index is out of range.
    """

    data: Operand
    indices: Operand
    updates: Operand
    mode: str = "update"
    distinct: bool = False
    in_bounds: bool = False

    @staticmethod
    def infer(op: View) -> TensorType:
        depth = _index_depth(op.indices)
        same_dtype(data=op.data, updates=op.updates)
        check(op.mode in _SCATTER_ND, "mode", f"one of {', '.join(_SCATTER_ND)}", op.mode)
        if op.mode != "update":
            COMPUTED.require("data", op.data)
        check(depth <= op.data.rank, "indices", f"at most {op.data.rank} in the first dimension", op.indices)
        expected = op.updates.with_shape((*op.indices.shape[1:], *op.data.shape[depth:]))
        require_type(expected, op.updates, "updates")
        for axis in range(depth):
            _check_readable(op.data, axis, expected, "write")
        return op.data

    @property
    def checked_axes(self) -> tuple[int | None, ...]:
        return () if self.in_bounds else tuple(range(_index_depth(TensorType.of(self.indices))))


class WorstIndex(Op, name="worst_index"):
    """The element of `indices` that is the furthest out of the range [-size, size); one that is in range where all are; int64.

    With `times` 0 it is one in range, whatever `indices` are: the result of an operator that repeats them so often has no elements.
    """

    indices: Operand
    size: Size
    times: Size = 1
    pattern = Pattern.COMM_REDUCE

    @staticmethod
    def infer(op: View) -> TensorType:
        INTEGER.require("indices", op.indices)
        return TensorType((), "int64")


class CheckIndex(Statement, name="check_index"):
    """When the program runs, an index must be in [-size, size), else the call fails with a ValueError.

    what: is indexed, for the message, such as `axis 0 of tensor<5x4xf32>`.
    """

    index: Operand
    size: Size
    what: str

    @staticmethod
    def infer(op: View) -> list[RelayType]:
        expected = TensorType((), "int64")
        check(op.index == expected, "index", expected, op.index)
        return []


class OneHot(Op, name="one_hot"):
    """on_value where an index equals the position along the new `axis` of size `depth`, else off_value.

    An index outside [0, depth) gives off_value everywhere. The values are scalars of `dtype`.
    """

    indices: Operand
    on_value: Operand
    off_value: Operand
    depth: Size
    axis: int = -1
    dtype: str = "float32"
    pattern = Pattern.OUT_ELEMWISE_FUSABLE

    @staticmethod
    def infer(op: View) -> TensorType:
        INTEGER.require("indices", op.indices)
        check(op.dtype in MLIR_NAMES, "dtype", f"one of {', '.join(MLIR_NAMES)}", op.dtype)
        require_at_least(0, op.depth, "depth", "no negative number", op.depth)
        for name, value in (("on_value", op.on_value), ("off_value", op.off_value)):
            check(value == TensorType((), op.dtype), name, TensorType((), op.dtype), value)
        shape = list(op.indices.shape)
        shape.insert(normalize_axis(op.axis, len(shape) + 1), op.depth)
        return TensorType(tuple(shape), op.dtype)
