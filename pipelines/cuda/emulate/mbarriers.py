"""Barriers in shared memory, and copies by the tensor memory accelerator that they count (PTX ISA, "mbarrier", "cp.async.bulk.tensor").

A barrier is a word of 8 bytes:

    bits 0-9    arrivals that are missing in this phase
    bits 10-19  arrivals of a phase
    bit 20      parity of the phase
    bits 21-63  bytes that were announced and have not come (signed: they may come before they are announced)

A phase ends when no arrival and no byte is missing. An arrival too many makes a barrier one whose phases do not end any more, and so do
bytes that were announced and that no copy brings: who waits for it is stuck, which is an error.

A copy is made as late as it may be: when no thread can go on without it, or when products are waited for (see warp_groups). So who reads
its data without having waited gets what was there before.
"""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.cuda.tensor_maps import word as map_word
from relayc.pipelines.gpu.emulate.pointers import call, store_word, to_word, word
from relayc.pipelines.gpu.emulate.registry import instruction
from relayc.pipelines.gpu.emulate.thread import WaitingThread
from relayc.pipelines.tir import emit

_COUNT_SHIFT, _PARITY_SHIFT, _BYTES_SHIFT = 10, 20, 21
_FIELD = (1 << _COUNT_SHIFT) - 1
COPIES = "tma"
"""The queue of copies of a block."""

