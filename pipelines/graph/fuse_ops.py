"""FuseOps: gathers operators into `relay.fused` groups, each of which becomes one kernel.

After it a function holds only constants, groups, views (`relay.reshape`, which moves no data) and its return. Relay's fusion patterns
decide. Groups grow from the last operator backwards: a producer joins the group that holds all uses of its result, so that a group has one
result and no cycle can arise, and diamonds (`x * sigmoid(x)`) close by themselves. Two sweeps:

1. epilogues: elementwise and broadcast operators of one shape form groups; then the convolution, product, pooling, reduction or softmax
   (the group's anchor) whose result they use joins. A group has at most one anchor.
2. injective producers: what is left without an anchor joins the group that uses it: injective into injective, injective into the input of
   a reduction, elementwise into the input of a row operator (`fuse_prologue`), elementwise beside an epilogue.

A concatenation that can be done in place (see schedule/inplace) stays alone: its operands' kernels then write straight into its result.

What a producer computes is never computed more often than its elements are: a producer smaller than its consumer (a gate that is
broadcast over an image) stays a kernel of its own, unless it only moves data.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, Pattern, fields_of, make_tuple, normalize_axis
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant, Fused, If, TupleGetItem, While, Yield
from relayc.dialects.relay.types import TensorType, type_of
from relayc.pipelines.passes import PassContext, config_option, function_pass

config_option("relay.FuseOps.max_depth", int, 256, "largest number of operators in a fusion group")
config_option("relay.FuseOps.max_operands", int, 48, "largest number of operands that a fusion group may reach by growing")

VIEWS = ("relay.reshape",)
"""Operators that give the same elements in the same order: they stay outside groups and cost nothing."""

_MOVES_ONLY = ("relay.broadcast_to", "relay.cast", "relay.copy")
_ANCHORS = (Pattern.COMM_REDUCE, Pattern.OUT_ELEMWISE_FUSABLE)


@dataclass(eq=False)
class _Node:
    """An operator of the block that belongs into a group."""

    index: int
    op: Op
    types: list[TensorType]
    operands: list[ir.Value]
    users: list["_Node | None"] = field(default_factory=list)
    prologue: bool = False

    @property
    def pattern(self) -> Pattern:
        return self.op.pattern

    @property
    def is_anchor(self) -> bool:
        return self.op.pattern in _ANCHORS

    @property
    def is_in_place(self) -> bool:
        """Whether this joins, one after the other in memory, tensors that operators of the program give."""
        if type(self.op)._op_name != "concatenate" or not self.types[0].is_static:
            return False
        axis = normalize_axis(self.op.axis, self.types[0].rank)
        made = all(isinstance(v.owner, Op) and not isinstance(v.owner, Constant) for v in self.operands)
        return made and prod(self.types[0].shape[:axis]) == 1 and len(set(self.operands)) == len(self.operands)  # type: ignore[arg-type]

    @property
    def moves_only(self) -> bool:
        return self.op.pattern == Pattern.INJECTIVE or self.op.operation.name in _MOVES_ONLY


@dataclass(eq=False)
class _Group:
    """Operators that become one kernel; `root` gives the result, `members` are in reverse program order."""

    root: _Node
    members: list[_Node]
    operands: set[ir.Value]
    anchor: _Node | None

    @property
    def pattern(self) -> Pattern:
        """The most restrictive pattern of the members."""
        return max(node.pattern for node in self.members)

    @property
    def type(self) -> TensorType:
        return self.root.types[0]


def _size(type_: TensorType) -> int:
    return type_.num_elements if type_.is_static else -1


def _is_scalar_constant(value: ir.Value) -> bool:
    return isinstance(value.owner, Constant) and _size(TensorType.of(value)) == 1


class _Fusion:
    """The groups of one block."""

    def __init__(self, block: ir.Block, max_depth: int, max_operands: int) -> None:
        self.max_depth, self.max_operands = max_depth, max_operands
        self.nodes = _nodes(block)
        self.group: list[_Group] = []
        for node in self.nodes:
            operands = {v for v in node.operands if not _is_scalar_constant(v)}
            self.group.append(_Group(node, [node], operands, node if node.is_anchor else None))

    def sweep(self, joins: Callable[[_Group, _Group, set[_Node]], bool]) -> None:
        """Offers every group, last first, to the group that holds all uses of its result."""
        for node in reversed(self.nodes):
            producer = self.group[node.index]
            if producer.root is not node or len(node.types) != 1 or node.op.root_only or None in node.users or not node.users:
                continue
            target = self.group[node.users[0].index]  # type: ignore[union-attr]
            if node.is_in_place or target.root.is_in_place:
                continue
            if any(self.group[user.index] is not target for user in node.users):  # type: ignore[union-attr]
                continue
            if len(target.root.types) == 1 and self._fits(producer, target) and joins(producer, target, set(node.users)):  # type: ignore[arg-type]
                self._merge(producer, target)

    def _fits(self, producer: _Group, target: _Group) -> bool:
        operands = len(producer.operands | target.operands) - 1
        return len(producer.members) + len(target.members) <= self.max_depth and operands <= self.max_operands

    def _merge(self, producer: _Group, target: _Group) -> None:
        target.operands.discard(producer.root.op.operation.results[0])
        target.operands |= producer.operands
        target.members += producer.members
        target.anchor = target.anchor or producer.anchor
        for node in producer.members:
            self.group[node.index] = target

    def groups(self) -> list[_Group]:
        """The groups, ordered by their roots."""
        return [group for node, group in zip(self.nodes, self.group, strict=True) if group.root is node]


def _nodes(block: ir.Block) -> list[_Node]:
    """The operators of a block that belong into groups, with their users (None for a use by anything else)."""
    nodes: list[_Node] = []
    producer: dict[ir.Value, _Node] = {}
    for view in block.operations:
        op = view.operation
        operands = list(op.operands)
        user = None
        if isinstance(view, Op) and not isinstance(view, (Constant, If, While, TupleGetItem, Yield, Fused)) and op.name not in VIEWS:
            user = _Node(len(nodes), view, [type_of(r) for r in op.results], operands)
            nodes.append(user)
            producer.update((r, user) for r in op.results)
        for value in (*operands, *_captured(op)):
            if value in producer:
                producer[value].users.append(user)
    return nodes


def _captured(op: ir.Operation) -> Iterable[ir.Value]:
    """Values that the regions of an operation use."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from inner.operation.operands
                yield from _captured(inner.operation)


