"""Fusion groups in the IR.

A group is a `relay.fused`, or a single operator outside of one. All facts are read from the operations and their types; there is no state
beside the IR. A Group is a view: valid until the group is changed.
"""

from collections.abc import Callable
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.base import Op, Pattern
from relayc.dialects.relay.sizes import CastShape, MatchShape
from relayc.dialects.relay.structure import Constant, Fused, Yield, is_literal
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.graph.fusion.shapes import num_elements
from relayc.symbolic import Size

ANCHORS = frozenset([Pattern.COMM_REDUCE, Pattern.OUT_ELEMWISE_FUSABLE])
"""Patterns of anchor operators, around which the kernel of a group is scheduled."""

COMPOSITE, COMPILER = "composite", "compiler"
"""Attributes of a relay.fused: the rule that gathered it by a pattern, and the code generator that compiles it."""


class _Lazy:
    """Decorator: a cached attribute. Like functools.cached_property, which before Python 3.12 takes a lock each time."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read, self.name, self.__doc__ = read, read.__name__, read.__doc__

    def __get__(self, group: Any, _: type) -> Any:
        if group is None:
            return self
        value = group.__dict__[self.name] = self.read(group)
        return value


class Group:
    """A relay.fused, or an operator outside of one.

    Attributes:
      op: the relay.fused or the operator.
      operation: the same as a plain operation.
      is_fused: whether it is a relay.fused.
      result: the result of the group for the rest of the program; for an operator with several results outside of a relay.fused the first.
    """

    def __init__(self, op: Op) -> None:
        self.op = op
        self.operation = op.operation
        self.is_fused = isinstance(op, Fused)
        self.result: ir.Value = self.operation.results[0]

    @property
    def block(self) -> ir.Block:
        """The block of a relay.fused."""
        return self.operation.regions[0].blocks[0]

    @_Lazy
    def members(self) -> tuple[Op, ...]:
        """The operators in the group, in program order."""
        if not self.is_fused:
            return (self.op,)
        return tuple(op for op in self.block.operations if isinstance(op, Op) and not isinstance(op, (Constant, Yield)))

    @_Lazy
    def yielded(self) -> ir.Value:
        """The value inside the group that is its result."""
        if not self.is_fused:
            return self.result
        return last_operation(self.block).operation.operands[0]

    @property
    def computes(self) -> bool:
        """Whether a member computes the result: a relay.fused that only passes on a value from outside is left alone."""
        return not self.is_fused or (isinstance(self.yielded, ir.OpResult) and self.yielded.owner.operation.parent == self.operation)

    @_Lazy
    def root(self) -> Op:
        """The member that computes the result."""
        if not self.is_fused:
            return self.op
        owner = self.yielded.owner
        return owner if isinstance(owner, Op) else owner.operands[0].owner  # before the cast that builds a tuple

    @_Lazy
    def has_one_result(self) -> bool:
        """Whether the group has one tensor result."""
        return len(self.operation.results) == 1 and not isinstance(self.result.type, ir.TupleType)

    @property
    def type(self) -> TensorType:
        """Type of the result. Raises TypeError if the group has several."""
        return TensorType.of(self.result)

    @property
    def size(self) -> Size | None:
        """Number of elements of the result; None if unknown."""
        return num_elements(self.result)

    @_Lazy
    def pattern(self) -> Pattern:
        """The most restrictive pattern of the members."""
        return max(member.pattern for member in self.members) if self.is_fused else self.op.pattern

    @_Lazy
    def anchor(self) -> Op | None:
        """The member around which the kernel is scheduled: a reduction, product, convolution, pooling or row operator."""
        return next((member for member in self.members if member.pattern in ANCHORS), None)

    @_Lazy
    def prologue(self) -> frozenset[ir.Value]:
        """The results of the members that compute the anchor's inputs."""
        found: set[ir.Value] = set()
        pending = [self.anchor.operation] if self.anchor is not None else []
        while pending:
            for value in pending.pop().operands:
                owner = value.owner
                if value not in found and not isinstance(owner, ir.Block) and owner.operation.parent == self.operation:
                    found.add(value)
                    pending.append(owner.operation)
        return frozenset(found)

    @_Lazy
    def captured(self) -> tuple[ir.Value, ...]:
        """The values from outside that the group reads, in the order of first use; without constants of one element, which are literals."""
        inside = {result for member in self.members for result in member.operation.results}
        used = dict.fromkeys(value for member in self.members for value in member.operation.operands)
        return tuple(value for value in used if value not in inside and not is_literal(value))

    @_Lazy
    def max_operands(self) -> int:
        """An upper bound of the number of `captured`, found faster."""
        return sum(len(member.operation.operands) for member in self.members)

    @_Lazy
    def users(self) -> tuple[ir.OpView, ...]:
        """The operations that use the result: in a consumer its member, not the relay.fused."""
        return tuple(use.owner for use in self.result.uses)

    @property
    def composite(self) -> str | None:
        """Name of the rule that gathered the group by a pattern; None for any other group."""
        return self.op.composite if isinstance(self.op, Fused) else None

    @property
    def compiler(self) -> str | None:
        """Name of the code generator that the group is for; None for relayc's own."""
        return self.op.compiler if isinstance(self.op, Fused) else None

    def __repr__(self) -> str:
        return f"<group {' '.join(member.relay_name for member in self.members)}>"


def belongs_in_group(op: ir.OpView) -> bool:
    """Whether an operation is a group, or an operator that may become part of one."""
    return isinstance(op, Op) and not op.is_structure and not op.is_view


def is_view(op: ir.OpView) -> bool:
    """Whether an operation only reshapes its operand, or states its shape: it stays outside of groups and costs nothing."""
    return isinstance(op, Op) and op.is_view


def is_reshape(op: ir.OpView) -> bool:
    """Whether an operation is a view that does not define symbols, so that it may be in a group."""
    return is_view(op) and not isinstance(op, (MatchShape, CastShape))


def graph_groups(block: ir.Block) -> list[Group]:
    """The groups of a block, in program order."""
    return [Group(op) for op in block.operations if belongs_in_group(op)]
