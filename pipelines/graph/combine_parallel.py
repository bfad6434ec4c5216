"""The passes CombineParallel...: branches that multiply one tensor by several weights become one product and slices of it.

A model is compiled with constant weights and biases combined: nothing is copied when it runs. Programs of the Relay language ask for more
by the options below, and get slices in Relay's form.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import chain, pairwise

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import LayoutRole, Op, Pattern
from relayc.dialects.relay.binary import Add, Multiply, Subtract
from relayc.dialects.relay.layout import layout
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.names import build
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.context.passes import PassContext, config_option, function_pass
from relayc.pipelines.graph.blocks import graph_blocks
from relayc.pipelines.graph.reshapes import per_channel, reshape_to
from relayc.symbolic import Size

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


def _combine_branches(func: ir.Operation, family: Family, ctx: PassContext) -> None:
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
            if len(ops) >= ctx.get("relay.CombineParallel.min_branches"):
                _combine([ops, *(_followers if variables else _bias_sums)(ops, family)], family, variables)


def _is_given(value: ir.Value, variables: bool) -> bool:
    """Whether a value can be read where the first branch is: a constant, which is moved there, or an argument."""
    return isinstance(value.owner, Constant) or (variables and isinstance(value.owner, ir.Block))


# ---- what follows branches --------------------------------------------------------------------------------------------------------------


def _bias_sums(ops: list[Op], family: Family) -> list[list[Op]]:
    """The sums with constant biases after all branches, each the only use of its product; nothing where a branch has none."""
    found = [_bias_sum(op, family) for op in ops]
    sums = [user for user in found if user is not None]
    return [sums] if len(sums) == len(ops) else []


def _bias_sum(op: Op, family: Family) -> Op | None:
    uses = list(op.result.uses)
    user = uses[0].owner if len(uses) == 1 else None
    if not isinstance(user, Add) or user.result.type != op.result.type:
        return None
    (bias,) = _beside(user, op)
    fits = isinstance(bias.owner, Constant) and per_channel(bias, TensorType.of(op.result).sizes, family.result_axis(op))
    return user if fits else None


def _beside(user: Op, op: Op) -> list[ir.Value]:
    """The operands of a user of a result beside this result."""
    return [value for value in user.operation.operands if value != op.result]


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


# ---- combined branches ------------------------------------------------------------------------------------------------------------------


def _combine(rows: list[list[Op]], family: Family, variables: bool) -> None:
    """Combines branches of operators that follow each other, row by row."""
    ops = rows[0]
    first, axis = ops[0], family.result_axis(ops[0])
    types = [TensorType.of(op.result) for op in ops]
    sizes = [type_.static_shape[axis] if variables else type_.sizes[axis] for type_ in types]
    weights = [op.operation.operands[1] for op in ops]
    beside = [[value for user, op in zip(after, row, strict=True) for value in _beside(user, op)] for row, after in pairwise(rows)]
    for value in chain.from_iterable(zip(weights, *filter(None, beside), strict=True)):
        if isinstance(value.owner, Constant):
            _define_before(value, first)
    attrs = {name: value for name, value in first.attrs().items() if name != family.counted}
    if variables and family.counted is not None:
        attrs[family.counted] = sum(sizes)
    with ir.InsertionPoint(first.operation), ir.Location.fused([op.location for op in ops]):
        weight = build("concatenate", *weights, axis=family.weight_axis(first))
        whole = build(first.relay_name, first.operation.operands[0], weight, **attrs)
        for row, values in zip(rows[1:], beside, strict=True):
            joined = [(_joined if variables else _joined_biases)(values, types, axis)] if values else []
            whole = build(row[0].relay_name, whole, *joined, **row[0].attrs())
        begin: Size = 0
        for op, size in zip(rows[-1], sizes, strict=True):
            if variables:
                slice_ = {"begin": (*(0,) * axis, begin), "end": (*(-1,) * axis, size), "strides": (1,) * (axis + 1), "slice_mode": "size"}
            else:
                slice_ = {"begin": (begin,), "end": (begin + size,), "strides": (1,), "axes": (axis,)}
            op.result.replace_all_uses_with(build("strided_slice", whole, **slice_))
            begin += size
    for row in reversed(rows):
        for op in row:
            op.operation.erase()


def _define_before(constant: ir.Value, first: Op) -> None:
    """Moves a constant before the first branch if it is after it: a shared constant may have users before the branch, or in its block."""
    operation = constant.owner.operation
    if operation.block == first.operation.block and first.operation.is_before_in_block(operation):
        operation.move_before(first.operation)


def _joined(values: list[ir.Value], types: list[TensorType], axis: int) -> ir.Value:
    """Operands with a number for each channel as one operand."""
    shapes = [TensorType.of(value).static_shape for value in values]
    rank = max(map(len, shapes))
    padded = [reshape_to(value, (1,) * (rank - len(shape)) + shape) for value, shape in zip(values, shapes, strict=True)]
    return build("concatenate", *padded, axis=axis - types[0].rank + rank)


def _joined_biases(values: list[ir.Value], types: list[TensorType], axis: int) -> ir.Value:
    """Biases, some of which have one number for all channels, as one."""
    sizes, vectors = [type_.sizes[axis] for type_ in types], []
    for value, type_, size in zip(values, types, sizes, strict=True):
        vector = per_channel(value, type_.sizes, axis)
        vectors.append(vector if TensorType.of(vector).shape == (size,) else build("broadcast_to", vector, shape=(size,)))
    return reshape_to(build("concatenate", *vectors, axis=0), [sum(sizes) if i == axis else 1 for i in range(types[0].rank)])


# ---- passes -----------------------------------------------------------------------------------------------------------------------------


def _key_of_dense(op: Op) -> Hashable:
    weight = TensorType.of(op.weight)
    return op.out_dtype, weight.shape[1], weight.dtype


_DENSE = Family("nn_dense", _key_of_dense, "units", lambda op: 0, lambda op: TensorType.of(op.data).rank - 1)


@function_pass(opt_level=4, name="CombineParallelDense")
def combine_parallel_dense(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Three or more nn.dense of the same data become one, with their biases (query, key, value)."""
    _combine_branches(func, _DENSE, ctx)