# ---- the rules --------------------------------------------------------------------------------------------------------------------------


def _joins_as_epilogue(producer: _Group, target: _Group, users: set[_Node]) -> bool:
    """Sweep 1: whether `target`, elementwise so far and of the producer's shape throughout, takes the producer."""
    if target.anchor is not None or target.pattern > Pattern.BROADCAST:
        return False
    node = producer.root
    return (node.pattern <= Pattern.BROADCAST or node.is_anchor) and node.types[0].shape == target.type.shape


def _joins_as_producer(producer: _Group, target: _Group, users: set[_Node]) -> bool:
    """Sweep 2: whether a group without anchor joins the one that uses its result."""
    if producer.pattern > Pattern.INJECTIVE or _repeats(producer, users):
        return False
    if target.anchor is None:
        return target.pattern <= Pattern.INJECTIVE
    sides = {user is target.anchor or user.prologue for user in users}
    if len(sides) > 1:
        return False
    if sides == {False}:
        return producer.pattern <= Pattern.BROADCAST
    if not _feeds(producer, target.anchor, users):
        return False
    for node in producer.members:
        node.prologue = True
    return True


def _repeats(producer: _Group, users: set[_Node]) -> bool:
    """Whether a user reads elements of the producer more than once, so that fusing would compute them again."""
    if all(node.moves_only for node in producer.members):
        return False
    size = _size(producer.type)
    return any(_size(user.types[0]) > size and not user.op.root_only and not user.is_anchor for user in users)


def _feeds(producer: _Group, anchor: _Node, users: set[_Node]) -> bool:
    """Whether the anchor takes this producer into the loops that read its data."""
    if any(node.op.gathers for node in producer.members):
        return False
    if anchor.pattern == Pattern.COMM_REDUCE:
        return True
    data, *others = anchor.operands
    result = producer.root.op.operation.results[0]
    if anchor in users and (result != data or result in others):
        return False
    same_shape = producer.type.shape == TensorType.of(data).shape
    return anchor.op.fuse_prologue and producer.pattern <= Pattern.BROADCAST and same_shape


# ---- the rewrite ------------------------------------------------------------------------------------------------------------------------


def _location(group: _Group) -> ir.Location:
    locations = list(dict.fromkeys(node.op.operation.location for node in reversed(group.members)))
    return locations[0] if len(locations) == 1 else ir.Location.fused(locations)


def _outline(group: _Group) -> None:
    """Moves a group's operators into a relay.fused at the place of its root."""
    members = sorted(group.members, key=lambda node: node.index)
    operations = [node.op.operation for node in members]
    root = group.root.op.operation
    results = list(root.results)
    type_ = results[0].type if len(results) == 1 else ir.TupleType.get_tuple([r.type for r in results])
    with ir.InsertionPoint(root), _location(group):
        fused = Fused.create(type_)
        whole = fused.operation.results[0]
        outside = [whole] if len(results) == 1 else fields_of(whole)
    for old, new in zip(results, outside, strict=True):
        old.replace_all_uses_with(new)
    block = fused.body()
    for operation in operations:
        block.append(operation)
    with ir.InsertionPoint(block), root.location:
        Yield(results[0] if len(results) == 1 else make_tuple(results))


@function_pass(opt_level=0, name="FuseOps")
def fuse_ops(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Gathers operators into relay.fused groups; below opt_level 1 every operator is a group of its own."""
    for block in _blocks(func):
        fusion = _Fusion(block, ctx.get("relay.FuseOps.max_depth"), ctx.get("relay.FuseOps.max_operands"))
        if ctx.opt_level >= 1:
            fusion.sweep(_joins_as_epilogue)
            fusion.sweep(_joins_as_producer)
        for group in fusion.groups():
            _outline(group)
        for op in list(block.operations):
            if isinstance(op, Constant) and not list(op.result.uses):
                op.operation.erase()


def _blocks(op: ir.Operation) -> list[ir.Block]:
    """The blocks below an operation that hold graphs: its own and those of branches, not those of groups."""
    found = []
    for region in op.regions:
        for block in region.blocks:
            found.append(block)
            for inner in block.operations:
                if isinstance(inner, (If, While)):
                    found += _blocks(inner.operation)
    return found
