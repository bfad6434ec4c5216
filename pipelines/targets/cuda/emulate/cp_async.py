"""Copies to shared memory that arrive when a thread waits for them (PTX ISA, "cp.async").

A copy reads and writes as late as possible: at the wait for its group. A kernel that reads data without waiting for it, or overwrites data
before it is read, therefore gives wrong numbers in emulation, as it may on the device. The check for races counts a copy as a write at its
start, and again at the wait.
"""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.mlir_text import mlir_texts
from relayc.pipelines.targets.gpu.emulate.pointers import word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.scheduler import USE
from relayc.pipelines.targets.gpu.emulate.thread import WRITES, WaitingThread

_QUEUE = "cp.async"
_COPY, _CHECKED_COPY = "__relayc_gpu.cp_async", "__relayc_gpu.cp_async_checked"
_SITE_SHIFT = 16
"""First bit of the number of the site in the word that holds the number of a thread."""
_MLIR = mlir_texts(__file__)
_TEXT = _MLIR["text"].substitute(copy=_COPY)
_CHECKED_TEXT = _MLIR["checked"].substitute(
    checked_copy=_CHECKED_COPY, site_shift=_SITE_SHIFT, site_mask=(1 << _SITE_SHIFT) - 1, writes=WRITES, use=USE, copy=_COPY
)


@instruction("nvvm.cp.async.shared.global", waits=True)
def copy(op: ir.Operation, thread: WaitingThread) -> None:
    """Copies 4, 8 or 16 bytes; a third operand gives the number of bytes that are read, the others are zeros."""
    to, source, *there = op.operands
    size = word(ir.IntegerAttr(op.attributes["size"]).value)
    words = [to, source, size, there[0] if there else size]
    queue, function = thread.queue(_QUEUE), thread.function(_COPY, _TEXT)
    if not thread.checks_races:
        thread.defer(queue, function, words)
        return
    thread.use_shared(op, to, size, WRITES)
    site = emit.arith("shli", thread.site(op), word(_SITE_SHIFT))
    function = thread.function(_CHECKED_COPY, _CHECKED_TEXT)
    thread.defer(queue, function, [*words, thread.block, emit.arith("ori", site, thread.linear)])


@instruction("nvvm.cp.async.commit.group", waits=True)
def commit(op: ir.Operation, thread: WaitingThread) -> None:
    thread.commit(thread.queue(_QUEUE))


@instruction("nvvm.cp.async.wait.group", waits=True)
def wait(op: ir.Operation, thread: WaitingThread) -> None:
    """Waits for all groups except the last n; copies that are not yet in a group stay in flight."""
    thread.deliver(thread.queue(_QUEUE), keep=ir.IntegerAttr(op.attributes["n"]).value)
