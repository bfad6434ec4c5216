"""Copies to shared memory that arrive when a thread waits for them (PTX ISA, "cp.async").

A copy reads and writes as late as it may: at the wait for its group. So a kernel that does not wait for what it reads, or that overwrites
what is still to be read, gives wrong numbers here as it may on the device. Where races are checked for, a copy counts as a write from when
it is begun, and as one when it is waited for.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.pointers import word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.scheduler import USE
from relayc.pipelines.targets.gpu.emulate.thread import WRITES, WaitingThread

_QUEUE = "cp.async"
_COPY, _CHECKED_COPY = "__relayc_gpu.cp_async", "__relayc_gpu.cp_async_checked"
_SITE_SHIFT = 16
"""In the word that has the number of a thread, the one of the site begins at this bit."""
_TEXT = f"""
// Copies the first bytes of a piece, and makes the others zero.
func.func private @{_COPY}(%words: !llvm.ptr) {{
  %to = llvm.load %words : !llvm.ptr -> !llvm.ptr
  %p1 = llvm.getelementptr %words[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %from = llvm.load %p1 : !llvm.ptr -> !llvm.ptr
  %p2 = llvm.getelementptr %words[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %size = llvm.load %p2 : !llvm.ptr -> i64
  %p3 = llvm.getelementptr %words[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %there = llvm.load %p3 : !llvm.ptr -> i64
  %zero = llvm.mlir.constant(0 : i8) : i8
  "llvm.intr.memset"(%to, %zero, %size) <{{isVolatile = false}}> : (!llvm.ptr, i8, i64) -> ()
  "llvm.intr.memcpy"(%to, %from, %there) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  return
}}
"""
_CHECKED_TEXT = f"""
// The same, noted as a write of a thread: behind the words of the copy are the memory of its block, its number, and the number of the site.
func.func private @{_CHECKED_COPY}(%words: !llvm.ptr) {{
  %to = llvm.load %words : !llvm.ptr -> !llvm.ptr
  %p2 = llvm.getelementptr %words[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %size = llvm.load %p2 : !llvm.ptr -> i64
  %p4 = llvm.getelementptr %words[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %block = llvm.load %p4 : !llvm.ptr -> !llvm.ptr
  %p5 = llvm.getelementptr %words[5] : (!llvm.ptr) -> !llvm.ptr, i64
  %both = llvm.load %p5 : !llvm.ptr -> i64
  %bits = arith.constant {_SITE_SHIFT} : i64
  %mask = arith.constant {(1 << _SITE_SHIFT) - 1} : i64
  %writes = arith.constant {WRITES} : i64
  %site = arith.shrui %both, %bits : i64
  %thread = arith.andi %both, %mask : i64
  func.call @{USE}(%block, %thread, %to, %size, %site, %writes) : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64) -> ()
  func.call @{_COPY}(%words) : (!llvm.ptr) -> ()
  return
}}

func.func private @{USE}(!llvm.ptr, i64, !llvm.ptr, i64, i64, i64)
func.func private @{_COPY}(!llvm.ptr)
"""


@instruction("nvvm.cp.async.shared.global", waits=True)
def copy(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """4, 8 or 16 bytes; with a third operand, as many of them as it says, and zeros."""
    to, source, *there = op.operands
    size = word(ir.IntegerAttr(op.attributes["size"]).value)
    words = [to, source, size, there[0] if there else size]
    queue, function = thread.queue(_QUEUE), thread.function(_COPY, _TEXT)
    if not thread.checks_races:
        thread.defer(queue, function, words)
        return []
    thread.use_shared(op, to, size, WRITES)
    site = emit.arith("shli", thread.site(op), word(_SITE_SHIFT))
    function = thread.function(_CHECKED_COPY, _CHECKED_TEXT)
    thread.defer(queue, function, [*words, thread.block, emit.arith("ori", site, thread.linear)])
    return []


@instruction("nvvm.cp.async.commit.group", waits=True)
def commit(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    thread.commit(thread.queue(_QUEUE))
    return []


@instruction("nvvm.cp.async.wait.group", waits=True)
def wait(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """Waits for all groups but the last n ones; copies that are in no group yet go on being on their way."""
    thread.deliver(thread.queue(_QUEUE), keep=ir.IntegerAttr(op.attributes["n"]).value)
    return []
