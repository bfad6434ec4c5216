"""The rules by which groups grow: which producer is merged into the group that uses its result, and the constraints on merges.

Rules are tried in the order of RULES. The rules of one sweep are tried together on each pair of groups, the last producer of a block first,
so that a producer meets its consumer with everything that the consumer has absorbed before:

1. sweep `epilogue`: elementwise operators of one shape form groups, then the operator whose result they use joins as their anchor;
2. sweep `producer`: groups without an anchor join the group that uses them.

A rule is a predicate on two groups. It is evaluated only if no constraint (CONSTRAINTS) forbids the merge.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, Pattern
from relayc.dialects.relay.dense import BatchMatmul
from relayc.dialects.relay.indexing import GatherNd, Take
from relayc.dialects.relay.pool import Pool
from relayc.dialects.relay.shapes import normalize_axis
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.transform import Concatenate
from relayc.dialects.relay.types import BYTES, TensorType
from relayc.dialects.relay.unary import Cast
from relayc.pipelines.context.passes import config_option
from relayc.pipelines.graph.fusion.groups import ANCHORS, Group
from relayc.pipelines.graph.fusion.shapes import has_equal_type, same_shape, typical_elements

config_option("relay.FuseOps.max_depth", int, 256, "largest number of operators in a fusion group")
config_option("relay.FuseOps.max_operands", int, 48, "largest number of operands that a fusion group may reach by growing")
config_option("relay.FuseOps.disabled_rules", list, [], "names of fusion rules and constraints to turn off")

Judgement = Callable[[Group, Group], bool]
"""A predicate on a producer and the consumer of its result."""

ELEMENTWISE = frozenset([Pattern.ELEMWISE, Pattern.BROADCAST])
INJECTIVE = ELEMENTWISE | {Pattern.INJECTIVE}
ANY = frozenset(Pattern)


@dataclass(frozen=True)
class Rule:
    """A reason to merge a producer into its consumer.

    Attributes:
      name: by which users disable it.
      allows: the predicate; its docstring describes the rule.
      sweep: name of its sweep.
      opt_level: lowest PassContext.opt_level at which it is tried.
      producers, consumers: patterns of the groups to which it applies.
      extend: whether it may merge groups that a pattern gathered.
      outside: whether it was registered from outside the package.
    """

    name: str
    allows: Judgement
    sweep: str
    opt_level: int = 1
    producers: frozenset[Pattern] = ANY
    consumers: frozenset[Pattern] = ANY
    extend: bool = False
    outside: bool = False


@dataclass(frozen=True)
class Constraint:
    """A reason to keep a producer and its consumer separate.

    Attributes:
      name: by which users disable it.
      allows: the predicate: False forbids the merge. Its docstring gives the reason.
      required: whether merging would be wrong without it, so that it cannot be disabled.
      opt_level: that of a rule which is tried at every level.
    """

    name: str
    allows: Judgement
    required: bool
    opt_level = 0


RULES: list[Rule] = []
"""The rules in the order in which they are tried; the rules of one sweep are adjacent."""

CONSTRAINTS: list[Constraint] = []
"""The constraints on every merge, in the order in which they are evaluated."""


def _rule(name: str, sweep: str, producers: Iterable[Pattern], consumers: Iterable[Pattern]) -> Callable[[Judgement], Judgement]:
    def register(allows: Judgement) -> Judgement:
        RULES.append(Rule(name, allows, sweep, producers=frozenset(producers), consumers=frozenset(consumers)))
        return allows

    return register


def _constraint(name: str, required: bool) -> Callable[[Judgement], Judgement]:
    def register(allows: Judgement) -> Judgement:
        CONSTRAINTS.append(Constraint(name, allows, required))
        return allows

    return register


# ---- sweep 1: epilogues ------------------------------------------------------------------------------------------------------------------


@_rule("elementwise-into-elementwise", "epilogue", ELEMENTWISE, ELEMENTWISE)
def elementwise_into_elementwise(producer: Group, consumer: Group) -> bool:
    """Elementwise and broadcasting operators whose results have the same shape form a group."""
    return same_shape(producer.result, consumer.result)


@_rule("epilogue", "epilogue", ANCHORS, ELEMENTWISE)
def epilogue(producer: Group, consumer: Group) -> bool:
    """An anchor (a convolution, product, pooling, reduction or row operator) absorbs the elementwise group that uses its result, if that
    has the same shape."""
    return same_shape(producer.result, consumer.result)


# ---- sweep 2: groups without an anchor -------------------------------------------------------------------------------------------------


@_rule("injective-into-injective", "producer", INJECTIVE, INJECTIVE)
def injective_into_injective(producer: Group, consumer: Group) -> bool:
    """Operators that move, broadcast or map elements form a group, whatever their shapes."""
    return True


@_rule("injective-into-reduction", "producer", INJECTIVE, [Pattern.COMM_REDUCE])
def injective_into_reduction(producer: Group, consumer: Group) -> bool:
    """A reduction absorbs the producers of its input, except operators that read at computed indices."""
    return _feeds_anchor(producer, consumer) and not _gathers(producer)


@_rule("prologue", "producer", ELEMENTWISE, [Pattern.OUT_ELEMWISE_FUSABLE])
def prologue(producer: Group, consumer: Group) -> bool:
    """A row operator (softmax, normalisation) absorbs elementwise producers of its data, which have its shape; not producers of its other
    operands."""
    anchor = consumer.anchor
    if anchor is None or not anchor.fuse_prologue or not _feeds_anchor(producer, consumer) or _gathers(producer):
        return False
    data, *others = anchor.operation.operands
    if any(user.operation == anchor.operation for user in producer.users) and (producer.result != data or producer.result in others):
        return False
    return same_shape(producer.result, data)


@_rule("widening-into-pooling", "producer", [Pattern.ELEMWISE], [Pattern.OUT_ELEMWISE_FUSABLE])
def widening_into_pooling(producer: Group, consumer: Group) -> bool:
    """A pooling absorbs a conversion of its data from 8 bits, and reads the bytes. Rows of pixels must have a known length."""
    conversion, *others = producer.members
    if others or not isinstance(conversion, Cast) or not isinstance(consumer.anchor, Pool):
        return False
    data = TensorType.of(conversion.operation.operands[0])
    image = data.shape[2:] if consumer.anchor.geometry().layout.axes[-1] == "W" else data.shape[-1:]
    return data.dtype in BYTES and all(isinstance(n, int) for n in image) and _feeds_anchor(producer, consumer)


@_rule("elementwise-beside-epilogue", "producer", ELEMENTWISE, ANCHORS)
def elementwise_beside_epilogue(producer: Group, consumer: Group) -> bool:
    """An elementwise producer of another operand of an epilogue, beside its anchor's result, joins the group."""
    users = producer.users
    anchor = consumer.anchor
    if anchor is None or any(user.operation == anchor.operation for user in users):
        return False
    return not any(user.operation.results[0] in consumer.prologue for user in users)