_UPDATE, _HAS_ENDED = "__relayc_cuda.mbarrier.update", "__relayc_cuda.mbarrier.has_ended"
_UPDATE_TEXT = f"""
// Arrivals come to a barrier, and bytes are announced (or come: fewer than 0).
func.func private @{_UPDATE}(%barrier: !llvm.ptr, %arrivals: i64, %bytes: i64) {{
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
    call(thread.function(_UPDATE, _UPDATE_TEXT), [op.operands[0], word(1), word(0)])
    return [word(0)]


@instruction("nvvm.mbarrier.arrive.expect_tx", waits=True)
def arrive_expecting(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """One arrival, and bytes that are announced."""
    barrier, count = list(op.operands)[:2]
    call(thread.function(_UPDATE, _UPDATE_TEXT), [barrier, word(1), to_word(count)])
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


_SWIZZLE = "__relayc_cuda.swizzle"
_SWIZZLE_TEXT = f"""
// Where a byte of a tile of lines of 128 bytes lies: chunk c of 16 bytes of line i of eight at c ^ i.
func.func private @{_SWIZZLE}(%address: i64) -> i64 {{
  %c7 = arith.constant 7 : i64
  %c4 = arith.constant 4 : i64
  %line = arith.shrui %address, %c7 : i64
  %in_eight = arith.andi %line, %c7 : i64
  %bits = arith.shli %in_eight, %c4 : i64
  %found = arith.xori %address, %bits : i64
  return %found : i64
}}
"""


@instruction("nvvm.cp.async.bulk.tensor.shared.cluster.global", waits=True)
def copy_box(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """The box of a tensor of up to three dimensions, in lines of 128 bytes that are permuted."""
    counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    rank = counts[2]
    if counts[4:] != [0] * len(counts[4:]) or not 1 <= rank <= 3:
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected a copy of a box of up to 3 dimensions, found {op}")
    to, tensor_map, *at, barrier = op.operands
    name = f"__relayc_cuda.tma.{rank}"
    function = thread.function(name, _copy_text(name, rank) + _UPDATE_TEXT + _SWIZZLE_TEXT)
    thread.defer(thread.queue(COPIES, per="block"), function, [to, tensor_map, barrier, *at])
    return []


def _copy_text(name: str, rank: int) -> str:
    """A function of the words (destination, map, barrier, coordinates). It copies chunks of 16 bytes, which are permuted as a whole."""
    lines = [
        f"func.func private @{name}(%words: !llvm.ptr) {{",
        *(f"  %c{i} = arith.constant {i} : i64" for i in (0, 1, 16)),
        "  %zero = arith.constant 0 : i8",
        "  %zeros = arith.constant dense<0> : vector<16xi8>",
    ]
    for i, what in enumerate(("to", "map", "barrier")):
        lines += [f"  %p{what} = llvm.getelementptr %words[{i}] : (!llvm.ptr) -> !llvm.ptr, i64"]
        lines += [f"  %{what} = llvm.load %p{what} : !llvm.ptr -> !llvm.ptr"]
    lines += ["  %base = llvm.load %map : !llvm.ptr -> !llvm.ptr", "  %first = llvm.ptrtoint %to : !llvm.ptr to i64"]
    for d in range(rank):
        lines += [f"  %pat{d} = llvm.getelementptr %words[{3 + d}] : (!llvm.ptr) -> !llvm.ptr, i64"]
        lines += [f"  %wide{d} = llvm.load %pat{d} : !llvm.ptr -> i64", f"  %low{d} = arith.trunci %wide{d} : i64 to i32"]
        lines += [f"  %at{d} = arith.extsi %low{d} : i32 to i64"]
        for what in ("size", "stride", "box"):
            lines += [f"  %p{what}{d} = llvm.getelementptr %map[{map_word(rank, what, d)}] : (!llvm.ptr) -> !llvm.ptr, i64"]
            lines += [f"  %{what}{d} = llvm.load %p{what}{d} : !llvm.ptr -> i64"]
    # Of the innermost dimension, bytes.
    lines += [f"  %{what}_bytes = arith.muli %{what}0, %stride0 : i64" for what in ("at", "size", "box")]
    for d in reversed(range(1, rank)):
        lines += [f"  scf.for %i{d} = %c0 to %box{d} step %c1 : i64 {{"]
    inside, offset, place = "%true", "%c0", "%c0"
    lines += ["  %true = arith.constant true"]
    for d in reversed(range(1, rank)):
        lines += [
            f"  %g{d} = arith.addi %at{d}, %i{d} : i64",
            f"  %in{d} = arith.cmpi ult, %g{d}, %size{d} : i64",
            f"  %all{d} = arith.andi {inside}, %in{d} : i1",
            f"  %o{d} = arith.muli %g{d}, %stride{d} : i64",
            f"  %offset{d} = arith.addi {offset}, %o{d} : i64",
            f"  %q{d} = arith.muli {place}, %box{d} : i64",
            f"  %r{d} = arith.addi %q{d}, %i{d} : i64",
        ]
        inside, offset, place = f"%all{d}", f"%offset{d}", f"%r{d}"
    lines += [
        f"  %line = arith.muli {place}, %box_bytes : i64",
        "  scf.for %chunk = %c0 to %box_bytes step %c16 : i64 {",
        "    %from = arith.addi %at_bytes, %chunk : i64",
        "    %end = arith.addi %from, %c16 : i64",
        "    %begins = arith.cmpi sge, %from, %c0 : i64",
        "    %ends = arith.cmpi sle, %end, %size_bytes : i64",
        "    %both = arith.andi %begins, %ends : i1",
        f"    %whole = arith.andi %both, {inside} : i1",
        f"    %source = arith.addi {offset}, %from : i64",
        "    %value = scf.if %whole -> vector<16xi8> {",
        "      %p = llvm.getelementptr %base[%source] : (!llvm.ptr, i64) -> !llvm.ptr, i8",
        "      %v = llvm.load %p {alignment = 1 : i64} : !llvm.ptr -> vector<16xi8>",
        "      scf.yield %v : vector<16xi8>",
        "    } else {",
        "      %some = scf.for %i = %c0 to %c16 step %c1 iter_args(%so_far = %zeros) -> (vector<16xi8>) : i64 {",
        "        %byte = arith.addi %from, %i : i64",
        "        %in = arith.cmpi ult, %byte, %size_bytes : i64",
        f"        %all = arith.andi %in, {inside} : i1",
        "        %one = scf.if %all -> i8 {",
        "          %there = arith.addi %source, %i : i64",
        "          %p = llvm.getelementptr %base[%there] : (!llvm.ptr, i64) -> !llvm.ptr, i8",
        "          %v = llvm.load %p : !llvm.ptr -> i8",
        "          scf.yield %v : i8",
        "        } else {",
        "          scf.yield %zero : i8",
        "        }",
        "        %index = arith.index_cast %i : i64 to index",
        "        %more = vector.insert %one, %so_far [%index] : i8 into vector<16xi8>",
        "        scf.yield %more : vector<16xi8>",
        "      }",
        "      scf.yield %some : vector<16xi8>",
        "    }",
        "    %in_box = arith.addi %line, %chunk : i64",
        "    %plain = arith.addi %first, %in_box : i64",
        f"    %permuted = func.call @{_SWIZZLE}(%plain) : (i64) -> i64",
        "    %target = llvm.inttoptr %permuted : i64 to !llvm.ptr",
        "    llvm.store %value, %target {alignment = 16 : i64} : vector<16xi8>, !llvm.ptr",
        "  }",
        *["  }"] * (rank - 1),
    ]
    total = "%box_bytes"
    for d in range(1, rank):
        lines += [f"  %total{d} = arith.muli {total}, %box{d} : i64"]
        total = f"%total{d}"
    lines += [f"  %come = arith.subi %c0, {total} : i64"]
    lines += [f"  func.call @{_UPDATE}(%barrier, %c0, %come) : (!llvm.ptr, i64, i64) -> ()", "  return", "}"]
    return "\n".join(lines)
