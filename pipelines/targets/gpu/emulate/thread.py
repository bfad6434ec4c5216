"""A thread of a kernel while the emulation of its instructions is emitted.

A kernel whose threads wait runs one coroutine for each thread of a block, one after the other on one thread of the CPU. A thread runs until
it waits; it leaves word of what it waits for in its record, and the scheduler goes on with the next thread (see scheduler).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.discardable import SITE
from relayc.dialects.mlir import ir, scf
from relayc.dialects.operations import element_bytes
from relayc.pipelines.emission import emit
from relayc.pipelines.targets.gpu.emulate import memory
from relayc.pipelines.targets.gpu.emulate.memory import BlockMemory
from relayc.pipelines.targets.gpu.emulate.pointers import at, call, i64, load, load_word, pointer_type, store, store_word, to_word, word
from relayc.pipelines.targets.gpu.emulate.scheduler import DEFER, DELIVER, DELIVER_ALL, QUEUE_BYTES, QUEUE_HEADER_BYTES, USE
from relayc.pipelines.targets.gpu.positions import WARP, Position, product

SUSPEND = "__relayc_gpu.suspend"
"""Function whose calls mark the points where a coroutine suspends and resumes."""
READS, WRITES, ATOMIC = range(3)
"""How memory is used."""


class Thread:
    """A thread of any kernel.

    Attributes:
      kernel: the name of the kernel.
      position: where the thread is.
    """

    def __init__(self, kernel: str, position: Position) -> None:
        self.kernel, self.position = kernel, position


@dataclass(frozen=True)
class WarpExchange:
    """What the lanes of a warp left for each other.

    Attributes:
      types: of the values that each left.
      participants: the lanes that take part, as bits of an i64.
    """

    types: Sequence[ir.Type]
    participants: ir.Value
    _memory: ir.Value
    _stride: ir.Value
    _halves: ir.Value

    def pointer(self, lane: ir.Value) -> ir.Value:
        """Where a lane (an integer) left its values, one after the other, each at a multiple of 8 bytes. It is that lane's memory, to write
        to as well, until the lane exchanges values once more after the next time."""
        lane = to_word(lane)
        half = emit.arith("andi", emit.arith("shrui", self._halves, lane), word(1))
        slot = emit.arith("addi", emit.arith("muli", half, word(WARP)), lane)
        return at(self._memory, emit.arith("muli", slot, self._stride))

    def read(self, which: int, lane: ir.Value) -> ir.Value:
        """A value of an active lane; undefined for inactive lanes."""
        offset = sum(_slot_bytes(t) for t in self.types[:which])
        return load(at(self.pointer(lane), offset), self.types[which])


class WaitingThread(Thread):
    """A thread of a kernel that runs as coroutines.

    Attributes:
      block: the address of the memory of its block, which begins with shared memory (see memory).
      record: its own record: the field WAIT is at `at(record, WAIT)`.
      linear: its number in its block, an i64.
      lane: its number in its warp, an i64.
      dynamic_memory: the block's dynamic shared memory, bytes.
      checks_races: whether uses of shared memory are noted.
      functions: texts of the functions that instructions call, by name.
    """

    dynamic_memory: ir.Value

    def __init__(self, kernel: str, position: Position, block: ir.Value, layout: BlockMemory, checks_races: bool) -> None:
        super().__init__(kernel, position)
        self.checks_races = checks_races
        self.block, self.layout = block, layout
        self.functions: dict[str, str] = {}
        self.linear = to_word(position.linear)
        self.lane = emit.arith("andi", self.linear, word(WARP - 1))
        self._warp = emit.arith("shrui", self.linear, word(WARP.bit_length() - 1))
        self.record = at(block, emit.arith("muli", self.linear, word(8)))
        # Unknown before the last exchange: the maximum bytes per lane, and their address.
        self._exchange_bytes = 8
        self._stride, self._exchange_offset = (_constant(0) for _ in range(2))
        warps = emit.arith("muli", emit.arith("muli", self._warp, word(2 * WARP)), self._stride)
        self._exchange = at(block, emit.arith("addi", self._exchange_offset, warps))

    # ---- waiting

    def wait(self, op: ir.Operation, state: int, group: ir.Value | None = None) -> None:
        """Goes on when the scheduler says so.

        Args:
          op: the operation that waits, which errors name.
          state: what for: a state of `memory`, with UNIFORM or without.
          group: with whom: see memory.GROUP.
        """
        if group is not None:
            store_word(group, at(self.record, memory.GROUP))
        store_word(word(SITE.of(op) << memory.SITE_SHIFT | state), at(self.record, memory.WAIT))
        call(SUSPEND, [])

    def wait_for_block(self, op: ir.Operation, barrier: int | ir.Value = 0, threads: ir.Value | None = None, uniform: bool = False) -> None:
        """Waits at a barrier of the block.

        Args:
          barrier: its number, below memory.BARRIER_COUNT.
          threads: number of threads that arrive (an i64); None for all threads of the block.
          uniform: whether all threads must arrive at the same operation.
        """
        self.arrive(barrier, threads)
        self.wait(op, memory.BARRIER | (memory.UNIFORM if uniform else 0), to_word(barrier))

    def arrive(self, barrier: int | ir.Value, threads: ir.Value | None = None) -> None:
        """Arrives at a barrier of the block without waiting."""
        place = at(self.block, emit.arith("addi", emit.arith("muli", to_word(barrier), word(16)), word(memory.BARRIERS)))
        store_word(emit.arith("addi", load_word(place), word(1)), place)
        store_word(self.threads if threads is None else threads, at(place, 8))

    def wait_for_lanes(self, op: ir.Operation, mask: ir.Value | None) -> None:
        """Waits for the lanes of its warp that a mask names (an integer), which must name itself; for all lanes where it is None."""
        self.wait(op, memory.WARP | memory.ORDERS, self._participants(mask))

    def poll(self, op: ir.Operation, holds: ir.Value) -> None:
        """Lets other threads run if a condition (an i1) does not hold yet; the caller tests it again afterwards.

        The scheduler must know the polling threads: if all threads poll and no copy is in progress, the kernel is deadlocked.
        """
        branch = scf.IfOp(holds, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            store_word(word(1), at(self.block, memory.PROGRESS))
            self.order()
            emit.yield_values([])
        with ir.InsertionPoint(branch.else_block):
            self.wait(op, memory.POLL)
            emit.yield_values([])

    # ---- races

    def use_shared(self, op: ir.Operation, address: ir.Value, bytes_: int | ir.Value, kind: int) -> None:
        """Reports a memory use to the race detector, if enabled: for accesses of shared memory inside instructions, which the detector does
        not see. Other memory is ignored.

        Args:
          bytes_: their number (an i64, if a value).
          kind: READS, WRITES, or ATOMIC for both.
        """
        if self.checks_races:
            call(USE, [self.block, self.linear, address, to_word(bytes_), self.site(op), word(kind)])

    def site(self, op: ir.Operation) -> ir.Value:
        """The number under which errors name an operation that is being emulated, an i64."""
        return word(SITE.of(op))

    def order(self) -> None:
        """Says that uses of shared memory before are in order with those that follow, of all threads: after a wait that is no barrier."""
        if self.checks_races:
            place = at(self.block, memory.EPOCH)
            store_word(emit.arith("addi", load_word(place), word(1)), place)

    # ---- lanes

    def exchange(self, op: ir.Operation, values: Sequence[ir.Value], mask: ir.Value | None = None) -> WarpExchange:
        """Leaves values for the other lanes, and waits until all lanes of a mask (see wait_for_lanes) have.

        The values are of types that LLVM has. The lanes then go on in their order.
        """
        types = [value.type for value in values]
        self._exchange_bytes = max(self._exchange_bytes, sum(map(_slot_bytes, types)))
        half = load_word(at(self.record, memory.HALF))
        slot = emit.arith("addi", emit.arith("muli", half, word(WARP)), self.lane)
        place, offset = at(self._exchange, emit.arith("muli", slot, self._stride)), 0
        for value in values:
            store(value, at(place, offset))
            offset += _slot_bytes(value.type)
        store_word(emit.arith("xori", half, word(1)), at(self.record, memory.HALF))
        participants = self._participants(mask)
        self.wait(op, memory.WARP, participants)
        return WarpExchange(types, participants, self._exchange, self._stride, load_word(at(self.record, memory.GROUP)))

    def _participants(self, mask: ir.Value | None) -> ir.Value:
        """Those of a mask that there are: the last warp of a block may have fewer lanes."""
        first = emit.arith("muli", self._warp, word(WARP))
        lanes = emit.arith("minui", emit.arith("subi", self.threads, first), word(WARP))
        there = emit.arith("subi", emit.arith("shli", word(1), lanes), word(1))
        return there if mask is None else emit.arith("andi", there, to_word(mask))

    @property
    def threads(self) -> ir.Value:
        """How many threads its block has, an i64."""
        return to_word(product(self.position.block))

    # ---- memory, functions, and what comes later

    def reserve(self, name: str, bytes_: int, per: str, zero: int | None = None) -> ir.Value:
        """The address of named memory per "thread", "warp" or "block": the same for equal names.

        Args:
          zero: number of its bytes that are zeroed at the start of the block; None for all.
        """
        offset, each = self.layout.reserve(name, bytes_, per, bytes_ if zero is None else zero)
        if per == "block":
            return at(self.block, offset)
        number = self.linear if per == "thread" else self._warp
        return at(self.block, emit.arith("addi", emit.arith("muli", number, word(each)), word(offset)))

    def function(self, name: str, text: str) -> str:
        """The name of a function of the module. `text` is MLIR text of private functions, the first of which has this name, in the dialects
        arith, cf, func, llvm, math, memref, scf and vector; they come into the module once."""
        self.functions[name] = text
        return name

    def queue(self, name: str, per: str = "thread") -> ir.Value:
        """The address of a queue of calls that are put off: its own ("thread"), or the one of its "block", which has one only."""
        place = self.reserve(f"queue {name}", QUEUE_BYTES, per, QUEUE_HEADER_BYTES)
        if per == "block":
            store_word(to_word(place), at(self.block, memory.QUEUE))
        return place

    def defer(self, queue: ir.Value, function: str, words: Sequence[ir.Value]) -> None:
        """Puts a call off: of a function `(!llvm.ptr) -> ()` that gets the address of up to six words (integers, indices, addresses).

        A queue of a thread holds QUEUE_ENTRIES calls: what is more makes the oldest of them be made.
        """
        pointer = pointer_type()
        code = emit.create("func.constant", [ir.FunctionType.get([pointer], [])], [], {"value": ir.FlatSymbolRefAttr.get(function)})
        address = emit.create("builtin.unrealized_conversion_cast", [pointer], [code])
        call(DEFER, [queue, address, *[to_word(v) for v in words], *[word(0)] * (6 - len(words))])

    def commit(self, queue: ir.Value) -> None:
        """Makes a group of the calls that were put off since the last one."""
        place = at(queue, 16)
        store_word(emit.arith("addi", load_word(place), word(1)), place)

    def deliver(self, queue: ir.Value, keep: int | ir.Value | None = None) -> None:
        """Runs the calls of all groups except the last `keep` ones (an i64); all calls, if it is None."""
        if keep is None:
            call(DELIVER_ALL, [queue])
        else:
            call(DELIVER, [queue, to_word(keep)])

    # ---- the end

    def finish(self) -> None:
        """Fixes the address of exchange memory, after the last instruction."""
        offset, _ = self.layout.reserve("exchange", 2 * WARP * self._exchange_bytes, "warp")
        for constant, value in ((self._stride, self._exchange_bytes), (self._exchange_offset, offset)):
            constant.owner.attributes["value"] = ir.IntegerAttr.get(i64(), value)


def _constant(value: int) -> ir.Value:
    """A separate constant, which may be changed."""
    return emit.create("arith.constant", [i64()], [], {"value": ir.IntegerAttr.get(i64(), value)})


def _slot_bytes(type_: ir.Type) -> int:
    """Bytes of a value in exchange memory: a multiple of 8."""
    if isinstance(type_, ir.VectorType):
        (lanes,) = type_.shape
        return -(-lanes * element_bytes(type_.element_type) // 8) * 8
    return 8
