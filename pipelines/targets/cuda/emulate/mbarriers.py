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

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.mlir_text import mlir_texts
from relayc.pipelines.targets.gpu.emulate.pointers import call, store_word, to_word, word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import WaitingThread

_COUNT_SHIFT, _PARITY_SHIFT, _BYTES_SHIFT = 10, 20, 21
_FIELD = (1 << _COUNT_SHIFT) - 1

UPDATE, _HAS_ENDED = "__relayc_cuda.mbarrier.update", "__relayc_cuda.mbarrier.has_ended"
_MLIR = mlir_texts(__file__)
UPDATE_TEXT = _MLIR["update"].substitute(
    update=UPDATE, field=_FIELD, count_shift=_COUNT_SHIFT, bytes_shift=_BYTES_SHIFT, parity_bit=1 << _PARITY_SHIFT
)
_HAS_ENDED_TEXT = _MLIR["has_ended"].substitute(has_ended=_HAS_ENDED, parity_shift=_PARITY_SHIFT)


@instruction("nvvm.mbarrier.init", waits=True)
def init(op: ir.Operation, thread: WaitingThread) -> None:
    barrier, count = op.operands
    arrivals = to_word(count)
    store_word(emit.arith("ori", arrivals, emit.arith("shli", arrivals, word(_COUNT_SHIFT))), barrier)


@instruction("nvvm.mbarrier.arrive", waits=True)
def arrive(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """One arrival. What it gives is a token for waits that are not by parity, which are not emulated."""
    if next(iter(op.results[0].uses), None) is not None:
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected waits by parity, found a use of the token of {op.name}")
    call(thread.function(UPDATE, UPDATE_TEXT), [op.operands[0], word(1), word(0)])
    return [word(0)]


@instruction("nvvm.mbarrier.arrive.expect_tx", waits=True)
def arrive_expecting(op: ir.Operation, thread: WaitingThread) -> None:
    """One arrival, and bytes that are announced."""
    barrier, count = list(op.operands)[:2]
    call(thread.function(UPDATE, UPDATE_TEXT), [barrier, word(1), to_word(count)])


@instruction("nvvm.mbarrier.try_wait.parity", waits=True)
def wait(op: ir.Operation, thread: WaitingThread) -> None:
    """Until the phase of a parity has ended."""
    barrier, parity = list(op.operands)[:2]
    function = thread.function(_HAS_ENDED, _HAS_ENDED_TEXT)

    def has_ended() -> ir.Value:
        return call(function, [barrier, parity], [ir.IntegerType.get_signless(1)])

    poll_until(op, thread, has_ended)


def poll_until(op: ir.Operation, thread: WaitingThread, condition: Callable[[], ir.Value]) -> None:
    """Lets others run until a condition holds, which a function emits."""

    def goes_on(_: Sequence[ir.Value]) -> ir.Value:
        holds = condition()
        thread.poll(op, holds)
        return emit.arith("xori", holds, emit.number(1, holds.type))

    emit.repeat_while([], goes_on, lambda carried: carried)