@_rule("slice-beside-epilogue", "producer", [Pattern.INJECTIVE], ANCHORS)
def slice_beside_epilogue(producer: Group, consumer: Group) -> bool:
    """A slice at a computed position (take of one index) that is another operand of an epilogue, beside its anchor's result, joins the
    group."""
    slices = all(isinstance(m, Take) and TensorType.of(m.operation.operands[1]).rank == 0 for m in producer.members)
    return slices and elementwise_beside_epilogue(producer, consumer)


FEW_ROWS = 8
"""Limit of the rows of a product for which each row of the other operand is read only once: see `gather_into_product`."""


@_rule("gather-into-product", "producer", [Pattern.INJECTIVE], [Pattern.OUT_ELEMWISE_FUSABLE])
def gather_into_product(producer: Group, consumer: Group) -> bool:
    """A batched product with few rows absorbs a gather of whole rows along the depth (the weights of an expert), which it reads once."""
    product, (gather, *others) = consumer.anchor, producer.members
    if others or not isinstance(product, BatchMatmul) or not _gathers_rows(gather) or len(producer.users) > 1:
        return False
    a, b = product.operation.operands
    is_a = producer.result == a
    if not (is_a or producer.result == b):
        return False
    is_along_depth = not product.transpose_a if is_a else product.transpose_b
    other = TensorType.of(b if is_a else a)
    rows = other.shape[1 if (product.transpose_b if is_a else not product.transpose_a) else 2]
    return is_along_depth and isinstance(rows, int) and rows <= FEW_ROWS


