"""blockize: turns a loop and its contents into one block."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import PARALLEL, REDUCTION, make_block
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.elements import check_elements
from relayc.pipelines.tir.analysis.regions import span, still_in
from relayc.pipelines.tir.editing.bodies import copy_operations
from relayc.pipelines.tir.primitives.registry import find_loop, primitive
from relayc.pipelines.tir.tree.guards import Guard, needed
from relayc.pipelines.tir.tree.indices import equal, substitute, variables, write
from relayc.pipelines.tir.tree.operations import is_statement
from relayc.pipelines.tir.tree.structure import Nest
from relayc.pipelines.tir.tree.views import Block, Loop, ScheduleError, ValueVar, body_point
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
    block, inner = nest_under(nest, loop)
    if block.has_init:
        check_elements(block)
    around = nest.loops_around(loop.operation)
    still = still_in(nest, loop) - {loop.var}
    points = block.points([*around, *inner])
    tiles = [_tile(block.name, point, extent, still) for point, extent in zip(points, block.extents, strict=True)]
    outside, inside = _guards(block, block.guards([*around, *inner]), points, still)
    kept = [i for i, t in enumerate(tiles) if t.outer is not None]
    with nest.editing(bodies=[block.name]):
        with ir.InsertionPoint(loop.operation), loop.operation.location:
            outside += [Guard(t.outer, t.extent) for t in tiles if t.outer is not None]
            values = [write(t.outer) for t in tiles if t.outer is not None]
            pairs = [(write(g.index), emit.index_constant(g.limit)) for g in needed(outside)]
            kinds = [block.iterators[i] for i in kept]
            made = make_block(nest.free_block(f"{block.name}_o"), kinds, [tiles[i].extent for i in kept], values, pairs)
        result = nest.block_view(made)
        outer: dict[int, Index] = {i: Index.of(v) for i, v in zip(kept, result.vars, strict=True)}
        starts = REDUCTION in kinds and block.init is not None
        if starts:
            _move_start(nest, made, block, inner, tiles, inside, kept)
        result.body.append(loop.operation)
        new_points = [t.inner + outer[i] * t.scale if i in outer else t.inner for i, t in enumerate(tiles)]
        block.set_points(new_points, [Guard(new_points[g.position] + g.rest, g.limit) for g in inside], keep_init=not starts)
    return nest.block_view(made)


def nest_under(nest: Nest, loop: Loop) -> tuple[Block, list[Loop]]:
    """The only block under a loop, and the loops around it starting at that loop. Raises ScheduleError."""
    return _down(nest, f"loop {loop.name}", [loop.operation])


def nest_in(nest: Nest, block: Block) -> tuple[Block, list[Loop]]:
    """The only block in the body of a block, and the loops around it. Raises ScheduleError."""
    return _down(nest, f"block {block.name}", [op.operation for op in block.body.operations if is_statement(op.operation)])


def _down(nest: Nest, where: str, members: list[ir.Operation]) -> tuple[Block, list[Loop]]:
    found: list[Loop] = []
    while True:
        inside = found[-1].name if found else where
        if len(members) != 1 or members[0].name == "memref.alloc":
            raise ScheduleError(f"{where}: expected one block in loops in it, found {len(members)} loops and blocks in {inside}")
        if members[0].name == "tir.block":
            return nest.block_view(members[0]), found
        found.append(nest.loop_view(members[0]))
        members = found[-1].members()


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
    return SplitIterator(outer, extent, 1, inner)


def _guards(block: Block, guards: Sequence[Guard], points: Sequence[Index], still: Set[Var]) -> tuple[list[Guard], list[InnerGuard]]:
    """The guards of the new block, and the guards that stay in the inner block."""
    outside: list[Guard] = []
    inside: list[InnerGuard] = []
    for guard in guards:
        if variables(guard.index) <= still:
            outside.append(guard)
            continue
        rests = ((i, guard.index - point) for i, point in enumerate(points))
        found = next((InnerGuard(i, rest, guard.limit) for i, rest in rests if not variables(rest) & still), None)
        if found is None:
            raise ScheduleError(f"block {block.name}: expected guards of its points, found one of {guard.index} < {guard.limit}")
        inside.append(found)
    return outside, inside


def _move_start(
    nest: Nest,
    made: ir.Operation,
    block: Block,
    loops: Sequence[Loop],
    tiles: Sequence[SplitIterator],
    guards: Sequence[InnerGuard],
    kept: Sequence[int],
) -> None:
    """Copies the init of a block to the init of the new block, in its own loops."""
    assert block.init is not None
    parallel = block.parallel
    region = made.regions[0].blocks.append(*[ir.IndexType.get()] * len(kept))
    view = nest.block_view(made)
    outer = {i: Index.of(ValueVar(a, v.extent, v.name)) for i, a, v in zip(kept, region.arguments, view.vars, strict=True)}
    used = set().union(*(variables(tiles[i].inner) for i in parallel))
    inside = [loop for loop in loops if loop.var in used]
    with block.operation.location:
        with ir.InsertionPoint(region):
            new = nest.make_loops([(f"{loop.name}_init", loop.extent) for loop in inside])
        place = body_point(new[-1]) if new else ir.InsertionPoint(region)
        point: dict[Var, Index] = {loop.var: Index.of(n.var) for loop, n in zip(inside, new, strict=True)}
        points = {i: substitute(tiles[i].inner, point) + (outer[i] * tiles[i].scale if i in outer else 0) for i in parallel}
        limits = [Guard(points[g.position] + substitute(g.rest, point), g.limit) for g in guards if g.position in points]
        with place:
            pairs = [(write(g.index), emit.index_constant(g.limit)) for g in needed(limits)]
            start = make_block(
                nest.free_block(f"{block.name}_init"),
                [PARALLEL] * len(parallel),
                [block.extents[i] for i in parallel],
                [write(points[i]) for i in parallel],
                pairs,
            )
        body = start.regions[1].blocks[0]
        values: dict[ir.Value, ir.Value] = dict(zip([block.init.arguments[i] for i in parallel], body.arguments, strict=True))
        with ir.InsertionPoint(body):
            values |= {block.init.arguments[i]: emit.index_constant(0) for i in block.reduction}
            copy_operations([op.operation for op in block.init.operations], values)
