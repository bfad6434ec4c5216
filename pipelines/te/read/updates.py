"""Kernels that write some elements of an argument (scatter): called with the result in the memory of that argument, one writes no others.

The attribute `relay.updates = array<i64: RESULT, ARGUMENT, ...>` of a te kernel, and of what it becomes in the tir stage, says that calls
may do that. The kernel copies the argument first where the result has memory of its own.
"""

from collections.abc import Mapping

from relayc.dialects.discardable import UPDATES
from relayc.dialects.mlir import ir, scf
from relayc.dialects.operations import last_operation


def find_updates(function: ir.OpView) -> dict[int, int]:
    """Which argument a te kernel may update for which result, by position of the result: loops insert elements, beginning with it."""
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
        # After the bounds and the step comes what the loop begins with.
        value = loop.operation.operands[3 + list(loop.operation.results).index(value)]
    is_updated = value != result and value.type == result.type and len(list(value.uses)) == 1
    return ir.BlockArgument(value).arg_number if is_updated else None


def updates_of(function: ir.OpView) -> dict[int, int]:
    """What the attribute of a kernel says: arguments by position of the result."""
    if not UPDATES.on(function):
        return {}
    numbers = list(ir.DenseI64ArrayAttr(UPDATES.of(function)))
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def mark_updates(function: ir.OpView, updates: Mapping[int, int]) -> None:
    """Lets calls of a kernel put results where arguments are."""
    known = updates_of(function) | dict(updates)
    UPDATES.put(function, ir.DenseI64ArrayAttr.get([n for pair in known.items() for n in pair]))
