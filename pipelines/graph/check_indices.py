"""CheckIndices: before an operator that reads or writes at indices, checks that these are in range, where that is not proved.

    %0 = "relay.worst_index"(%indices) {size = "n"}
    "relay.check_index"(%0) {size = "n", what = "axis 0 of tensor<?x4xf32, [\\"n\\"]>"}
    %1 = "relay.take"(%data, %indices) {axis = 0, mode = "raise"}

The check is one pass over the indices as they lie in memory: before they are transposed, broadcast or concatenated. Positions that sizes
give (an arange) are checked by the sizes, and indices that a program checks already are not checked again. It comes after the passes that
move operators and before those that move them out of loops: a check stays where the operator was written.

Programs for GPUs have the checks by sizes only: for an element the host would have to wait. There indices out of range are clamped.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.transform import permutation
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.context.passes import PassContext, function_pass
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.index_ranges import ends_of, exact_ends_of
from relayc.pipelines.graph.rewrite import Rewriter
from relayc.symbolic import Size, maximum, minimum, product, proves


@dataclass(frozen=True)
class _Indices:
    """Indices of one axis.

    Attributes:
      value: a tensor that contains them.
      size: of the indexed axis.
      what: names the indexed tensor.
      column: the axis of `value`, and the position along it, of the indices; None if all elements are indices of the axis.
      times: the number of repetitions of the indices by their user; zero if it has no elements.
    """

    value: ir.Value
    size: Size
    what: str
    column: tuple[int, int] | None
    times: Size = 1

    @property
    def type(self) -> TensorType:
        return TensorType.of(self.value)


@function_pass(opt_level=0, name="CheckIndices")
def check_indices(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Checks the indices of the operators that ask for it (Op.checked_axes)."""
    rw, target = Rewriter(mod), ctx.get("target")
    reads = target is None or not target.is_gpu
    for block in list(graph_blocks(func)):
        checked: set[tuple] = set()
        for op in list(block.operations):
            if isinstance(op, Op) and op.checked_axes:
                with ir.InsertionPoint(op.operation), op.operation.location:
                    for indices in _read_by(op):
                        key = (indices.value, indices.size, indices.column, indices.times)
                        if key not in checked:
                            checked.add(key)
                            _check(indices, rw, reads)


def _read_by(op: Op) -> Iterator[_Indices]:
    """The operands that an operator reads as indices."""
    data, value = TensorType.of(op.operation.operands[0]), op.operation.operands[1]
    if not data.is_known or not TensorType.of(value).is_known:
        return
    axes = op.checked_axes
    for position, axis in enumerate(axes):
        size, what = (data.num_elements, str(data)) if axis is None else (data.sizes[axis], f"axis {axis} of {data}")
        yield from _in_memory(_Indices(value, size, what, (0, position) if len(axes) > 1 else None))


def _in_memory(indices: _Indices) -> Iterator[_Indices]:
    """The tensors in memory from which operators that only move data take the indices."""
    left = [indices]
    while left:
        found = left.pop()
        parts = _before(found)
        if parts is None:
            yield found
        else:
            left += parts[::-1]


def _before(indices: _Indices) -> list[_Indices] | None:
    """Tensors with the same indices, from before an operator that moves elements; None if no operator moved them."""
    op, column = indices.value.owner, indices.column
    if not isinstance(op, Op):
        return None
    name = type(op)._op_name
    if name == "cast" and _widens(op):
        return [replace(indices, value=op.data)]
    if name == "transpose":
        axes = permutation(op.axes, indices.type.rank)
        return [replace(indices, value=op.data, column=column and (axes[column[0]], column[1]))]
    if name in ("reshape", "match_shape") and column is None:
        return [replace(indices, value=op.data)]
    if name == "broadcast_to" and column is None:
        source = TensorType.of(op.data).shape
        repeated = product(n for i, n in enumerate(indices.type.sizes[::-1], 1) if i > len(source) or source[-i] == 1)
        return [replace(indices, value=op.data, times=indices.times * repeated)]
    if name in ("concatenate", "stack"):
        axis = normalize_axis(op.axis, indices.type.rank)
        return _parts(indices, list(op.data), axis, name == "stack")
    return None


def _parts(indices: _Indices, values: list[ir.Value], axis: int, is_new: bool) -> list[_Indices] | None:
    """As `_before`, of tensors that are joined along an axis."""
    if indices.column is None:
        return [replace(indices, value=v) for v in values]
    along, position = indices.column
    if along != axis:
        return [replace(indices, value=v, column=(along - (is_new and axis < along), position)) for v in values]
    for value in values:
        size = 1 if is_new else TensorType.of(value).shape[axis]
        if not isinstance(size, int):
            return None
        if position < size:
            return [replace(indices, value=value, column=None if size == 1 else (axis, position))]
        position -= size
    return None


def _widens(op: Op) -> bool:
    """Whether a cast is one of integers that keeps every number."""
    source, target = (TensorType.of(v) for v in (op.data, op.operation.results[0]))
    return source.is_computed and not source.is_float and np.can_cast(numpy_dtype(source.dtype), numpy_dtype(target.dtype))


def _check(indices: _Indices, rw: Rewriter, reads: bool) -> None:
    """Checks indices that are not proved to be in range. Indices of an empty axis are checked to have no elements.

    Args:
      reads: whether the program may read their elements.
    """
    value, size = indices.value, indices.size
    limit = maximum(size, 1)
    if indices.column is not None:
        axis, position = indices.column
        value = build("strided_slice", value, begin=(position,), end=(position + 1,), strides=(1,), axes=(axis,))
    low, high = ends_of(value, rw)
    if low is not None and high is not None and proves(lambda: low >= limit * -1 and high < limit):
        return
    exact = exact_ends_of(value, rw)
    if exact is None:
        if reads:
            build("check_index", build("worst_index", value, size=size, times=indices.times), size=size, what=indices.what)
        return
    # If there are no elements, there are no indices.
    some = minimum(TensorType.of(value).num_elements * indices.times, 1)
    least, most = (some * end for end in exact)
    text = f"index %lld into {indices.what}: expected at"
    if not proves(lambda: least >= limit * -1):
        build("check_sizes", found=least, expected=limit * -1, predicate="ge", message=f"{text} least %lld")
    if not proves(lambda: most < limit):
        build("check_sizes", found=most, expected=limit - 1, predicate="le", message=f"{text} most %lld")
