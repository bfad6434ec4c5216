"""Instructions of the gpu dialect, which all GPUs have."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.operations import keyword_of
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate.pointers import to_word, word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import Thread, WaitingThread
from relayc.pipelines.targets.gpu.positions import AXES, NUMBERS, number_of

# ---- where a thread is


@instruction(*[f"gpu.{name}" for name in [*AXES, *NUMBERS]])
def number(op: ir.Operation, thread: Thread) -> Sequence[ir.Value]:
    return [number_of(op, thread.position)]


# ---- memory


@instruction("gpu.dynamic_shared_memory", waits=True)
def dynamic_shared_memory(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """The bytes after the attributions, at a multiple of memory.BASE_ALIGNMENT."""
    return [thread.dynamic_memory]


@instruction("memref.memory_space_cast", "llvm.addrspacecast")
def cast_memory_space(op: ir.Operation, thread: Thread) -> Sequence[ir.Value]:
    """All memory is of one kind."""
    return [op.operands[0]]


# ---- synchronisation


@instruction("gpu.barrier", waits=True)
def barrier(op: ir.Operation, thread: WaitingThread) -> None:
    thread.wait_for_block(op, uniform=True)


@instruction("gpu.shuffle", waits=True)
def shuffle(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """A shuffle in the first `width` lanes of the warp. A source lane outside yields the lane's own value; the second result is then
    false."""
    value, offset, width = op.operands
    mode = keyword_of(op, "mode")
    last = to_word(width)
    # All bits for a whole warp, whose number of lanes is that of bits of a mask.
    mask = emit.arith("subi", emit.arith("shli", word(1), last), word(1))
    lanes = thread.exchange(op, [value], mask)
    combine = {"xor": "xori", "down": "addi", "up": "subi"}
    by = emit.create("arith.extsi", [last.type], [offset])
    source = emit.arith(combine[mode], thread.lane, by) if mode in combine else by
    inside = emit.compare("ult", source, last)
    return [lanes.read(0, emit.select(inside, source, thread.lane)), inside]
