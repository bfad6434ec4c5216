"""Each kernel that reads a tensor widened from 8 bits, such as a dequantised tensor, widens it itself.

    %1 = multiply(cast<f32>(%0), scale)      two kernels read %1   ->   each has a multiply(cast<f32>(%0), scale) of its own

So memory holds the 8 bits, not the floats.
"""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, Pattern
from relayc.dialects.relay.types import BYTES, TensorType
from relayc.pipelines.graph.fold_scale_axis import is_constant

AFFINE = ("add", "cast", "divide", "multiply", "subtract")
READERS = frozenset([Pattern.ELEMWISE, Pattern.BROADCAST, Pattern.INJECTIVE, Pattern.COMM_REDUCE])
"""Patterns of the operators that a kernel computes of what it computes itself."""


def repeat_widenings(block: ir.Block) -> None:
    """Gives each reader but one operators of its own that widen 8 bits; those that must read memory keep one result together."""
    widened = set[ir.Value]()
    found = [op for op in block.operations if isinstance(op, Op) and _widens(op, widened)]
    for op in reversed(found):
        result = op.operation.results[0]
        users = list({use.owner.operation: use.owner for use in result.uses}.values())
        alone = [user for user in users if user.operation.block == block and isinstance(user, Op) and user.pattern in READERS]
        for user in alone[len(alone) == len(users) :]:
            with ir.InsertionPoint(user):
                copy = op.operation.clone().operation.results[0]
            operands = user.operation.operands
            for i, value in enumerate(operands):
                if value == result:
                    operands[i] = copy


def _widens(op: Op, widened: set[ir.Value]) -> bool:
    """Whether an operator makes more than 8 bits of 8 bits, by arithmetic with constants; notes its result if so."""
    name = type(op)._op_name
    if name not in AFFINE:
        return False
    operands, result = list(op.operation.operands), op.operation.results[0]
    sources = [v for v in operands if v in widened or (name == "cast" and TensorType.of(v).dtype in BYTES)]
    if len(sources) != 1 or [v for v in operands if not is_constant(v)] != sources:
        return False
    if result.type.shape != sources[0].type.shape or TensorType.of(result).dtype in BYTES:
        return False
    widened.add(result)
    return True
