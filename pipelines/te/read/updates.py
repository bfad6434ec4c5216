"""Kernels that update some elements of an argument (scatter).

If the result shares the argument's memory, the kernel writes only the updated elements.

The attribute `relay.updates = array<i64: RESULT, ARGUMENT, ...>` of a te kernel, and of its tir function, permits calls to share the
memory. If the result has its own memory, the kernel copies the argument first.
"""

from collections.abc import Mapping

from relayc.dialects.discardable import UPDATES
from relayc.dialects.mlir import ir, scf
from relayc.dialects.operations import last_operation


def find_updates(function: ir.OpView) -> dict[int, int]:
    """The argument that a te kernel may update for each result, by position of the result: loops insert elements, starting from the
    argument."""
    block = function.regions[0].blocks[0]
    terminator = last_operation(block)
    found = {i: _updated(value) for i, value in enumerate(terminator.operation.operands)}
    return {i: argument for i, argument in found.items() if argument is not None}


def _updated(value: ir.Value) -> int | None:
    result = value
    while not isinstance(value.owner, ir.Block):
        loop = value.owner.opview
        if not isinstance(loop, scf.ForOp) or len(list(value.uses)) != 1:
            return None
        # operands after the bounds and the step are initial values
        value = loop.operation.operands[3 + list(loop.operation.results).index(value)]
    is_updated = value != result and value.type == result.type and len(list(value.uses)) == 1
    return ir.BlockArgument(value).arg_number if is_updated else None


def updates_of(function: ir.OpView) -> dict[int, int]:
    """The attribute of a kernel: arguments by position of the result."""
    if not UPDATES.on(function):
        return {}
    numbers = list(ir.DenseI64ArrayAttr(UPDATES.of(function)))
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def mark_updates(function: ir.OpView, updates: Mapping[int, int]) -> None:
    """Permits calls of a kernel to place results in the memory of arguments."""
    known = updates_of(function) | dict(updates)
    UPDATES.put(function, ir.DenseI64ArrayAttr.get([n for pair in known.items() for n in pair]))
