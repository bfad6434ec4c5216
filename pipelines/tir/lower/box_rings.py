"""Rings of shared buffers to which copies of boxes run ahead: barriers of shared memory say which of them are there.

Each place of a ring has a barrier, whose phase ends when the boxes that were announced for it have come. One thread begins the copies.
That all threads have read a place is for the loop to say, by a barrier of the block of threads.
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
"""Of a ring: the place of what an iteration reads, the one that was read before, and the parity of the phase of the former."""


def following(place: ir.Value, last: int) -> ir.Value:
    """The place of a ring behind another one, by their numbers."""
    is_last = emit.compare("eq", place, emit.number(last, place.type))
    return emit.select(is_last, emit.number(0, place.type), emit.arith("addi", place, emit.number(1, place.type)))


@dataclass(frozen=True)
class BoxRing:
    """The ring of a loop.

    Attributes:
      boxes: what is copied, by the loops that say so.
      maps: of their tensors, made by the host.
      barriers: a flat buffer of shared memory with an element for each place.
      leads: whether the thread is in the warp of which one thread begins copies (i1).
      places: see TURN, FREE and PHASE. The ring goes on where the loop is run again.
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
        """The ring, whose barriers the first thread of the block begins; others may use them behind a barrier of the block.

        Args:
          thread: the number of the thread in its block.
        """
        # Numbers of 32 bits, which ptxas keeps in registers of a warp.
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
        """What a ring has there (i32)."""
        return self.places.registers.values[slot]

    def place(self, number: ir.Value) -> Index:
        """A place by its number (i32)."""
        return Index.of(Var(0, self.node.ahead, emit.create("arith.index_castui", [ir.IndexType.get()], [number]), name="turn"))

    def wait(self) -> None:
        """Until the boxes of this turn are there."""
        bulk.wait(self._barrier(self.place(self.now(TURN))), self.now(PHASE))

    def copy(self, state: State, place: Index, at: Callable[[BoxCopy], State]) -> None:
        """Begins the copies to a place, to which the buffers are set.

        Args:
          at: where the loops of a copy have their first values.
        """

        def by_one() -> None:
            full = self._barrier(place)
            bulk.arrive_expecting(full, sum(box.num_bytes for box in self.boxes.values()))
            for node, box in self.boxes.items():
                box.emit(bulk.address_of(self.maps[node]), full, self.bodies, at(node))

        nest.when(self.leads, self.bodies.evaluator, lambda: nest.when(bulk.elected(), self.bodies.evaluator, by_one))
        warp_barrier()  # else ptxas takes what follows as run by parts of warps, and products there wait for each other

    def advance(self) -> None:
        """To the next turn."""
        turn, phase = self.now(TURN), self.now(PHASE)
        next_turn = following(turn, self.node.ahead)
        begins = emit.create("arith.extui", [phase.type], [emit.compare("eq", next_turn, bulk.i32(0))])
        self.places.registers.values.update({FREE: turn, TURN: next_turn, PHASE: emit.arith("xori", phase, begins)})

    def _barrier(self, place: Index) -> ir.Value:
        return pointer(self.barriers, place, SHARED)
