"""Proofs about the shapes of values: equal in every run, although dimensions may be unknown.

Dimensions with equal expressions are equal. Two unknown dimensions are equal only if both can be traced, through operators that preserve
shapes, to one dimension of one value.
"""

from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.structure import Fused
from relayc.dialects.relay.types import TensorType
from relayc.symbolic import Size, guess
from relayc.trampoline import Call, trampoline

_MAX_STEPS = 200
"""Limit of the operators in a proof: an unproved fact is not assumed."""

Dim: TypeAlias = Size | tuple[ir.Value, int]
"""A size, or an unknown dimension of a value."""


def same_shape(a: ir.Value, b: ir.Value) -> bool:
    """Whether two tensors have the same shape in every run."""
    if has_equal_type(a, b):
        return True
    first, second = TensorType.of(a), TensorType.of(b)
    if first.is_known or second.is_known:
        return first.shape == second.shape
    if first.rank != second.rank:
        return False
    proof = _Proof()
    return all(proof.dim(a, axis) == proof.dim(b, axis) for axis in range(first.rank))


def has_equal_type(a: ir.Value, b: ir.Value) -> bool:
    """Whether two values have the same type with all dimensions known: the cheapest test."""
    type_ = a.type
    return type_ == b.type and (type_.has_static_shape or TensorType.of(a).is_known)


def num_elements(value: ir.Value) -> Size | None:
    """Number of elements of a tensor; None if unknown."""
    type_ = TensorType.of(value)
    return type_.num_elements if type_.is_known else None


def typical_elements(value: ir.Value) -> int | None:
    """Number of elements of a tensor for typical values of symbols, as a heuristic; None if unknown."""
    size = num_elements(value)
    return None if size is None else guess(size)


class _Proof:
    """Sources of dimensions, cached."""

    def __init__(self) -> None:
        self.found: dict[tuple[ir.Value, int], Dim] = {}
        self.steps = 0

    def dim(self, value: ir.Value, axis: int) -> Dim:
        """The size of a dimension or, if unknown, the dimension that it equals."""
        return trampoline(self._dim(value, axis))

    def _dim(self, value: ir.Value, axis: int) -> Call[Dim]:
        size = TensorType.of(value).shape[axis]
        if size is not None:
            return size
        if (value, axis) not in self.found:
            self.steps += 1
            source = (yield self._source(value, axis)) if self.steps < _MAX_STEPS else None
            self.found[value, axis] = (value, axis) if source is None else source
        return self.found[value, axis]

    def _source(self, value: ir.Value, axis: int) -> Call[Dim | None]:
        """The dimension that an unknown dimension of a value equals by its operator; None if unknown."""
        owner = value.owner
        if isinstance(owner, Fused):
            block = owner.operation.regions[0].blocks[0]
            return (yield self._dim(last_operation(block).operation.operands[0], axis))
        if not isinstance(owner, Op):
            return None
        if owner.keeps_shape:
            return (yield self._dim(owner.operation.operands[0], axis))
        if not owner.broadcasts:
            return None
        rank = TensorType.of(value).rank
        shifted = [(operand, axis - rank + TensorType.of(operand).rank) for operand in owner.operation.operands]
        sources: set[Dim] = set()
        for operand, at in shifted:
            if at >= 0:
                sources.add((yield self._dim(operand, at)))
        sources.discard(1)
        return sources.pop() if len(sources) == 1 else None
