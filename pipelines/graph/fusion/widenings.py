"""What is widened from 8 bits, such as a dequantised tensor, is widened by each of its readers: a tensor in memory stays 8 bits wide.

%1 = multiply(cast<f32>(%0), scale)      two kernels read %1   ->   each has a multiply(cast<f32>(%0), scale) of its own
"""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, Pattern
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.graph.byte_tables import BYTES
from relayc.pipelines.graph.fold_scale_axis import is_constant

ARITHMETIC = ("add", "cast", "divide", "multiply", "subtract")
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
    """Whether an operator has one result of more than 8 bits, which arithmetic with constants makes of 8 bits; if so, it is noted."""
    name, operands, results = type(op)._op_name, list(op.operation.operands), list(op.operation.results)
    if name not in ARITHMETIC or len(results) != 1 or not isinstance(results[0].type, ir.RankedTensorType):
        return False
    moving = [v for v in operands if not is_constant(v)]
    if len(moving) != 1 or results[0].type.shape != moving[0].type.shape or TensorType.of(results[0]).dtype in BYTES:
        return False
    if moving[0] not in widened and not (name == "cast" and TensorType.of(moving[0]).dtype in BYTES):
        return False
    widened.add(results[0])
    return True
