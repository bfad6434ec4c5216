"""The operations that compute tensors, in topological order."""

from collections.abc import Iterable, Mapping, Sequence

from relayc.dialects import functions
from relayc.pipelines.te.language.computations import emit_compute
from relayc.pipelines.te.language.expressions import SizeExpr, children_first
from relayc.pipelines.te.language.tensors import ComputeOp, Operation, Tensor, walk
from relayc.pipelines.te.rules.core import Value
from relayc.symbolic import Dim, Size, symbols_of


def in_order(tensors: Iterable[Tensor]) -> list[Operation]:
    """The operations that compute tensors, each once and after its inputs."""
    found: dict[int, Operation] = {}
    for tensor in tensors:
        for op in children_first(tensor.op, lambda op: [t.op for t in op.input_tensors], lambda op: id(op) in found):
            found[id(op)] = op
    return list(found.values())


def unique_names(operations: Sequence[Operation], taken: Iterable[str] = ()) -> dict[int, str]:
    """A name for each operation, by its id: its own, with a number appended if it is in use."""
    names = functions.unique_names([op.name for op in operations], taken)
    return {id(op): name for op, name in zip(operations, names, strict=True)}


def tensor_name(tensor: Tensor, names: Mapping[int, str]) -> str:
    """The name of a tensor, from the name of its operation."""
    name = names[id(tensor.op)]
    return name if tensor.op.num_outputs == 1 else f"{name}.v{tensor.value_index}"


def emit_operations(operations: Sequence[Operation], values: dict[int, Value], names: Mapping[int, str]) -> None:
    """Emits computations at the ambient insertion point.

    Args:
      values: the value of each tensor by its id; results are added.
    """
    for op in operations:
        if isinstance(op, ComputeOp):
            made = emit_compute(op, lambda t: values[id(t)], names[id(op)])
            values.update({id(t): value for t, value in zip(op.tensors, made, strict=True)})


def symbols_in(operations: Iterable[Operation]) -> set[str]:
    """Names of the symbols in the shapes and expressions of operations."""
    sizes: list[Size] = []
    for op in operations:
        sizes += [d for t in (*op.tensors, *op.input_tensors) for d in t.type.sizes]
        if isinstance(op, ComputeOp):
            sizes += [d for axis in op.reduce_axis for d in (axis.low, axis.extent)]
            sizes += [x.size for x in walk(op.body) if isinstance(x, SizeExpr)]
    return {name for d in sizes if isinstance(d, Dim) for name in symbols_of(d)}
