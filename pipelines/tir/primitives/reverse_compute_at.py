"""reverse_compute_at: computes a consumer inside a loop of its producers."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.analysis.regions import Region, Span, clip, is_whole, region_of_blocks, span, still_in
from relayc.pipelines.tir.editing import moving
from relayc.pipelines.tir.primitives.registry import find_block, find_loop, primitive
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import equal, variables
from relayc.pipelines.tir.tree.members import Block, Loop, ScheduleError, blocks_of
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def reverse_compute_at(nest: Nest, block: str, loop: str, preserve_unit_loops: bool = False) -> list[str]:
    """Moves a block into a loop that encloses its producers, after the last of them.

    In each iteration of the loop the block computes the points whose inputs were written there, in new loops ax0, ax1, ...
    """
    moved, target = find_block(nest, block), find_loop(nest, loop)
    moving.check_same_scope(moved, target)
    moving.check_only_writer(nest, moved)
    under = {b.name for b in blocks_of([target])}
    beside = moving.blocks_beside(nest, target)
    regions: dict[ir.Value, Region] = {}
    producers: list[Block] = []
    for buffer in moved.inputs():
        writers = moving.writers_of(beside, buffer)
        inside = [b for b in writers if b.name in under]
        if inside:
            regions[buffer] = _written(nest, buffer, target, moved)
            producers += inside
        _check_done(nest, moved, target, [b for b in writers if b.name not in under], bool(inside))
    if not producers:
        raise ScheduleError(f"block {block}: expected a producer of it under loop {loop}, found none")
    for producer in producers:
        _check_finished(nest, producer, target, moved)
    domain = _domain(nest, moved, regions, target)
    last = moving.members_with(target, producers)[-1]
    for buffer in moved.outputs():
        nest.hoist(buffer, last)
    guards = _repeated(nest, producers, target, domain)
    nest.take_out(moved)
    made = moving.place(nest, moved, domain, last, behind=True, keep_unit=preserve_unit_loops, guards=guards)
    return [m.name for m in made]


def _repeated(nest: Nest, producers: Sequence[Block], target: Loop, domain: Sequence[Span]) -> list[Guard]:
    """Guards of the producers that skip whole iterations of enclosing loops on which the moved block does not depend: without them it would
    recompute the same points, from elements that were not written."""
    still = still_in(target)
    told = set().union(*(variables(found.low) for found in domain))
    found: dict[tuple, Guard] = {}
    for producer in producers:
        for guard in producer.guards:
            outer = Index(guard.index.const, {v: c for v, c in guard.index.terms.items() if variables(Index.of(v)) <= still})
            low, _ = (guard.index - outer).bounds()
            if outer.terms and variables(outer).isdisjoint(told):
                kept = Guard(outer + low, guard.limit)
                found[kept.key] = kept
    return list(found.values())


def _written(nest: Nest, buffer: ir.Value, under: Loop, moved: Block) -> Region:
    found = region_of_blocks(nest, buffer, blocks_of([under]), still_in(under), Block.stores)
    assert found is not None  # it has a writer there
    if not all(s.exact for s in found):
        raise ScheduleError(
            f"block {moved.name}: expected that an iteration of loop {under.name} writes a box of {nest.buffer_name(buffer)}, "
            "found elements with gaps"
        )
    return found


def _check_done(nest: Nest, moved: Block, target: Loop, others: Sequence[Block], partly: bool) -> None:
    """Raises ScheduleError unless the elements that other blocks write are complete before the loop begins."""
    around = {loop.name for loop in (*target.around, target)}
    order = list(nest.blocks())
    first = min(order.index(b.name) for b in blocks_of([target]))
    for other in others:
        shared = [loop.name for loop in other.around if loop.name in around]
        if partly or shared or order.index(other.name) > first:
            raise ScheduleError(
                f"block {moved.name}: expected all of its producers under loop {target.name} or done before it, found {other.name}"
            )


def _check_finished(nest: Nest, producer: Block, target: Loop, moved: Block) -> None:
    """Raises ScheduleError if a reduction continues in later iterations of the loop."""
    loops = producer.around
    still, points = still_in(target), producer.points
    for i in producer.reduction:
        found = span(points[i], still, producer.guards)
        if found is None or not is_whole(clip(found, producer.extents[i]), producer.extents[i]):
            outer = [loop.name for loop in loops if loop.var in still and loop.var in variables(points[i])]
            raise ScheduleError(
                f"block {moved.name}: expected that {producer.name} is done in an iteration of loop {target.name}, "
                f"found that its reduction goes on in loop {', '.join(outer) or target.name}"
            )


def _domain(nest: Nest, moved: Block, regions: dict[ir.Value, Region], target: Loop) -> list[Span]:
    """The points of a block that read the regions of its inputs, and no other elements of them."""
    domain: list[Span | None] = [None] * len(moved.vars)
    for access in moved.accesses():
        if access.buffer not in regions or access.is_store:
            continue
        name, shape = nest.buffer_name(access.buffer), nest.shape(access.buffer)
        for dim, (index, found) in enumerate(zip(access.indices, regions[access.buffer], strict=True)):
            if is_whole(found, shape[dim]):
                continue
            where = f"block {moved.name}: dimension {dim} of {name}"
            position, wanted = _constraint(moved, index, found)
            if position is None or wanted is None:
                raise ScheduleError(
                    f"{where}: expected an index that tells one iterator from what loop {target.name} writes, found {index}"
                )
            if position in moved.reduction:
                raise ScheduleError(f"{where}: expected that its reduction stays in one iteration of loop {target.name}, found it split")
            known = domain[position]
            if known is not None and not (equal(known.low, wanted.low) and known.extent == wanted.extent):
                raise ScheduleError(f"{where}: expected one region for all reads, found {_text(known)} and {_text(wanted)}")
            domain[position] = wanted
    return [Span(Index(), e) if s is None else clip(s, e) for s, e in zip(domain, moved.extents, strict=True)]


def _constraint(moved: Block, index: Index, found: Span) -> tuple[int | None, Span | None]:
    """The iterator in an index, and its values for which the index is in a span."""
    for i, var in enumerate(moved.vars):
        if var in variables(index):
            wanted = moving.values_within(index, found, var)
            if wanted is not None and wanted.exact:
                return i, wanted
    return None, None


def _text(found: Span) -> str:
    return f"{found.extent} from {found.low}"
