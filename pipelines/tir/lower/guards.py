"""Guards: loop bounds clipped to guards, iterations without guards, and predicates of blocks."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.lower.bodies import Bodies, Lanes, Shifted, State
from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.lower.tree import Init, LoopNode
from relayc.pipelines.tir.tree.guards import Guard, holds
from relayc.pipelines.tir.tree.indices import Divided, Extremal, variables
from relayc.symbolic import Size, ceil_div, exact, maximum, minimum, proves


@dataclass(frozen=True)
class Strip:
    """Elements of unrolled or vectorized loops, or of a loop over such tiles, of which a prefix satisfies the guard.

    Attributes:
      tile: extent of each of these loops.
      loops: their names; each contains different blocks.
      left: the number of elements that satisfy the guard.
      known: facts that hold for them.
    """

    tile: int
    loops: frozenset[str]
    left: Index
    known: frozenset[tuple[Hashable, Size]]


def holding(guard: Guard) -> tuple[Hashable, Size]:
    """The fact that a guard holds."""
    return ("holds", guard.index.key), guard.limit


def _counts_tiles(index: Index, var: Var, tile: int) -> bool:
    """Whether an index depends on a variable only through multiples of the tile."""
    for v, factor in index.terms.items():
        inside = [v.index] if isinstance(v, Divided) else [v.a, v.b] if isinstance(v, Extremal) else []
        if (v == var and exact(factor, tile) is None) or not all(_counts_tiles(i, var, tile) for i in inside):
            return False
    return True


class Guards:
    """The guards of the blocks of a function.

    Args:
      guards: of each block, by name.
    """

    def __init__(self, bodies: Bodies, guards: Mapping[str, Sequence[Guard]]) -> None:
        self.bodies, self.guards = bodies, guards

    def of(self, use: Use) -> Sequence[Guard]:
        """The guards of a block that are not proved to hold everywhere."""
        return self.guards[use.block.name]

    def at_start(self, use: Use, init: Init | None) -> Sequence[Guard]:
        """The guards of a block, or of its init, which runs even if the reduction has no iterations."""
        if init is None:
            return self.of(use)
        steps = {loop.var for loop in use.loops if loop.name in init.skipped}
        return [g for g in self.of(use) if not variables(g.index) or not variables(g.index) <= steps]

    def _guards_of(self, node: LoopNode, state: State, init: Init | None) -> list[tuple[Use, Index, Size, Var]]:
        """Guards in a loop that depend on its variable: over emitted variables and the variables of inner loops."""
        found: list[tuple[Use, Index, Size, Var]] = []
        for use in node.uses:
            if init is not None and use is not init.use:
                continue
            for guard in (*self.of(use), *(use.tensor.guards if use.tensor is not None else ())):
                if guard.index.coefficient(node.loop.var) != 0 and holding(guard) not in state.facts:
                    point = {v: i for v, i in state.point.items() if v != node.loop.var}
                    if init is not None:
                        point |= {loop.var: Index() for loop in use.loops if loop.name in init.skipped and loop.var != node.loop.var}
                    found.append((use, self.bodies.over(guard.index, point), guard.limit, node.loop.var))
        return found

    def end(self, node: LoopNode, state: State, init: Init | None) -> tuple[Index, tuple[Hashable, Size]] | None:
        """The clipped end of a loop, and the fact that holds inside: all blocks in the loop must have the same guard, independent of inner
        loops."""
        guards = self._guards_of(node, state, init)
        uses = [use for use in node.uses if init is None or use is init.use]
        if not guards or {id(use) for use, *_ in guards} != {id(use) for use in uses}:
            return None
        _, index, limit, var = guards[0]
        outside = set(self._outside(state))
        if index.coefficient(var) != 1 or not (variables(index) - {var}) <= outside:
            return None
        if any(i.key != index.key or n != limit for _, i, n, _ in guards):
            return None
        rest = index - Index(0, {var: 1})
        low, _ = rest.bounds()
        if not proves(lambda: low >= 0) or any(v.value is None for v in rest.terms):  # an inner loop, or a quotient not yet computed
            return None
        end = emit.at_most(Index(limit) - rest, node.loop.extent)
        return end, (index.key, limit)

    def strip(self, node: LoopNode, state: State, kind: str, init: Init | None = None) -> Strip | None:
        """The elements of a loop of a kind, or of a loop over tiles, if one guard with a limit known outside ends all of them and nothing
        else depends on the position within a tile."""
        guards = self._guards_of(node, state, init)
        uses = [use for use in node.uses if init is None or use is init.use]
        if len(guards) != len(uses) or {id(use) for use, *_ in guards} != {id(use) for use in uses}:
            return None
        found: dict[Hashable, Strip] = {}
        names, known = set[str](), set[tuple[Hashable, Size]]()
        for use, index, limit, var in guards:
            inner = [loop for loop in use.loops if loop.kind == kind and loop.extent != 1 and loop.var in index.terms]
            if len(inner) != 1 or use.tensor is not None or not isinstance(inner[0].extent, int):
                return None
            own = {inner[0].var: 1} | ({} if var is inner[0].var else {var: inner[0].extent})
            rest = index - Index(0, own)
            low, high = index.bounds()
            if proves(lambda: high < limit) or proves(lambda: low >= limit):  # noqa: B023
                return None
            if not variables(rest) <= set(self._outside(state)) or any(v.value is None for v in rest.terms):
                return None
            if not self._are_tiles(use, var, own[var]):
                return None
            names.add(inner[0].name)
            known |= {holding(guard) for guard in self.of(use) if guard.index.coefficient(node.loop.var) != 0}
            found[rest.key, limit, inner[0].extent] = Strip(inner[0].extent, frozenset(names), Index(limit) - rest, frozenset(known))
        return list(found.values())[-1] if len(found) == 1 else None

    def _are_tiles(self, use: Use, var: Var, tile: int) -> bool:
        """Whether the accesses and iterators of a block depend on a loop only through the beginning of its tiles."""
        places = [s.access for which in (True, False) for s in self.bodies.steps(use, which) if s.access is not None]
        accessed = [i for p in places for i in (p.indices if p.moving is None else (p.moving,))]
        return all(_counts_tiles(index, var, tile) for index in (*use.points, *accessed))

    @staticmethod
    def _outside(state: State) -> Iterator[Var]:
        for value in state.point.values():
            yield from (value.base if isinstance(value, Shifted) else value).terms

    def full_iterations(self, node: LoopNode, state: State, init: Init | None) -> Size | None:
        """The number of iterations of a loop that need no guard for any values of the inner loops; None if no iteration needs one, or
        unknown."""
        counts: list[Size] = []
        outside = set(self._outside(state))
        for _, index, limit, var in self._guards_of(node, state, init):
            factor = index.coefficient(var)
            rest = index - Index(0, {var: factor})
            _, high = rest.bounds()
            if not proves(lambda: factor >= 1):  # noqa: B023
                continue
            if not variables(rest).isdisjoint(outside):
                continue
            counts.append(maximum(ceil_div(limit - high, factor), 0))
        extent = node.loop.extent
        least = next((c for c in counts if all(proves(lambda: c <= other) for other in counts)), None)  # noqa: B023
        return None if least is None or proves(lambda: least >= extent) else minimum(least, extent)

    def is_fact(self, guard: Guard, state: State) -> bool:
        """Whether an enclosing loop is clipped to the guard."""
        if holding(guard) in state.facts:
            return True
        keys = {key for key, limit in state.facts if limit == guard.limit}
        if not keys:
            return False
        return any(
            self.bodies.over(guard.index, {v: i for v, i in state.point.items() if v != var}).key in keys for var in guard.index.terms
        )

    def mask(self, index: Index, limit: Size, lanes: Lanes, before: ir.Value | None) -> ir.Value:
        """The mask of lanes at which an index is below a limit."""
        if index.coefficient(lanes.var) == 1 and not index.has_vector():
            count = Index(limit) - (index - Index(0, {lanes.var: 1}))
            made = self.bodies.evaluator.once(
                ("mask", count.key, lanes.width), lambda: emit.first_lanes(emit.materialize(count), lanes.width)
            )
        else:
            ends = emit.broadcast(emit.index_constant(limit), lanes.width)
            made = emit.compare("slt", self.bodies.evaluator.index_value(index), ends)
        return made if before is None else emit.arith("andi", before, made)


def open_guards(uses: Sequence[Use]) -> dict[str, list[Guard]]:
    """The guards of each block that are not proved to hold, by name."""
    return {use.block.name: [g for g in use.guards if not holds(g)] for use in uses}
