"""Products of a warp group (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

A thread computes its own sums when it comes to the product: it reads 64 rows of A and the columns of B where descriptors say. On the device
the operands may be read, and the sums may come, up to the wait for the group of products. So the wait makes all copies that are on their
way, and looks whether the operands of the products that it waits for are what they were: who lets copies overwrite them too early is stuck
at the wait, which is an error. That sums are used before the wait is not seen.

Products are exact, as on the device. Sums are rounded to f32 once every 16 steps of the depth, which the device does not promise.
"""

import re
from collections.abc import Sequence

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.cuda.emulate.mbarriers import COPIES, poll_until
from relayc.pipelines.gpu.emulate.pointers import call, load, load_word, store, to_word, word
from relayc.pipelines.gpu.emulate.registry import instruction
from relayc.pipelines.gpu.emulate.thread import WaitingThread
from relayc.pipelines.tir import emit

_GROUP_SHIFT, _GROUP = 7, 128
"""Threads of a group."""
_FIRST_BARRIER = 8
"""Of the barriers of a block those at which groups meet when they wait: kernels use the ones below by themselves."""
_ROWS, _DEPTH = 64, 16
_QUEUE = "wgmma"
_LINE, _HASH, _CHECK = "__relayc_cuda.wgmma.line", "__relayc_cuda.wgmma.hash", "__relayc_cuda.wgmma.check"

_LINE_TEXT = f"""
// Where chunk c of 16 bytes of a line is that a descriptor names; `base` is where shared memory begins.
func.func private @{_LINE}(%base: i64, %descriptor: i64, %line: i64, %chunk: i64) -> !llvm.ptr {{
  %mask = arith.constant 16383 : i64
  %c3 = arith.constant 3 : i64
  %c4 = arith.constant 4 : i64
  %c7 = arith.constant 7 : i64
  %c32 = arith.constant 32 : i64
  %start0 = arith.andi %descriptor, %mask : i64
  %start = arith.shli %start0, %c4 : i64
  %high = arith.shrui %descriptor, %c32 : i64
  %stride0 = arith.andi %high, %mask : i64
  %stride = arith.shli %stride0, %c4 : i64
  %eight = arith.shrui %line, %c3 : i64
  %within = arith.andi %line, %c7 : i64
  %a = arith.muli %eight, %stride : i64
  %b = arith.shli %within, %c7 : i64
  %c = arith.shli %chunk, %c4 : i64
  %d = arith.addi %start, %a : i64
  %e = arith.addi %d, %b : i64
  %plain = arith.addi %e, %c : i64
  %number = arith.shrui %plain, %c7 : i64
  %in_eight = arith.andi %number, %c7 : i64
  %bits = arith.shli %in_eight, %c4 : i64
  %permuted = arith.xori %plain, %bits : i64
  %address = arith.addi %base, %permuted : i64
  %pointer = llvm.inttoptr %address : i64 to !llvm.ptr
  return %pointer : !llvm.ptr
}}
"""
_HASH_TEXT = f"""
// A number that changes with what is in the lines of an operand.
func.func private @{_HASH}(%base: i64, %descriptor: i64, %lines: i64, %begin: i64) -> i64 {{
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %factor = arith.constant 6364136223846793005 : i64
  %found = scf.for %line = %c0 to %lines step %c1 iter_args(%outer = %begin) -> (i64) : i64 {{
    %inside = scf.for %chunk = %c0 to %c2 step %c1 iter_args(%sum = %outer) -> (i64) : i64 {{
      %p = func.call @{_LINE}(%base, %descriptor, %line, %chunk) : (i64, i64, i64, i64) -> !llvm.ptr
      %a = llvm.load %p : !llvm.ptr -> i64
      %q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, i64
      %b = llvm.load %q : !llvm.ptr -> i64
      %s0 = arith.xori %sum, %a : i64
      %s1 = arith.muli %s0, %factor : i64
      %s2 = arith.xori %s1, %b : i64
      %s3 = arith.muli %s2, %factor : i64
      %s4 = arith.addi %s3, %c1 : i64
      scf.yield %s4 : i64
    }}
    scf.yield %inside : i64
  }}
  return %found : i64
}}
"""
_CHECK_TEXT = f"""
// Notes whether operands are not what they were: words are the start of shared memory, descriptors, columns, their number, and the note.
func.func private @{_CHECK}(%words: !llvm.ptr) {{
  %rows = arith.constant {_ROWS} : i64
  %c1 = arith.constant 1 : i64
  %base = llvm.load %words : !llvm.ptr -> i64
  %p1 = llvm.getelementptr %words[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %a = llvm.load %p1 : !llvm.ptr -> i64
  %p2 = llvm.getelementptr %words[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %b = llvm.load %p2 : !llvm.ptr -> i64
  %p3 = llvm.getelementptr %words[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %columns = llvm.load %p3 : !llvm.ptr -> i64
  %p4 = llvm.getelementptr %words[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %was = llvm.load %p4 : !llvm.ptr -> i64
  %p5 = llvm.getelementptr %words[5] : (!llvm.ptr) -> !llvm.ptr, i64
  %note = llvm.load %p5 : !llvm.ptr -> !llvm.ptr
  %h0 = func.call @{_HASH}(%base, %a, %rows, %c1) : (i64, i64, i64, i64) -> i64
  %h1 = func.call @{_HASH}(%base, %b, %columns, %h0) : (i64, i64, i64, i64) -> i64
  %other = arith.cmpi ne, %h1, %was : i64
  scf.if %other {{
    llvm.store %c1, %note : i64, !llvm.ptr
  }}
  return
}}
"""


