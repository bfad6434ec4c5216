"""Concatenations in place: tensors of a program that lie within another one, so that their kernels write straight into it.

Where only dimensions of 1 stand before the axis of a concatenation (channels of one image, in NCHW and in blocks), each operand is a
contiguous part of the result. A part must be the result of a kernel and of no second place; a concatenation of parts that already lie so
in a larger one (a dense block joins ever more of the same tensors) is a part of that.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import prod

from relayc.dialects.mlir import func, ir
from relayc.pipelines.kernel.graph import NotStructured, read_kernel

Value = ir.Value

VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")


def concatenated(function: ir.OpView) -> list[int] | None:
    """Positions of the arguments that a te function joins one after the other in memory, in order; None where it does anything else."""
    try:
        kernel = read_kernel(function)
    except NotStructured:
        return None
    if len(kernel.results) != 1 or kernel.results[0].kind != "concat":
        return None
    result = kernel.results[0]
    positions = [n.position for n in result.inputs if n.kind == "arg"]
    whole = len(result.inputs) == len(kernel.args) == len(set(positions)) == len(positions)
    return positions if whole and prod(result.shape[: result.axis]) == 1 and result.size else None


@dataclass
class Places:
    """Where tensors lie within others.

    Attributes:
      within: the enclosing tensor and the first byte in it, by tensor; enclosing ones may lie within others.
      needless: results of calls that have nothing left to do.
    """

    within: dict[Value, tuple[Value, int]] = field(default_factory=dict)
    needless: set[Value] = field(default_factory=set)

    def outermost(self, value: Value) -> tuple[Value, int]:
        """The tensor that encloses all others around `value`, and the first byte of `value` in it."""
        offset = 0
        while value in self.within:
            value, inner = self.within[value]
            offset += inner
        return value, offset


def find_places(
    block: ir.Block, joins: Mapping[str, Sequence[int]], element_bytes: Callable[[ir.Type], int], placed: AbstractSet[Value]
) -> Places:
    """Places of the tensors of a block of a program.

    Later concatenations go first, as they are the larger ones.

    Args:
      joins: the kernels that `concatenated` takes apart, by name.
      placed: tensors whose place is elsewhere, such as what the block returns; they stay outside.
    """
    places, source = Places(), {}
    for op in block.operations:
        if op.operation.name in VIEWS:
            data = op.operation.operands[0]
            source[op.operation.results[0]] = source.get(data, data)
    root = lambda value: source.get(value, value)  # noqa: E731 (an argument, not a definition)
    results = {r for op in block.operations if isinstance(op, func.CallOp) for r in op.operation.results}
    for op in reversed(list(block.operations)):
        if not isinstance(op, func.CallOp) or op.callee.value not in joins:
            continue
        whole = op.operation.results[0]
        operands = list(op.operation.operands)
        parts = [root(operands[i]) for i in joins[op.callee.value]]
        if whole in placed or len(set(parts)) < len(parts) or not set(parts) <= results - placed:
            continue
        sizes = [prod(p.type.shape) * element_bytes(p.type.element_type) for p in parts]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        if not any(p in places.within for p in parts):
            places.within.update((p, (whole, start)) for p, start in zip(parts, starts, strict=True))
        elif whole not in places.within and _lie_together(places, parts, starts):
            places.within[whole] = places.outermost(parts[0])
        else:
            continue
        places.needless.add(whole)
    return places


def _lie_together(places: Places, parts: Sequence[Value], starts: Sequence[int]) -> bool:
    """Whether parts already lie one after the other in one tensor."""
    found = [places.outermost(p) for p in parts]
    outer, first = found[0]
    return all(value == outer and offset == first + start for (value, offset), start in zip(found, starts, strict=True))
