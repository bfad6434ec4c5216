"""What the lanes of a warp do together: shuffles, votes, matches, reductions (PTX ISA, "shfl.sync", "vote.sync", "match.sync",
"redux.sync", "elect.sync")."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.operations import keyword_of
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.targets.gpu.emulate.pointers import i64, to_word, word
from relayc.pipelines.targets.gpu.emulate.registry import instruction
from relayc.pipelines.targets.gpu.emulate.thread import WaitingThread, WarpExchange
from relayc.pipelines.targets.gpu.positions import WARP


@instruction("nvvm.shfl.sync", waits=True)
def shuffle(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """Follows the pseudocode of shfl.sync; a lane that reads from a lane outside the mask gets its own value."""
    mask, value, offset, clamps = op.operands
    lanes = thread.exchange(op, [value], mask)
    lane, by = thread.lane, emit.arith("andi", to_word(offset), word(WARP - 1))
    clamp = emit.arith("andi", to_word(clamps), word(WARP - 1))
    segments = emit.arith("andi", emit.arith("shrui", to_word(clamps), word(8)), word(WARP - 1))
    free = emit.arith("xori", segments, word(WARP - 1))
    lowest = emit.arith("andi", lane, segments)
    highest = emit.arith("ori", lowest, emit.arith("andi", clamp, free))
    source = {
        "up": lambda: emit.arith("subi", lane, by),
        "down": lambda: emit.arith("addi", lane, by),
        "bfly": lambda: emit.arith("xori", lane, by),
        "idx": lambda: emit.arith("ori", lowest, emit.arith("andi", by, free)),
    }[keyword_of(op, "kind")]()
    valid = emit.compare("sge" if keyword_of(op, "kind") == "up" else "sle", source, highest)
    source = emit.select(valid, source, lane)
    given = lanes.read(0, emit.select(takes_part(lanes, source), source, lane))
    if "return_value_and_is_valid" not in op.attributes:
        return [given]
    return [emit.struct(op.results[0].type, (given, valid))]


def takes_part(lanes: WarpExchange, lane: ir.Value) -> ir.Value:
    """Whether a lane, an i64 below WARP, has left a value."""
    bit = emit.arith("andi", emit.arith("shrui", lanes.participants, lane), word(1))
    return emit.compare("ne", bit, word(0))


def over_lanes(lanes: WarpExchange, initial: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Combines the participating lanes, first to last: `combine` gets the result so far, and the number of a lane (an i64)."""
    lane = Var.below(WARP)
    with emit.for_loop(0, WARP, 1, lane, [initial]) as loop:
        number, so_far = to_word(lane.value), loop.inner_iter_args[0]
        taken = emit.select(takes_part(lanes, number), combine(so_far, number), so_far)
        emit.yield_values([taken])
    return loop.results[0]


def _bit(lane: ir.Value, holds: ir.Value) -> ir.Value:
    """The bit of a lane where something holds."""
    return emit.arith("shli", to_word(holds), lane)


def _result(op: ir.Operation, bits: ir.Value, mask: ir.Value, kind: str) -> ir.Value:
    """What a vote gives: bits, or whether all or some of the bits of a mask are set."""
    if kind == "ballot":
        return emit.create("arith.trunci", [op.results[0].type], [bits])
    if kind == "uni":
        return emit.create("arith.ori", [op.results[0].type], [emit.compare("eq", bits, word(0)), emit.compare("eq", bits, mask)])
    return emit.compare("ne", bits, word(0)) if kind == "any" else emit.compare("eq", bits, mask)


@instruction("nvvm.vote.sync", waits=True)
def vote(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    mask, holds = op.operands
    lanes = thread.exchange(op, [to_word(holds)], mask)
    bits = over_lanes(lanes, word(0), lambda found, lane: emit.arith("ori", found, emit.arith("shli", lanes.read(0, lane), lane)))
    return [_result(op, bits, lanes.participants, keyword_of(op, "kind"))]


@instruction("nvvm.match.sync", waits=True)
def match(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """The lanes with the value of this lane; with `all`, the lanes of the mask if all have this value, and whether all have."""
    mask, value = op.operands
    lanes = thread.exchange(op, [value], mask)
    same = over_lanes(
        lanes, word(0), lambda found, lane: emit.arith("ori", found, _bit(lane, emit.compare("eq", lanes.read(0, lane), value)))
    )
    i32 = ir.IntegerType.get_signless(32)
    if keyword_of(op, "kind") == "any":
        return [emit.create("arith.trunci", [i32], [same])]
    every = emit.compare("eq", same, lanes.participants)
    bits = emit.create("arith.trunci", [i32], [emit.select(every, same, word(0))])
    return [emit.struct(op.results[0].type, (bits, every))]


_INTEGER_REDUCTIONS = {
    "add": "addi",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "min": "minsi",
    "max": "maxsi",
    "umin": "minui",
    "umax": "maxui",
}


@instruction("nvvm.redux.sync", waits=True)
def reduce(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """Integers of 32 bits of all lanes, combined."""
    value, mask = op.operands
    kind = keyword_of(op, "kind")
    if kind not in _INTEGER_REDUCTIONS:
        raise ValueError(f"kernel {thread.kernel} at {op.location}: expected a reduction of integers, found {kind}")
    lanes = thread.exchange(op, [value], mask)
    first = lanes.read(0, emit.create("math.cttz", [i64()], [lanes.participants]))
    neutral = first if kind not in ("add", "xor") else emit.number(0, value.type)
    return [over_lanes(lanes, neutral, lambda found, lane: emit.arith(_INTEGER_REDUCTIONS[kind], found, lanes.read(0, lane)))]


@instruction("nvvm.elect.sync", waits=True)
def elect(op: ir.Operation, thread: WaitingThread) -> Sequence[ir.Value]:
    """One of the lanes: the first."""
    lanes = thread.exchange(op, [], op.operands[0] if len(op.operands) else None)
    return [emit.compare("eq", emit.create("math.cttz", [i64()], [lanes.participants]), thread.lane)]
