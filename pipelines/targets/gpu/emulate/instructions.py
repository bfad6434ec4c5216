"""Replaces every instruction of a kernel by its effect on the CPU."""

from relayc.dialects.mlir import ir
from relayc.dialects.operations import find_operations
from relayc.pipelines.targets.gpu.emulate.registry import INSTRUCTIONS
from relayc.pipelines.targets.gpu.emulate.thread import Thread

_GPU = ("gpu.", "nvvm.")
_ENDS = "gpu.return"


def find_instructions(root: ir.Operation) -> list[ir.Operation]:
    """The operations under `root` that are instructions of a GPU, in order."""

    def is_instruction(op: ir.Operation) -> bool:
        name = op.name
        return op != root and name != _ENDS and (name in INSTRUCTIONS or name.startswith(_GPU))

    return find_operations(root, is_instruction, ir.WalkOrder.PRE_ORDER)


def find_waits(root: ir.Operation) -> list[ir.Operation]:
    """The instructions that only kernels as coroutines have."""
    return [op for op in find_instructions(root) if op.name in INSTRUCTIONS and INSTRUCTIONS[op.name].waits]


def emulate_instructions(root: ir.Operation, thread: Thread) -> None:
    """Replaces the instructions in the function `root` by code with the same effect.

    Raises:
      ValueError: the emulation does not support an instruction.
    """
    for op in find_instructions(root):
        known = INSTRUCTIONS.get(op.name)
        if known is None:
            raise ValueError(f"kernel {thread.kernel} at {op.location}: expected operations that the emulation knows, found {op.name}")
        with ir.InsertionPoint(op), op.location:
            values = known.emulate(op, thread) or []
        for result, value in zip(op.results, values, strict=True):
            result.replace_all_uses_with(value)
        op.erase()