def _key_of_conv2d(op: Op) -> Hashable | None:
    if op.groups != 1 or layout(op.out_layout or op.data_layout).blocks:
        return None
    weight = layout(op.kernel_layout).logical(TensorType.of(op.weight).sizes)
    attrs = {name: value for name, value in op.attrs().items() if name != "channels"}
    return tuple(attrs.items()), tuple(weight[axis] for axis in "IHW"), TensorType.of(op.weight).dtype


_CONV2D = Family(
    "nn_conv2d",
    _key_of_conv2d,
    "channels",
    lambda op: layout(op.kernel_layout).index("O"),
    lambda op: layout(op.out_layout or op.data_layout).index("C"),
)


@function_pass(opt_level=4, name="CombineParallelConv2D")
def combine_parallel_conv2d(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Three or more nn.conv2d of the same data with equal windows become one, with their biases."""
    _combine_branches(func, _CONV2D, ctx)


def _key_of_batch_matmul(op: Op) -> Hashable:
    shape = TensorType.of(op.tensor_b).shape
    return tuple(op.attrs().items()), shape[0], shape[2 if op.transpose_b else 1], TensorType.of(op.tensor_b).dtype


_BATCH_MATMUL = Family("nn_batch_matmul", _key_of_batch_matmul, None, lambda op: 1 if op.transpose_b else 2, lambda op: 2)


@function_pass(opt_level=4, name="CombineParallelBatchMatmul")
def combine_parallel_batch_matmul(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Three or more nn.batch_matmul of the same matrices become one, with what follows all of them."""
    _combine_branches(func, _BATCH_MATMUL, ctx)
