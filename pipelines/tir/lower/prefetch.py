"""Software prefetches of a loop: its annotation "prefetch"."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.tir.lower.bodies import Bodies, Memory, State
from relayc.pipelines.tir.lower.steps import AccessOffset
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.tree.arguments import decode
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.values.buffers import LINE, prefetch
from relayc.symbolic import Size, ceil_div

ANNOTATION = "prefetch"


@dataclass(frozen=True)
class Prefetch:
    """Each iteration of a loop prefetches a share of the elements of a buffer that a later iteration of the loop `ahead`, itself or an
    enclosing one, reads: the iteration `distance` further on. `level` is the cache level."""

    buffer: ir.Value
    ahead: str
    distance: int
    level: int

    def emit(self, loop: Loop, uses: Sequence[Use], bodies: Bodies, state: State) -> None:
        """Emits the prefetches of one iteration, if the buffer is read contiguously."""
        for use in uses:
            for step in bodies.steps(use, False):
                place, memory = step.access, bodies.storage.get(self.buffer)
                if place is not None and place.access.buffer == self.buffer and place.moving is not None and isinstance(memory, Memory):
                    self._emit(loop, use, place, memory, bodies, state)
                    return

    def _emit(self, loop: Loop, use: Use, place: AccessOffset, memory: Memory, bodies: Bodies, state: State) -> None:
        assert place.moving is not None
        loops = list(use.loops)
        names = [around.name for around in loops]
        first, last = names.index(self.ahead), names.index(loop.name)
        extents: dict[Var, Size] = {around.var: around.extent for around in loops}
        inner = {around.var for around in loops[first + 1 :]}
        size: Size = 1
        for v, c in (*place.fixed, *((v, c) for v, c in place.moving.terms.items() if v in inner)):
            size += (extents[v] - 1) * c
        between = loops[first + 1 : last + 1]
        share = ceil_div(size, prod(around.extent for around in between))
        if not isinstance(share, int):
            return
        total = place.moving.const + place.moving.coefficient(loops[first].var) * self.distance
        number = Index(total, {v: c for v, c in place.moving.terms.items() if v not in inner})
        number += linearize([Index.of(around.var) for around in between], [around.extent for around in between]) * share
        own = Index(0, {loop.var: number.coefficient(loop.var)})
        # The address is clamped to the end of the buffer; the limit is loop-invariant.
        most = prod(memory.shape) - (loop.extent - 1) * own.coefficient(loop.var) - share
        if not isinstance(most, int) or most < 0:
            return
        start = emit.at_most(bodies.at(number - own, state.point), most) + bodies.at(own, state.point) + memory.offset
        for line in range(0, share, LINE * 8 // self.buffer.type.element_type.width):
            prefetch(memory.buffer, start + line, self.level)


def prefetch_of(nest: Nest, loop: Loop) -> Prefetch | None:
    """The prefetch that the annotation of a loop requests, if any. Raises ScheduleError."""
    given = loop.annotations.get(ANNOTATION)
    if given is None:
        return None
    found = decode(given, lambda name: name)
    where = f"loop {loop.name}: annotation {ANNOTATION}"
    if not isinstance(found, list) or [type(v) for v in found] != [str, str, int, int] or not 1 <= found[3] <= 3:
        raise ScheduleError(f"{where}: expected a buffer, a loop, a number of its iterations and a cache level of 1 to 3, found {found}")
    buffer, ahead, distance, level = found
    around = [*(outer.name for outer in loop.around), loop.name]
    if buffer not in nest.buffers() or ahead not in around:
        raise ScheduleError(f"{where}: expected a buffer and a loop out of {', '.join(around)}, found {buffer!r} and {ahead!r}")
    return Prefetch(nest.buffers()[buffer], ahead, distance, level)
