"""Rings of shared buffers that are filled ahead by copies of boxes; barriers in shared memory (mbarriers) signal their arrival.

Each place of a ring has a barrier whose phase ends when the announced boxes have arrived. One thread starts the copies. A barrier of the
thread block, which the loop emits, ensures that all threads have read a place before it is overwritten.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.gpu import bulk_copies as bulk
from relayc.pipelines.tir.gpu.copies import SHARED, pointer
from relayc.pipelines.tir.gpu.launch import WARP, barrier, warp_barrier
from relayc.pipelines.tir.lower.bodies import Bodies, File, State
from relayc.pipelines.tir.lower.boxes import Box, BoxCopy
from relayc.pipelines.tir.lower.pipelines import Pipelined
from relayc.pipelines.tir.lower.registers import Registers
from relayc.pipelines.tir.values import nest

TURN, FREE, PHASE = (0, 1), (1, 1), (2, 1)
"""State of a ring: the place that an iteration reads, the place read before it, and the parity of the phase of the former."""


def following(place: ir.Value, last: int) -> ir.Value:
    """The next place of a ring."""
    is_last = emit.compare("eq", place, emit.number(last, place.type))
    return emit.select(is_last, emit.number(0, place.type), emit.arith("addi", place, emit.number(1, place.type)))


@dataclass(frozen=True)
class BoxRing:
    """The ring of a loop.

    Attributes:
      boxes: the copies, by their loops.
      maps: the tensor maps, created by the host.
      barriers: a flat buffer of shared memory with one element per place.
      leads: whether the thread is in the warp that starts copies (i1).
      places: see TURN, FREE and PHASE. The ring continues when the loop is run again.
    """

    node: Pipelined
    boxes: Mapping[BoxCopy, Box]
    maps: Mapping[BoxCopy, ir.Value]
    barriers: ir.Value
    leads: ir.Value
    bodies: Bodies
    places: File

    @staticmethod
    def begin(
        node: Pipelined,
        boxes: Mapping[BoxCopy, Box],
        maps: Mapping[BoxCopy, ir.Value],
        barriers: ir.Value,
        thread: ir.Value,
        bodies: Bodies,
    ) -> "BoxRing":
        """Creates the ring. The first thread of the block initializes its barriers; other threads may use them after a barrier of the
        block.

        Args:
          thread: the linear number of the thread in its block.
        """
        # 32-bit numbers, which ptxas keeps in uniform registers.
        places = File(Registers(ir.IntegerType.get_signless(32)), [3], [Index()], ())
        places.registers.values = dict(zip((TURN, FREE, PHASE), map(bulk.i32, (0, node.ahead, 0)), strict=True))
        leads = emit.compare("ult", thread, emit.index_constant(WARP))
        ring = BoxRing(node, {n: boxes[n] for n in node.boxes}, maps, barriers, leads, bodies, places)

        def init() -> None:
            for place in range(node.ahead + 1):
                bulk.init_barrier(ring._barrier(Index(place)), 1)
            bulk.fence_barriers()

        nest.when(emit.compare("eq", thread, emit.index_constant(0)), bodies.evaluator, init)
        barrier()
        return ring

    def now(self, slot: tuple[int, int]) -> ir.Value:
        """The value of a state of the ring (i32)."""
        return self.places.registers.values[slot]

    def place(self, number: ir.Value) -> Index:
        """A place as an index, from its number (i32)."""
        return Index.of(Var(0, self.node.ahead, emit.create("arith.index_castui", [ir.IndexType.get()], [number]), name="turn"))

    def wait(self) -> None:
        """Waits for the boxes of this turn."""
        bulk.wait(self._barrier(self.place(self.now(TURN))), self.now(PHASE))

    def copy(self, state: State, place: Index, at: Callable[[BoxCopy], State]) -> None:
        """Starts the copies to a place, to which the buffers are set.

        Args:
          at: returns the state in which the loops of a copy have their first values.
        """

        def by_one() -> None:
            full = self._barrier(place)
            bulk.arrive_expecting(full, sum(box.num_bytes for box in self.boxes.values()))
            for node, box in self.boxes.items():
                box.emit(bulk.address_of(self.maps[node]), full, self.bodies, at(node))

        nest.when(self.leads, self.bodies.evaluator, lambda: nest.when(bulk.elected(), self.bodies.evaluator, by_one))
        warp_barrier()  # otherwise ptxas assumes that the following code is run by a part of the warp, and serializes wgmma there

    def advance(self) -> None:
        """Advances to the next turn."""
        turn, phase = self.now(TURN), self.now(PHASE)
        next_turn = following(turn, self.node.ahead)
        begins = emit.create("arith.extui", [phase.type], [emit.compare("eq", next_turn, bulk.i32(0))])
        self.places.registers.values.update({FREE: turn, TURN: next_turn, PHASE: emit.arith("xori", phase, begins)})

    def _barrier(self, place: Index) -> ir.Value:
        return pointer(self.barriers, place, SHARED)
