"""Kernels whose threads do not wait for each other: loops over blocks and threads."""

from contextlib import ExitStack

from relayc.dialects.discardable import SMALL
from relayc.dialects.mlir import func, ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.targets.gpu.emulate.instructions import emulate_instructions
from relayc.pipelines.targets.gpu.emulate.kernel import EmulatedKernel, local_memory
from relayc.pipelines.targets.gpu.emulate.thread import Thread
from relayc.pipelines.targets.gpu.positions import Position, block_of, linear_thread, product


def run_in_loops(kernel: EmulatedKernel, name: str) -> None:
    """Emits a function that runs the grid of a kernel at the insertion point; the kernel is empty after."""
    function, sizes = kernel.function_of_grid(name)
    SMALL.mark(function)
    grid, block = sizes[:3], sizes[3:]
    arguments = list(function.arguments)[: len(kernel.types)]
    with ir.InsertionPoint(function.entry_block):
        number = Var(0, 0)
        with emit.parallel_loop([number], extents=[product(grid)]), ExitStack() as threads:
            block_id = block_of(grid, number.value)
            shared = [local_memory(t) for t in kernel.shared]
            private = [local_memory(t) for t in kernel.private]
            loops = [Var(0, 0) for _ in block]
            for var, size in reversed(list(zip(loops, block, strict=True))):
                threads.enter_context(emit.for_loop(0, size, 1, var))
            thread_id = [var.value for var in loops]
            position = Position(grid, block, block_id, thread_id, linear_thread(block, thread_id))
            kernel.move_in([*arguments, *shared, *private])
        func.ReturnOp([])
    emulate_instructions(function.operation, Thread(kernel.name, position))
