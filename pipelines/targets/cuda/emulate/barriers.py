"""Barriers of a block, of some of its threads, and of a warp (PTX ISA, "bar", "barrier", "bar.warp.sync")."""

from relayc.dialects.mlir import ir
from relayc.pipelines.targets.gpu.emulate.pointers import to_word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import WaitingThread


@instruction("nvvm.barrier", waits=True)
def barrier(op: ir.Operation, thread: WaitingThread) -> None:
    """A barrier with a number, for a given count of threads, which may arrive from different operations."""
    has_number, has_threads = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = list(op.operands)
    number = operands.pop(0) if has_number else 0
    thread.wait_for_block(op, number, to_word(operands[0]) if has_threads else None)


@instruction("nvvm.barrier.arrive", waits=True)
def arrive(op: ir.Operation, thread: WaitingThread) -> None:
    """Comes to a barrier for which others wait."""
    *number, threads = op.operands
    thread.arrive(number[0] if number else 0, to_word(threads))


@instruction("nvvm.bar.warp.sync", waits=True)
def warp_barrier(op: ir.Operation, thread: WaitingThread) -> None:
    thread.wait_for_lanes(op, op.operands[0])