def _product_text(name: str, columns: int, element: str) -> str:
    """A function of a thread's sums, in memory, the start of shared memory, two descriptors and the number of the thread in its group."""

    def line(result: str, descriptor: str, number: str) -> str:
        text = ""
        for chunk in range(2):
            text += f"""
    %{result}p{chunk} = func.call @{_LINE}(%base, {descriptor}, {number}, %c{chunk}) : (i64, i64, i64, i64) -> !llvm.ptr
    %{result}n{chunk} = llvm.load %{result}p{chunk} {{alignment = 16 : i64}} : !llvm.ptr -> vector<8x{element}>
    %{result}{chunk} = arith.extf %{result}n{chunk} : vector<8x{element}> to vector<8xf32>"""
        return text

    rows = "".join(line(f"a{half}_", "%a", f"%row{half}") for half in range(2))
    steps = ""
    for odd in range(2):
        steps += f"""
    %column{odd} = arith.addi %first, %c{odd} : i64{line(f"b{odd}_", "%b", f"%column{odd}")}"""
        for half in range(2):
            tag = f"{half}{odd}"
            steps += f"""
    %p{tag} = llvm.getelementptr %place[{2 * half + odd}] : (!llvm.ptr) -> !llvm.ptr, f32
    %old{tag} = llvm.load %p{tag} : !llvm.ptr -> f32
    %m{tag} = arith.mulf %a{half}_0, %b{odd}_0 : vector<8xf32>
    %f{tag} = vector.fma %a{half}_1, %b{odd}_1, %m{tag} : vector<8xf32>
    %new{tag} = vector.reduction <add>, %f{tag}, %old{tag} : vector<8xf32> into f32
    llvm.store %new{tag}, %p{tag} : f32, !llvm.ptr"""
    return f"""
func.func private @{name}(%sums: !llvm.ptr, %base: i64, %a: i64, %b: i64, %thread: i64) attributes {{no_inline}} {{
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %c4 = arith.constant 4 : i64
  %c8 = arith.constant 8 : i64
  %c31 = arith.constant 31 : i64
  %c5 = arith.constant 5 : i64
  %eights = arith.constant {columns // 8} : i64
  %warp = arith.shrui %thread, %c5 : i64
  %lane = arith.andi %thread, %c31 : i64
  %first_row = arith.shli %warp, %c4 : i64
  %quad = arith.shrui %lane, %c2 : i64
  %row0 = arith.addi %first_row, %quad : i64
  %row1 = arith.addi %row0, %c8 : i64
  %pair0 = arith.andi %lane, %c3 : i64
  %pair = arith.shli %pair0, %c1 : i64{rows}
  scf.for %eight = %c0 to %eights step %c1 : i64 {{
    %skipped = arith.shli %eight, %c3 : i64
    %first = arith.addi %skipped, %pair : i64
    %index = arith.shli %eight, %c2 : i64
    %place = llvm.getelementptr %sums[%index] : (!llvm.ptr, i64) -> !llvm.ptr, f32{steps}
  }}
  return
}}
"""


