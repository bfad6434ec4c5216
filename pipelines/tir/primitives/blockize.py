"""blockize: turns a loop and its contents into one block."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from relayc.dialects.tir.block import REDUCTION
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.elements import check_elements
from relayc.pipelines.tir.analysis.regions import span, still_in
from relayc.pipelines.tir.editing.bodies import take_init
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import equal, substitute, variables
from relayc.pipelines.tir.tree.members import Block, Loop, Member, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest, nested
from relayc.symbolic import Size, ceil_div, exact, proves


@primitive
def blockize(nest: Nest, loop: str) -> list[str]:
    """Turns a loop that contains one block, NAME, in loops, into one block, NAME_o, that contains these loops.

    The iterators of the new block are the iterators of NAME that vary outside the loop: the number of a tile if the tiles are contiguous,
    otherwise their first element. If a reduction continues outside the loop, its init moves to the new block, as a block NAME_init in
    loops.
    """
    return [make(nest, find_loop(nest, loop)).name]


@dataclass(frozen=True)
class SplitIterator:
    """An iterator of a block in terms of the enclosing block: iterator = outer iterator * `scale` + `inner`.

    Attributes:
      outer: the value of the outer iterator, over the outer loops; None if the iterator is `inner` alone.
      extent: of the outer iterator.
      inner: over the inner loops.
    """

    outer: Index | None
    extent: Size
    scale: Size
    inner: Index


@dataclass(frozen=True)
class InnerGuard:
    """A guard that stays in the inner block: the iterator at `position` plus `rest`, over the inner loops, is below `limit`."""

    position: int
    rest: Index
    limit: Size


def make(nest: Nest, loop: Loop) -> Block:
    """Turns a loop into a block. Raises ScheduleError before any change."""
    block, inner = nest_under(loop)
    if block.has_init:
        check_elements(block)
    still = still_in(loop) - {loop.var}
    tiles = [_tile(block.name, point, extent, still) for point, extent in zip(block.points, block.extents, strict=True)]
    outside, inside = _guards(block, still)
    kept = [i for i, t in enumerate(tiles) if t.outer is not None]
    outside += [Guard(t.outer, t.extent) for t in tiles if t.outer is not None]
    kinds = [block.iterators[i] for i in kept]
    with loop.location:
        made = nest.new_block(nest.free_block(f"{block.name}_o"), kinds, [tiles[i].extent for i in kept])
    outer = {i: Index.of(v) for i, v in zip(kept, made.vars, strict=True)}
    if REDUCTION in kinds and block.has_init:
        _move_start(nest, made, block, inner, tiles, inside, kept)
    nest.replace(loop, made, [loop])
    made.place([t.outer for t in tiles if t.outer is not None], outside)
    points = [t.inner + outer[i] * t.scale if i in outer else t.inner for i, t in enumerate(tiles)]
    block.place(points, [Guard(points[g.position] + g.rest, g.limit) for g in inside])
    return made


def nest_under(loop: Loop) -> tuple[Block, list[Loop]]:
    """The only block under a loop, and the loops around it starting at that loop. Raises ScheduleError."""
    return _down(f"loop {loop.name}", [loop])


def nest_in(block: Block) -> tuple[Block, list[Loop]]:
    """The only block in the body of a block, and the loops around it. Raises ScheduleError."""
    return _down(f"block {block.name}", block.inside)


def _down(where: str, members: Sequence[Member]) -> tuple[Block, list[Loop]]:
    found: list[Loop] = []
    while len(members) == 1 and isinstance(members[0], Loop):
        found.append(members[0])
        members = found[-1].inside
    if len(members) == 1 and isinstance(members[0], Block):
        return members[0], found
    inside = found[-1].name if found else where
    raise ScheduleError(f"{where}: expected one block in loops in it, found {len(members)} loops and blocks in {inside}")


def _tile(name: str, point: Index, extent: Size, still: Set[Var]) -> SplitIterator:
    """Splits a point into the parts over outer and over inner loops."""
    inner = Index(0, {v: c for v, c in point.terms.items() if not variables(Index.of(v)) <= still})
    if variables(inner) & still:
        raise ScheduleError(f"block {name}: expected points that are sums of what is outside of the loop and inside, found {point}")
    outer = point - inner
    if outer.is_constant:
        return SplitIterator(None, 1, 1, point)
    found = span(inner, still)
    size = found.extent if found is not None else 1
    numbers = {v: exact(c, size) for v, c in outer.terms.items()}
    if found is not None and equal(found.low, Index()) and proves(lambda: outer.const >= 0) and None not in numbers.values():
        # A constant stays in the inner part, so that the iterator counts tiles from 0.
        count = Index(0, {v: c for v, c in numbers.items() if c is not None})
        return SplitIterator(count, ceil_div(extent, size), size, inner + outer.const)
    reached = span(outer, ())
    reach = reached.extent if reached is not None and equal(reached.low, Index()) else extent
    return SplitIterator(outer, reach if proves(lambda: reach <= extent) else extent, 1, inner)


def _guards(block: Block, still: Set[Var]) -> tuple[list[Guard], list[InnerGuard]]:
    """The guards of the new block, and the guards that stay in the inner block."""
    outside: list[Guard] = []
    inside: list[InnerGuard] = []
    for guard in block.guards:
        if variables(guard.index) <= still:
            outside.append(guard)
            continue
        rests = ((i, guard.index - point) for i, point in enumerate(block.points))
        found = next((InnerGuard(i, rest, guard.limit) for i, rest in rests if not variables(rest) & still), None)
        if found is None:
            raise ScheduleError(f"block {block.name}: expected guards of its points, found one of {guard.index} < {guard.limit}")
        inside.append(found)
    return outside, inside


def _move_start(
    nest: Nest,
    made: Block,
    block: Block,
    loops: Sequence[Loop],
    tiles: Sequence[SplitIterator],
    guards: Sequence[InnerGuard],
    kept: Sequence[int],
) -> None:
    """Moves the init of a block to the init of the new block, in its own loops."""
    parallel = block.parallel
    outer = {i: Index.of(v) for i, v in zip(kept, made.iterators_in(made.add_init()), strict=True)}
    used = set().union(*(variables(tiles[i].inner) for i in parallel))
    inside = [loop for loop in loops if loop.var in used]
    new = nest.new_loops([(f"{loop.name}_init", loop.extent) for loop in inside], block.operation.location)
    point: dict[Var, Index] = {loop.var: Index.of(n.var) for loop, n in zip(inside, new, strict=True)}
    points = {i: substitute(tiles[i].inner, point) + (outer[i] * tiles[i].scale if i in outer else 0) for i in parallel}
    limits = [Guard(points[g.position] + substitute(g.rest, point), g.limit) for g in guards if g.position in points]
    start = take_init(nest, block, nest.free_block(f"{block.name}_init"), parallel)
    made.starts = nested(new, start)
    start.place([points[i] for i in parallel], limits)
