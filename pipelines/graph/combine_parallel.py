"""What CombineParallelDense and CombineParallelConv2D share: branches that multiply one tensor by several weights become one product."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.binary import Add
from relayc.dialects.relay.names import build
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.reshapes import Shape, per_channel, reshape_to


@dataclass(frozen=True)
class Family:
    """Which operators combine and how.

    Attributes:
      operator: name in the IR.
      key: what the attributes and the weight's type of branches must have in common; None for an operator that cannot be combined.
      counted: the attribute that counts the channels of a branch, which the combined operator goes without.
      weight_axis: dimension of the weight along which channels of the result run.
      result_axis: the same of the result.
      min_branches: combine this many branches or more.
    """

    operator: str
    key: Callable[[Op], Hashable | None]
    counted: str
    weight_axis: Callable[[Op], int]
    result_axis: Callable[[Op], int]
    min_branches: int


@dataclass
class _Branch:
    op: Op
    bias_add: Op | None
    bias: ir.Value | None

    @property
    def end(self) -> ir.Value:
        return (self.bias_add or self.op).operation.results[0]


def _branch(op: Op, family: Family) -> _Branch:
    """A branch and the constant bias added to it, where that is the only use of the product."""
    uses = list(op.result.uses)
    user = uses[0].owner if len(uses) == 1 else None
    if user is None or not isinstance(user, Add) or user.result.type != op.result.type:
        return _Branch(op, None, None)
    bias = next(v for v in user.operation.operands if v != op.result)
    if not isinstance(bias.owner, Constant):
        return _Branch(op, None, None)
    fits = per_channel(bias, TensorType.of(op.result).sizes, family.result_axis(op))
    return _Branch(op, user, bias) if fits else _Branch(op, None, None)


def combine(func: ir.Operation, family: Family) -> None:
    """Combines the parallel branches of a function."""
    for block in list(graph_blocks(func)):
        groups: dict[Hashable, list[Op]] = {}
        for op in block.operations:
            if (
                isinstance(op, Op)
                and op.operation.name == f"relay.{family.operator}"
                and isinstance(op.operation.operands[1].owner, Constant)
            ):
                key = family.key(op)
                if key is not None and TensorType.of(op.result).is_known:
                    groups.setdefault((op.operation.operands[0], key), []).append(op)
        for ops in groups.values():
            if len(ops) >= family.min_branches:
                _combine([_branch(op, family) for op in ops], family)


def _combine(branches: list[_Branch], family: Family) -> None:
    first = branches[0].op
    biased = all(b.bias is not None for b in branches)
    for branch in branches:
        for value in (branch.op.operation.operands[1], branch.bias):
            if value is not None:
                value.owner.operation.move_before(first.operation)
    with ir.InsertionPoint(first.operation), ir.Location.fused([b.op.location for b in branches]):
        parts = _product(branches, family, biased)
    ends = [b.end if biased else b.op.operation.results[0] for b in branches]
    for old, new in zip(ends, parts, strict=True):
        old.replace_all_uses_with(new)
    for branch in branches:
        if biased and branch.bias_add is not None:
            branch.bias_add.operation.erase()
        branch.op.operation.erase()


def _product(branches: list[_Branch], family: Family, biased: bool) -> list[ir.Value]:
    """The combined product, bias added, and the slice of each branch."""
    first = branches[0].op
    attrs = {name: value for name, value in first.attrs().items() if name != family.counted}
    weight = build("concatenate", *[b.op.operation.operands[1] for b in branches], axis=family.weight_axis(first))
    whole = build(first.relay_name, first.operation.operands[0], weight, **attrs)
    axis, rank = family.result_axis(first), TensorType.of(whole).rank
    sizes = [TensorType.of(b.op.operation.operands[1]).static_shape[family.weight_axis(b.op)] for b in branches]
    if biased:
        vectors = [_full_vector(b.bias, n, TensorType.of(b.op.result).sizes, axis) for b, n in zip(branches, sizes, strict=True)]
        bias = build("concatenate", *vectors, axis=0)
        whole = build("add", whole, reshape_to(bias, [sum(sizes) if i == axis else 1 for i in range(rank)]))
    parts, begin = [], 0
    for size in sizes:
        parts.append(build("strided_slice", whole, begin=(begin,), end=(begin + size,), strides=(1,), axes=(axis,)))
        begin += size
    return parts


def _full_vector(bias: ir.Value, size: int, shape: Shape, axis: int) -> ir.Value:
    vector = per_channel(bias, shape, axis)
    return vector if TensorType.of(vector).shape == (size,) else build("broadcast_to", vector, shape=(size,))