@instruction("nvvm.wgmma.mma_async", waits=True)
def multiply_add(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """64 rows by up to 256 columns of bf16 or f16, 16 deep, both operands in lines along the depth."""
    sums, a, b = op.operands
    rows, columns, depth = map(int, re.findall(r"\d+", str(op.attributes["shape"])))
    kinds = [_kind(op, name) for name in ("typeA", "typeB", "typeD")]
    facts = [_kind(op, name) for name in ("scaleA", "scaleB", "scaleD", "layoutA", "layoutB")]
    if (rows, depth) != (_ROWS, _DEPTH) or kinds not in (["bf16", "bf16", "f32"], ["f16", "f16", "f32"]):
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected wgmma of bf16 or f16 in f32, found {kinds}")
    if facts != ["one", "one", "one", "row", "col"]:
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected wgmma of lines along the depth, scaled by 1, found {facts}")
    base = to_word(thread.block)
    in_group = emit.arith("andi", thread.linear, word(_GROUP - 1))
    name = f"__relayc_cuda.wgmma.{kinds[0]}.{columns}"
    memory = thread.reserve("wgmma sums", columns // 2 * 4, "thread", 0)
    store(sums, memory)
    call(thread.function(name, _product_text(name, columns, kinds[0]) + _LINE_TEXT), [memory, base, a, b, in_group])
    is_first = emit.compare("eq", in_group, word(0))
    note = _note(thread)
    queue = thread.queue(_QUEUE)
    branch = scf.IfOp(is_first)
    with ir.InsertionPoint(branch.then_block):
        hash_ = thread.function(_HASH, _HASH_TEXT + _LINE_TEXT)
        found = call(hash_, [base, a, word(_ROWS), word(1)], [word(0).type])
        found = call(hash_, [base, b, word(columns), found], [found.type])
        thread.defer(queue, thread.function(_CHECK, _CHECK_TEXT + _HASH_TEXT + _LINE_TEXT), [base, a, b, word(columns), found, note])
        emit.yield_values([])
    return [load(memory, op.results[0].type)]


def _kind(op: ir.Operation, attribute: str) -> str:
    found = re.search(r"<(\w+)>", str(op.attributes[attribute]))
    return found[1] if found else ""


def _note(thread: WaitingThread) -> ir.Value:
    """Where it is noted that operands of a thread's group were overwritten."""
    return thread.reserve("wgmma note", 8, "thread")


@instruction("nvvm.wgmma.commit.group.sync.aligned", waits=True)
def commit(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    thread.commit(thread.queue(_QUEUE))
    return []


@instruction("nvvm.wgmma.fence.aligned")
def fence(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    return []


@instruction("nvvm.wgmma.wait.group.sync.aligned", waits=True)
def wait(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """All threads of the group meet: others may run, and issue copies, between the products and their end."""
    number = emit.arith("addi", emit.arith("shrui", thread.linear, word(_GROUP_SHIFT)), word(_FIRST_BARRIER))
    thread.wait_for_block(op, number, word(_GROUP))
    thread.deliver(thread.queue(COPIES, per="block"))
    thread.deliver(thread.queue(_QUEUE), keep=ir.IntegerAttr(op.attributes["group"]).value)
    note = _note(thread)
    poll_until(op, thread, lambda: emit.compare("eq", load_word(note), word(0)))
    return []
