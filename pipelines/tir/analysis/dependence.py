"""Dependences of blocks on the loops around them: the legality of reordering and parallel execution."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import OPAQUE, PARALLEL, REDUCTION
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.analysis.elements import check_elements, tell
from relayc.pipelines.tir.analysis.reducers import adds_up, find_reducer
from relayc.pipelines.tir.analysis.regions import is_within, region_of_blocks, still_in
from relayc.pipelines.tir.tree.indices import substitute, variables
from relayc.pipelines.tir.tree.members import Block, Loop, LoopVar, Member, ScheduleError, blocks_of
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size


@dataclass(frozen=True)
class Dependence:
    """The loops on which the iterators of a block depend.

    Attributes:
      loops: around the block, outermost first.
      of_iterators: the variables in the point of each iterator.
    """

    block: Block
    loops: Sequence[Loop]
    of_iterators: Sequence[frozenset[Var]]

    def kinds(self, loop: Loop) -> set[str]:
        """The kinds of the iterators that depend on a loop."""
        return {kind for kind, found in zip(self.block.iterators, self.of_iterators, strict=True) if loop.var in found}

    def has(self, kind: str, loop: Loop) -> bool:
        """Whether an iterator of a kind depends on a loop."""
        return kind in self.kinds(loop)


def dependence(block: Block) -> Dependence:
    """The loops on which the iterators of a block depend."""
    return Dependence(block, block.around, [frozenset(variables(p)) for p in block.points])


def dependences(loop: Loop) -> list[Dependence]:
    """The dependences of the outermost blocks in a loop."""
    return [dependence(block) for block in blocks_of([loop])]


def check_independent(nest: Nest, loop: Loop) -> None:
    """Checks that the iterations of a loop may run in any order, and in parallel. Raises ScheduleError, which names the conflicting
    block."""
    _check_not_along(loop, REDUCTION, OPAQUE)
    check_distinct(nest, loop)


def check_reducible(nest: Nest, loop: Loop) -> None:
    """`check_independent` for a loop whose iterations are combined at its end: reductions by one commutative operation may run along it."""
    for found in dependences(loop):
        if found.has(OPAQUE, loop):
            raise ScheduleError(f"expected iterations that are independent, found an opaque iterator of {found.block} that runs along it")
        if found.has(REDUCTION, loop) and not adds_up(found.block) and not (reducer := find_reducer(found.block)).is_commutative:
            raise ScheduleError(f"expected a reduction by one commutative operation, found {reducer.text} in {found.block}")
    check_distinct(nest, loop)


def check_parallel(nest: Nest, loop: Loop) -> None:
    """`check_independent` for a parallel loop: opaque iterators are allowed, as their author vouches for them."""
    _check_not_along(loop, REDUCTION)
    check_distinct(nest, loop)


def _check_not_along(loop: Loop, *kinds: str) -> None:
    """Checks that no iterator of these kinds runs along a loop. Raises ScheduleError."""
    for found in dependences(loop):
        for kind in kinds:
            if found.has(kind, loop):
                what = "a reduction" if kind == REDUCTION else "an opaque iterator"
                raise ScheduleError(f"expected iterations that are independent, found {what} of {found.block} that runs along it")


def check_distinct(nest: Nest, loop: Loop) -> None:
    """Checks that no iteration of a loop writes an element, of a buffer used outside it, that another iteration accesses; blocks with a
    reduction or opaque iterator along the loop are skipped. Raises ScheduleError."""
    if loop.extent == 1:
        return
    still = still_in(loop) - {loop.var}
    for found in dependences(loop):
        if found.has(OPAQUE, loop):
            continue
        check_elements(found.block)
        _check_own(nest, loop, found.block)
        outliving = [buffer for buffer in found.block.outputs() if _outlives(nest, buffer, loop)]
        points = [p for p, kind in zip(found.block.points, found.block.iterators, strict=True) if kind == PARALLEL]
        if outliving and not found.has(REDUCTION, loop) and not tell(points, [loop.var], still, found.block.guards):
            where = nest.buffer_name(outliving[0])
            raise ScheduleError(f"expected iterations that are independent, found {found.block}, which writes the same of {where} in each")
        for buffer in outliving:
            _check_others(nest, loop, found.block, buffer)


def _check_others(nest: Nest, loop: Loop, block: Block, buffer: ir.Value) -> None:
    """Checks that no other block accesses, in another iteration of a loop, elements that a block writes. Raises ScheduleError."""
    for other in blocks_of([loop]):
        if other.name == block.name or all(a.buffer != buffer for a in other.accesses()):
            continue
        if not _are_apart(nest, loop, [block, other], buffer) and not _same_pattern(nest, loop, block, other, buffer):
            raise ScheduleError(
                f"expected iterations that are independent, found {other}, which may access elements of {nest.buffer_name(buffer)} "
                f"that {block} writes in another one"
            )


def _are_apart(nest: Nest, loop: Loop, blocks: Sequence[Block], buffer: ir.Value) -> bool:
    """Whether different iterations of a loop access disjoint elements of a buffer in the given blocks."""
    still = still_in(loop)
    region = region_of_blocks(nest, buffer, blocks, still)
    accessed = [found.low + Index.of(Var.below(found.extent)) for found in region or ()]
    return tell(accessed, [loop.var], still - {loop.var})


def _check_own(nest: Nest, loop: Loop, block: Block) -> None:
    """Checks that a block reads elements of a buffer local to a loop only after the same iteration wrote them. Raises ScheduleError."""
    under, still = blocks_of([loop]), still_in(loop)
    before = under[: next(i for i, b in enumerate(under) if b.name == block.name) + block.has_init]
    for buffer in {a.buffer: None for a in block.loads() if any(b.stores_to(a.buffer) for b in under)}:
        if _outlives(nest, buffer, loop) or _are_apart(nest, loop, under, buffer):
            continue
        read = region_of_blocks(nest, buffer, [block], still, Block.loads)
        written = region_of_blocks(nest, buffer, before, still, Block.stores)
        assert read is not None  # the block loads from it
        if written is None or not all(map(is_within, read, written, nest.shape(buffer))):
            raise ScheduleError(
                f"expected iterations that are independent, found {block}, which may read elements of {nest.buffer_name(buffer)} that are "
                "written in another one"
            )


def check_once(found: Dependence, loops: Sequence[Loop]) -> None:
    """Checks that no two iterations of loops around a block compute the same point of a reduction. Raises ScheduleError."""
    shared = {loop.var for loop in loops}
    known: set[Var] = {loop.var for loop in found.loops if loop.var not in shared}
    known |= {v for p in found.of_iterators for v in p} - {loop.var for loop in found.loops}
    moving = [loop.var for loop in loops if loop.extent != 1 and any(loop.name == a.name for a in found.loops)]
    block = found.block
    if not tell(block.points, moving, known, block.guards):
        raise ScheduleError(
            f"expected each step of {block} in one iteration of {', '.join(loop.name for loop in loops)}, found some in several"
        )


def _same_pattern(nest: Nest, loop: Loop, block: Block, other: Block, buffer: ir.Value) -> bool:
    """Whether two blocks, in separate loops inside a loop, access the same elements in one iteration, and disjoint ones in different
    iterations."""
    still = still_in(loop)
    moving: dict[tuple[int, Size], Var] = {}
    found: dict[tuple, list[Index]] = {}
    for one in (block, other):
        point: dict[Var, Index] = dict(zip(one.vars, one.points, strict=True))
        for access in (a for a in one.accesses() if a.buffer == buffer):
            indices = [substitute(i, point) for i in access.indices]
            used = set[Var]().union(*map(variables, indices)) - still
            named: dict[Var, Index] = {
                a.var: Index.of(moving.setdefault((number, a.extent), LoopVar(None, a.extent, a.name)))
                for number, a in enumerate(a for a in one.around if a.var in used)
            }
            indices = [substitute(i, named) for i in indices]
            found[tuple(i.key for i in indices)] = indices
    return len(found) == 1 and tell(next(iter(found.values())), [loop.var], still - {loop.var})


def _outlives(nest: Nest, buffer: ir.Value, loop: Loop) -> bool:
    """Whether a buffer that a loop writes is used outside of the loop."""
    inside = {b.name for b in blocks_of([loop])}
    return nest.is_output(buffer) or any(b.name not in inside and buffer in (*b.inputs(), *b.outputs()) for b in nest.outer_blocks())


def chain(outer: Loop, inner: Loop) -> list[Loop]:
    """The perfectly nested loops from one to an inner one. Raises ScheduleError."""
    around = [*inner.around, inner]
    if outer not in around:
        raise ScheduleError(f"expected loops inside of each other, found {inner.name} outside of {outer.name}")
    found = around[around.index(outer) :]
    for loop, following in pairwise(found):
        if len(loop.inside) != 1 or loop.inside[0] is not following:
            raise ScheduleError(f"expected {loop.name} to hold one loop alone, found {_described(loop.inside)}")
    return found


def _described(members: Sequence[Member]) -> str:
    return " and ".join(
        f"loop {m.name}" if isinstance(m, Loop) else f"block {m.name}" if isinstance(m, Block) else "a buffer" for m in members
    )


def loops_of_iterators(block: Block) -> list[Loop | None]:
    """The loops around a block that has exactly one for each iterator, and is alone in them, in the order of the iterators; None for an
    iterator of extent 1 without a loop.

    Raises ScheduleError.
    """
    loops = block.around
    by_key = {Index.of(loop.var).key: loop for loop in loops}
    found = [by_key.get(p.key) for p in block.points]
    missing = any(loop is None and extent != 1 for loop, extent in zip(found, block.extents, strict=True))
    if missing or len({loop.name for loop in found if loop is not None}) < len(loops) or block.guards:
        raise ScheduleError(f"expected a loop for each iterator of {block}, and no other, found others")
    if loops:
        chain(loops[0], loops[-1])
        if len(loops[-1].inside) != 1:
            raise ScheduleError(f"expected {block} alone in {loops[-1].name}, found others")
    return found
