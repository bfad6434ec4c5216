"""What the passes CombineParallel... share: branches that multiply one tensor by several weights become one product and slices of it.

A model is compiled with constant weights and biases combined: nothing is copied when it runs. Programs of the Relay language ask for more
by the options below, and get slices in Relay's form.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import LayoutRole, Op, Pattern
from relayc.dialects.relay.binary import Add, Multiply, Subtract
from relayc.dialects.relay.names import build
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, config_option
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.reshapes import Shape, per_channel, reshape_to

config_option("relay.CombineParallel.min_branches", int, 3, "how many branches, or more, are combined")
config_option(
    "relay.CombineParallel.variables", bool, False, "whether weights that are arguments are combined, and what follows all branches"
)


@dataclass(frozen=True)
class Family:
    """Which operators combine and how.

    Attributes:
      operator: name in the IR.
      key: what the attributes and the weight's type of branches must have in common; None for an operator that cannot be combined.
      counted: the attribute that counts the channels of a branch, if there is one: of constants the combined operator goes without.
      weight_axis: dimension of the weight along which channels of the result run.
      result_axis: the same of the result.
    """

    operator: str
    key: Callable[[Op], Hashable | None]
    counted: str | None
    weight_axis: Callable[[Op], int]
    result_axis: Callable[[Op], int]


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


def combine(func: ir.Operation, family: Family, ctx: PassContext) -> None:
    """Combines the parallel branches of a function."""
    variables = ctx.get("relay.CombineParallel.variables")
    for block in list(graph_blocks(func)):
        groups: dict[Hashable, list[Op]] = {}
        for op in block.operations:
            if isinstance(op, Op) and op.operation.name == f"relay.{family.operator}" and _is_given(op.operation.operands[1], variables):
                key = family.key(op)
                if key is not None and TensorType.of(op.result).is_known:
                    groups.setdefault((op.operation.operands[0], key), []).append(op)
        for ops in groups.values():
            if len(ops) < ctx.get("relay.CombineParallel.min_branches"):
                continue
            if variables:
                _combine_rows([ops, *_followers(ops, family)], family)
            else:
                _combine([_branch(op, family) for op in ops], family)


def _is_given(value: ir.Value, variables: bool) -> bool:
    """Whether a value can be read where the first branch is: a constant, which is moved there, or an argument."""
    return isinstance(value.owner, Constant) or (variables and isinstance(value.owner, ir.Block))


# ---- branches of variables --------------------------------------------------------------------------------------------------------------


def _followers(ops: list[Op], family: Family) -> list[list[Op]]:
    """The same operators after all branches, each the one user of the one before it: elementwise, of a number for each channel beside."""
    rows: list[list[Op]] = []
    row = ops
    while True:
        users = [[use.owner for use in op.result.uses] for op in row]
        after = [found[0] for found in users if len(found) == 1]
        if len(after) < len(ops) or not all(_goes_along(user, op, ops[0], family) for user, op in zip(after, row, strict=True)):
            return rows
        if any(type(user) is not type(after[0]) or user.attrs() != after[0].attrs() for user in after):
            return rows
        rows.append(after)
        row = after


def _goes_along(user: ir.OpView, op: Op, first: Op, family: Family) -> bool:
    """Whether an operator after a branch may come after the combined one: it treats channels alike, or has a number for each."""
    if not isinstance(user, Op) or len(user.operation.results) != 1 or user.result.type != op.result.type:
        return False
    operands, axis, type_ = list(user.operation.operands), family.result_axis(first), TensorType.of(op.result)
    if len(operands) == 1:
        return user.pattern is Pattern.ELEMWISE and user.layout_role is LayoutRole.FOLLOWS
    if not isinstance(user, (Add, Subtract, Multiply)) or operands[0] != op.result or not _is_given(operands[1], True):
        return False
    shape = TensorType.of(operands[1]).shape
    padded = (1,) * (type_.rank - len(shape)) + shape
    return len(shape) >= type_.rank - axis and all(
        d == (n if i == axis else 1) for i, (d, n) in enumerate(zip(padded, type_.shape, strict=True))
    )


def _define_before(constant: ir.Value, first: Op) -> None:
    """Moves a constant before the first branch if it is after it: a shared constant may have users before the branch, or in its block."""
    operation = constant.owner.operation
    if operation.block == first.operation.block and first.operation.is_before_in_block(operation):
        operation.move_before(first.operation)


def _combine_rows(rows: list[list[Op]], family: Family) -> None:
    """Combines branches of operators that follow each other, row by row."""
    first, rank = rows[0][0], TensorType.of(rows[0][0].result).rank
    axis = family.result_axis(first)
    for value in (op.operation.operands[1] for row in rows for op in row if len(op.operation.operands) > 1):
        if isinstance(value.owner, Constant):
            _define_before(value, first)
    sizes = [TensorType.of(op.result).static_shape[axis] for op in rows[0]]
    attrs = first.attrs() if family.counted is None else {**first.attrs(), family.counted: sum(sizes)}
    with ir.InsertionPoint(first.operation), ir.Location.fused([op.location for op in rows[0]]):
        weights = [op.operation.operands[1] for op in rows[0]]
        whole = build(
            first.relay_name, first.operation.operands[0], build("concatenate", *weights, axis=family.weight_axis(first)), **attrs
        )
        for row in rows[1:]:
            others = [op.operation.operands[1] for op in row if len(op.operation.operands) > 1]
            shapes = [TensorType.of(other).static_shape for other in others]
            most = max(map(len, shapes), default=0)
            beside = [reshape_to(other, (1,) * (most - len(shape)) + shape) for other, shape in zip(others, shapes, strict=True)]
            beside = [build("concatenate", *beside, axis=axis - rank + most)] if others else []
            whole = build(row[0].relay_name, whole, *beside, **row[0].attrs())
        parts, begin = [], 0
        for size in sizes:
            ends = {"begin": (*(0,) * axis, begin), "end": (*(-1,) * axis, size)}
            parts.append(build("strided_slice", whole, **ends, strides=(1,) * (axis + 1), slice_mode="size"))
            begin += size
    for op, part in zip(rows[-1], parts, strict=True):
        op.result.replace_all_uses_with(part)
    for row in reversed(rows):
        for op in row:
            op.operation.erase()


# ---- constant branches ------------------------------------------------------------------------------------------------------------------


def _combine(branches: list[_Branch], family: Family) -> None:
    first = branches[0].op
    biased = all(b.bias is not None for b in branches)
    for branch in branches:
        for value in (branch.op.operation.operands[1], branch.bias):
            if value is not None:
                _define_before(value, first)
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
