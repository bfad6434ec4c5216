"""Barriers in shared memory (PTX ISA, "mbarrier").

A barrier is a word of 8 bytes:

    bits 0-9    arrivals that are missing in this phase
    bits 10-19  arrivals of a phase
    bit 20      parity of the phase
    bits 21-63  bytes that were announced and have not come (signed: they may come before they are announced)

A phase ends when no arrival and no byte is missing. An arrival too many makes a barrier one whose phases do not end any more, and so do
bytes that were announced and that no copy brings: who waits for it is stuck, which is an error.
"""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.pointers import call, store_word, to_word, word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import WaitingThread

_COUNT_SHIFT, _PARITY_SHIFT, _BYTES_SHIFT = 10, 20, 21
_FIELD = (1 << _COUNT_SHIFT) - 1

UPDATE, _HAS_ENDED = "__relayc_cuda.mbarrier.update", "__relayc_cuda.mbarrier.has_ended"
UPDATE_TEXT = f"""
// Arrivals come to a barrier, and bytes are announced (or come: fewer than 0).
func.func private @{UPDATE}(%barrier: !llvm.ptr, %arrivals: i64, %bytes: i64) {{
  %c0 = arith.constant 0 : i64
  %field = arith.constant {_FIELD} : i64
  %count_shift = arith.constant {_COUNT_SHIFT} : i64
  %bytes_shift = arith.constant {_BYTES_SHIFT} : i64
  %parity_bit = arith.constant {1 << _PARITY_SHIFT} : i64
  %state = llvm.load %barrier : !llvm.ptr -> i64
  %missing = arith.andi %state, %field : i64
  %left = arith.subi %missing, %arrivals : i64
  %few = arith.cmpi slt, %left, %c0 : i64
  // Of a phase that has ended too early nothing is known: this one never ends.
  %still = arith.select %few, %field, %left : i64
  %shifted = arith.shli %bytes, %bytes_shift : i64
  %without = arith.subi %state, %missing : i64
  %with = arith.addi %without, %still : i64
  %new = arith.addi %with, %shifted : i64
  %coming = arith.shrsi %new, %bytes_shift : i64
  %both = arith.ori %coming, %still : i64
  %ends = arith.cmpi eq, %both, %c0 : i64
  %count0 = arith.shrui %new, %count_shift : i64
  %count = arith.andi %count0, %field : i64
  %flipped = arith.xori %new, %parity_bit : i64
  %next = arith.ori %flipped, %count : i64
  %after = arith.select %ends, %next, %new : i64
  llvm.store %after, %barrier : i64, !llvm.ptr
  return
}}
"""
_HAS_ENDED_TEXT = f"""
// Whether the phase of a parity has ended: the one that is on now is of the other.
func.func private @{_HAS_ENDED}(%barrier: !llvm.ptr, %parity: i32) -> i1 {{
  %shift = arith.constant {_PARITY_SHIFT} : i64
  %one = arith.constant 1 : i64
  %state = llvm.load %barrier : !llvm.ptr -> i64
  %shifted = arith.shrui %state, %shift : i64
  %now = arith.andi %shifted, %one : i64
  %asked = arith.extui %parity : i32 to i64
  %ended = arith.cmpi ne, %now, %asked : i64
  return %ended : i1
}}
"""


@instruction("nvvm.mbarrier.init", waits=True)
def init(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    barrier, count = op.operands
    arrivals = to_word(count)
    store_word(emit.arith("ori", arrivals, emit.arith("shli", arrivals, word(_COUNT_SHIFT))), barrier)
    return []


@instruction("nvvm.mbarrier.arrive", waits=True)
def arrive(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """One arrival. What it gives is a token for waits that are not by parity, which are not emulated."""
    if any(True for _ in op.results[0].uses):
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected waits by parity, found a use of the token of {op.name}")
    call(thread.function(UPDATE, UPDATE_TEXT), [op.operands[0], word(1), word(0)])
    return [word(0)]


@instruction("nvvm.mbarrier.arrive.expect_tx", waits=True)
def arrive_expecting(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """One arrival, and bytes that are announced."""
    barrier, count = list(op.operands)[:2]
    call(thread.function(UPDATE, UPDATE_TEXT), [barrier, word(1), to_word(count)])
    return []


@instruction("nvvm.mbarrier.try_wait.parity", waits=True)
def wait(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """Until the phase of a parity has ended."""
    barrier, parity = list(op.operands)[:2]
    function = thread.function(_HAS_ENDED, _HAS_ENDED_TEXT)

    def has_ended() -> ir.Value:
        return call(function, [barrier, parity], [ir.IntegerType.get_signless(1)])

    poll_until(op, thread, has_ended)
    return []


def poll_until(op: ir.Operation, thread: WaitingThread, condition: Callable[[], ir.Value]) -> None:
    """Lets others run until a condition holds, which a function emits."""
    loop = scf.WhileOp([], [])
    before, after = loop.before.blocks.append(), loop.after.blocks.append()
    with ir.InsertionPoint(before):
        holds = condition()
        thread.poll(op, holds)
        again = emit.arith("xori", holds, emit.number(1, holds.type))
        ir.Operation.create("scf.condition", operands=[again])
    with ir.InsertionPoint(after):
        emit.yield_values([])
