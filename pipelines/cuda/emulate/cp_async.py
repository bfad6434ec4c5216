"""Copies to shared memory that arrive when a thread waits for them (PTX ISA, "cp.async").

A copy reads and writes as late as it may: at the wait for its group. So a kernel that does not wait for what it reads, or that overwrites
what is still to be read, gives wrong numbers here as it may on the device.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.gpu.emulate.pointers import word
from relayc.pipelines.gpu.emulate.registry import instruction
from relayc.pipelines.gpu.emulate.thread import WaitingThread

_QUEUE = "cp.async"
_COPY = "__relayc_gpu.cp_async"
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


@instruction("nvvm.cp.async.shared.global", waits=True)
def copy(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """4, 8 or 16 bytes; with a third operand, as many of them as it says, and zeros."""
    to, source, *there = op.operands
    size = word(ir.IntegerAttr(op.attributes["size"]).value)
    thread.defer(thread.queue(_QUEUE), thread.function(_COPY, _TEXT), [to, source, size, there[0] if there else size])
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
