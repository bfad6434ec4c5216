"""Computations of te as linalg operations on tensors."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from relayc.dialects.discardable import strings_attribute
from relayc.dialects.functions import unique_names
from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import TensorType
from relayc.dialects.tir.names import AXES
from relayc.pipelines.te.language.expressions import Argument, Expr, IterVar, Reduce
from relayc.pipelines.te.language.operands import Operands
from relayc.pipelines.te.language.scalars import ScalarEmitter
from relayc.pipelines.te.language.tensors import ComputeOp, Tensor
from relayc.pipelines.te.rules.core import Value, affine_map, dim, empty, fill, generic, identity, te_type

Values = Callable[[Tensor], Value]


def emit_compute(op: ComputeOp, values: Values, name: str) -> list[Value]:
    """Emits a computation at the ambient insertion point; returns its results.

    Args:
      values: returns the value of an available tensor.
      name: of the computation, used in the locations of its operations.
    """
    with ir.Location.name(name, ir.Location.current):
        if isinstance(op.body[0], Reduce):
            return _emit_reduction(op, values)
        return _emit_elementwise(op.axis, op.body, [t.type for t in op.tensors], values)


def _emit_elementwise(axes: Sequence[IterVar], body: Sequence[Expr], types: Sequence[TensorType], values: Values) -> list[Value]:
    operands = Operands(axes, body, values)
    rank = len(axes)
    whole = operands.padded.get(id(body[0]))
    if len(body) == 1 and whole is not None and not whole[1] and operands.maps[whole[0]] == identity(rank):
        padding = operands.inputs[whole[0]]
        if padding.type == te_type(types[0]):
            return [_named(padding, axes)]

    def elements(*arguments: Value) -> list[Value]:
        made = ScalarEmitter(operands, arguments, values)
        return [made.element(x) for x in body]

    outputs = [empty(t) for t in types]
    made = generic(operands.inputs, operands.maps, outputs, [identity(rank)] * len(outputs), ["parallel"] * rank, elements)
    _named(made[0], axes)
    return made


def _emit_reduction(op: ComputeOp, values: Values) -> list[Value]:
    reductions = [x for x in op.body if isinstance(x, Reduce)]
    axes = [*op.axis, *op.reduce_axis]
    together: dict[int, Reduce] = {}
    for x in reductions:
        together.setdefault(id(x.sources), x)  # values that are reduced together share their sources
    groups = list(together.values())
    sources = [x for group in groups for x in group.sources]
    inits = [init for group in groups for init in _inits(group, op, values)]
    operands = Operands(axes, sources, values)
    operands.give_extents(sources[0].dtype)
    count = len(operands.inputs)

    def elements(*arguments: Value) -> list[Value]:
        body = ScalarEmitter(operands, arguments[:count], values)
        accumulators = iter(arguments[count:])
        found = []
        for group in groups:
            found += _combined(group, body, accumulators)
        return found

    result_map = affine_map(len(axes), [dim(i) for i in range(len(op.axis))])
    kinds = ["parallel"] * len(op.axis) + ["reduction"] * len(op.reduce_axis)
    made = generic(operands.inputs, operands.maps, inits, [result_map] * len(inits), kinds, elements)
    _named(made[0], axes)
    first = dict(zip(together, accumulate((len(group.sources) for group in groups), initial=0), strict=False))
    return [made[first[id(x.sources)] + x.position] for x in reductions]


def _combined(group: Reduce, body: ScalarEmitter, accumulators: Iterator[Value]) -> list[Value]:
    """The accumulators of a group combined with its sources."""
    dtypes = [x.dtype for x in group.sources]
    old, new = ([Argument(f"{stem}{i}", d) for i, d in enumerate(dtypes)] for stem in ("x", "y"))
    for argument, source in zip(new, group.sources, strict=True):
        body.bind(argument, body.value(source))
    for argument in old:
        body.bind_element(argument, next(accumulators))
    return [body.element(x) for x in group.reducer.combine(old, new)]


def _inits(group: Reduce, op: ComputeOp, values: Values) -> list[Value]:
    """The initial tensors of a reduction."""
    sizes = op.tensors[0].type.shape
    dtypes = [x.dtype for x in group.sources]
    if group.init is not None:
        return _emit_elementwise(op.axis, group.init, [TensorType(sizes, d) for d in dtypes], values)
    made = [fill(TensorType(sizes, c.dtype), c.value) for c in group.reducer.identity(dtypes)]
    return [_named(value, op.axis) for value in made]


def _named(value: Value, axes: Sequence[IterVar]) -> Value:
    """Records the names of the loops of the operation that defines a value, made unique."""
    names = unique_names(axis.name for axis in axes)
    value.owner.attributes[AXES] = strings_attribute(names)
    return value
