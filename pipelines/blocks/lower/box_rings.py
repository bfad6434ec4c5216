"""Rings of shared buffers to which copies of boxes run ahead: barriers of shared memory say which of them are there.

Each place of a ring has a barrier, whose phase ends when the boxes that were announced for it have come. One thread begins the copies.
That all threads have read a place is for the loop to say, by a barrier of the block of threads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.blocks.lower.bodies import Bodies, File, State
from relayc.pipelines.blocks.lower.boxes import Box, BoxCopy
from relayc.pipelines.blocks.lower.pipelines import Pipelined
from relayc.pipelines.blocks.lower.registers import Registers
from relayc.pipelines.gpu import bulk_copies as bulk
from relayc.pipelines.gpu.copies import SHARED, pointer
from relayc.pipelines.gpu.launch import WARP, barrier
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.tir import emit, nest

TURN, FREE, PHASE = (0, 1), (1, 1), (2, 1)
"""Of a ring: the place of what an iteration reads, the one that was read before, and the parity of the phase of the former."""


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
        places = File(Registers(ir.IndexType.get()), [3], [Index()], ())
        places.registers.values = dict(zip((TURN, FREE, PHASE), map(emit.index_constant, (0, node.ahead, 0)), strict=True))
        leads = emit.compare("ult", thread, emit.index_constant(WARP))
        ring = BoxRing(node, {n: boxes[n] for n in node.boxes}, maps, barriers, leads, bodies, places)

        def init() -> None:
            for place in range(node.ahead + 1):
                bulk.init_barrier(ring._barrier(Index(place)), 1)
            bulk.fence_barriers()

        nest.when(emit.compare("eq", thread, emit.index_constant(0)), bodies.evaluator, init)
        barrier()
        return ring

    def place(self, slot: tuple[int, int]) -> Index:
        """One of the places."""
        return Index.of(Var(0, self.node.ahead, self.places.registers.values[slot], name="turn"))

    def wait(self) -> None:
        """Until the boxes of this turn are there."""
        phase = emit.create("arith.index_cast", [ir.IntegerType.get_signless(32)], [self.places.registers.values[PHASE]])
        bulk.wait(self._barrier(self.place(TURN)), phase)

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

    def following(self, place: Index) -> Index:
        """The place behind another one."""
        if place.is_constant:
            return Index((place.const + 1) % (self.node.ahead + 1))
        return Index.of(Var(0, self.node.ahead, self._following(emit.materialize(place)), name="turn"))

    def advance(self) -> None:
        """To the next turn."""
        values = self.places.registers.values
        turn, phase = values[TURN], values[PHASE]
        following = self._following(turn)
        begins = emit.compare("eq", following, emit.index_constant(0))
        other = emit.arith("xori", phase, emit.index_constant(1))
        values.update({FREE: turn, TURN: following, PHASE: emit.select(begins, other, phase)})

    def _following(self, place: ir.Value) -> ir.Value:
        is_last = emit.compare("eq", place, emit.index_constant(self.node.ahead))
        return emit.select(is_last, emit.index_constant(0), emit.arith("addi", place, emit.index_constant(1)))

    def _barrier(self, place: Index) -> ir.Value:
        return pointer(self.barriers, place, SHARED)
