"""Sequential loops over tensors, for computations without a parallel form: sorting, scattering, scans."""

from collections.abc import Callable, Sequence
from math import prod

from relayc.dialects.mlir import ir, scf, tensor
from relayc.pipelines.te.rules.core import Value, index_constant
from relayc.symbolic import Size


def loop(begin: Value, end: Value, step: Value, carried: Sequence[Value], body: Callable[..., Sequence[Value]]) -> list[Value]:
    """for i in range(begin, end, step): carried = body(i, *carried). Returns the last `carried`."""
    op = scf.ForOp(begin, end, step, list(carried))
    with ir.InsertionPoint(op.body):
        scf.YieldOp(list(body(op.induction_variable, *op.inner_iter_args)))
    return list(op.results)


def nest(shape: Sequence[Size], carried: Sequence[Value], body: Callable[..., Sequence[Value]]) -> list[Value]:
    """Loops over every index of `shape` in row-major order: carried = body([i, j, ...], *carried)."""

    def level(indices: list[Value], carried: Sequence[Value]) -> Sequence[Value]:
        if len(indices) == len(shape):
            return body(indices, *carried)
        begin, end, step = (index_constant(n) for n in (0, shape[len(indices)], 1))
        return loop(begin, end, step, carried, lambda i, *inner: level([*indices, i], inner))

    return list(level([], carried))


def when(
    condition: Value,
    carried: Sequence[Value],
    body: Callable[..., Sequence[Value]],
    otherwise: Callable[..., Sequence[Value]] | None = None,
) -> list[Value]:
    """if condition: carried = body(*carried), else carried = otherwise(*carried), if given. Returns `carried` after it."""
    op = scf.IfOp(condition, [v.type for v in carried], has_else=True)
    with ir.InsertionPoint(op.then_block):
        scf.YieldOp(list(body(*carried)))
    with ir.InsertionPoint(op.else_block):
        scf.YieldOp(list(carried if otherwise is None else otherwise(*carried)))
    return list(op.results)


def repeat_while(carried: Sequence[Value], goes_on: Callable[..., Value], body: Callable[..., Sequence[Value]]) -> list[Value]:
    """while goes_on(*carried): carried = body(*carried). Returns the last `carried`."""
    types = [v.type for v in carried]
    op = scf.WhileOp(types, list(carried))
    before, after = (region.blocks.append(*types) for region in (op.before, op.after))
    with ir.InsertionPoint(before):
        scf.ConditionOp(goes_on(*before.arguments), list(before.arguments))
    with ir.InsertionPoint(after):
        scf.YieldOp(list(body(*after.arguments)))
    return list(op.results)


def insert(value: Value, into: Value, indices: Sequence[Value]) -> Value:
    """`into` with one element replaced."""
    return tensor.InsertOp(value, into, list(indices)).result


def along(shape: Sequence[Size], axis: int) -> tuple[Size, Size, Size]:
    """`shape` as (elements before `axis`, its size, elements after it): every line along an axis in three dimensions."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