def _gathers_rows(op: Op) -> bool:
    """Whether an operator reads whole rows at computed indices: its last axis is contiguous in memory."""
    if isinstance(op, GatherNd):
        data, indices = (TensorType.of(v) for v in op.operation.operands)
        return isinstance(indices.shape[0], int) and op.batch_dims + indices.shape[0] < data.rank
    rank = TensorType.of(op.operation.operands[0]).rank
    return isinstance(op, Take) and op.axis is not None and normalize_axis(op.axis, rank) < rank - 1


def _feeds_anchor(producer: Group, consumer: Group) -> bool:
    """Whether all members of the consumer that use the producer are the anchor or compute its inputs."""
    anchor = consumer.anchor.operation
    return all(user.operation == anchor or user.operation.results[0] in consumer.prologue for user in producer.users)


def _gathers(producer: Group) -> bool:
    return any(member.gathers for member in producer.members)


# ---- constraints ----------------------------------------------------------------------------------------------------------------------


@_constraint("one-result", required=True)
def one_result(producer: Group, consumer: Group) -> bool:
    """An operator of several results is a group of its own."""
    return producer.has_one_result and consumer.has_one_result


@_constraint("end-of-group", required=False)
def end_of_group(producer: Group, consumer: Group) -> bool:
    """Nothing is fused after an operator that writes its result in pieces (concatenate, stack, pad)."""
    return not producer.root.root_only


@_constraint("one-consumer", required=True)
def one_consumer(producer: Group, consumer: Group) -> bool:
    """A producer joins the group that contains all uses of its result, so that a group has one result, no cycle arises and diamonds (`x *
    sigmoid(x)`) close by themselves."""
    operation = consumer.operation
    return all(user.operation == operation or user.operation.parent == operation for user in producer.users)


@_constraint("concatenation-in-place", required=False)
def concatenation_in_place(producer: Group, consumer: Group) -> bool:
    """A concatenation of contiguous results of operators stays a group of its own: their kernels write directly into its result."""
    return not (_is_in_place(consumer) or _is_in_place(producer))


def _is_in_place(group: Group) -> bool:
    if not isinstance(group.root, Concatenate) or len(group.members) > 1:
        return False
    type_ = TensorType.of(group.result)
    operands = list(group.root.operation.operands)
    if not type_.is_known or not all(isinstance(v.owner, Op) and not isinstance(v.owner, Constant) for v in operands):
        return False
    axis = normalize_axis(group.root.axis, type_.rank)
    return prod(type_.sizes[:axis]) == 1 and len(set(operands)) == len(operands)


@_constraint("no-repeated-computation", required=False)
def no_repeated_computation(producer: Group, consumer: Group) -> bool:
    """A producer smaller than its consumer (a gate broadcast over an image) stays a separate kernel, so that its elements are not computed
    repeatedly, unless it only moves data. Symbolic sizes are compared at their typical values; with unknown dimensions both must have the
    same shape."""
    readers = [user for user in producer.users if not user.root_only and user.pattern not in ANCHORS]
    if not readers or all(m.pattern == Pattern.INJECTIVE or m.moves_only for m in producer.members):
        return True
    result = producer.result
    return all(_is_no_larger(reader.operation.results[0], result) for reader in readers)


def _is_no_larger(value: ir.Value, other: ir.Value) -> bool:
    if has_equal_type(value, other):
        return True
    size, limit = typical_elements(value), typical_elements(other)
    return same_shape(value, other) if size is None or limit is None else size <= limit
