"""Instructions of GPUs by name: what the emulation does in their place.

An instruction is a function that emits, at the ambient insertion point, what the operation does on the CPU, and gives the values of its
results, if it has any. It stands in the registry under the names of its operations, and comes in with the module that defines it (for
NVIDIA: pipelines.targets.cuda.emulate). There are four sorts, and an example of each:

1. What a thread does alone. It runs in every kernel:

       @instruction("nvvm.fence.proxy", "nvvm.fence.mbarrier.init")
       def fence(op, thread):
           pass

2. What makes a thread wait for others. Its kernels run as coroutines (see thread.WaitingThread):

       @instruction("gpu.barrier", waits=True)
       def barrier(op, thread):
           thread.wait_for_block(op, uniform=True)

3. What the lanes of a warp do together: each leaves its operands, waits for the others, and computes its own results of what they all left.
   After `exchange` every lane of `mask` has left its values, and the lanes go on in their order: what the first of them writes to memory
   the others see.

       @instruction("nvvm.shfl.sync", waits=True)
       def shuffle(op, thread):
           mask, value, lane, _ = op.operands
           lanes = thread.exchange(op, [value], mask)
           return [lanes.read(0, lane)]

4. What comes true later than the instruction: a copy, whose data must not be there before somebody has waited for it. The instruction puts
   a call of a function off, and the one that waits has it made (see pipelines.targets.cuda.emulate.cp_async for the whole of it):

       @instruction("nvvm.cp.async.shared.global", waits=True)
       def copy(op, thread):
           queue = thread.queue("cp.async")
           thread.defer(queue, thread.function("copy_16", TEXT), [to, source, bytes])

       @instruction("nvvm.cp.async.commit.group", waits=True)
       def commit(op, thread):
           thread.commit(thread.queue("cp.async"))

       @instruction("nvvm.cp.async.wait.group", waits=True)
       def wait(op, thread):
           thread.deliver(thread.queue("cp.async"), keep=n)

   A queue of the block (`per="block"`) is of copies for which no thread asks, such as TMA's: the oldest of them is made when no thread
   can go on otherwise. A thread that waits until something holds says so with `thread.poll`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.dialects.mlir import ir

Emulation = Callable[[ir.Operation, Any], Sequence[ir.Value] | None]
"""Emits the effect of an operation for a thread (a thread.Thread); returns the values of its results, nothing where it has none."""


@dataclass(frozen=True)
class Instruction:
    """An instruction.

    Attributes:
      waits: whether its kernels must run as coroutines: its threads wait, or it needs memory of the block.
    """

    emulate: Emulation
    waits: bool


INSTRUCTIONS: dict[str, Instruction] = {}
"""By the name of the operation."""


def instruction(*names: str, waits: bool = False) -> Callable[[Emulation], Emulation]:
    """Registers a function for operations of some names."""

    def register(emulate: Emulation) -> Emulation:
        for name in names:
            INSTRUCTIONS[name] = Instruction(emulate, waits)
        return emulate

    return register
