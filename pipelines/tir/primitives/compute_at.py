"""compute_at and reverse_compute_at: compute a block inside a loop of its consumers or producers, only the region needed there."""

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
def compute_at(nest: Nest, block: str, loop: str, preserve_unit_loops: bool = False) -> list[str]:
    """Moves a block into a loop that encloses all of its consumers, before the first of them.

    In each iteration of the loop the block computes the region that its consumers read there, in new loops ax0, ax1, ..., one for each
    iterator (the whole extent for a reduction iterator). It is guarded if the region may exceed its extents.
    """
    moved, target = find_block(nest, block), find_loop(nest, loop)
    moving.check_same_scope(moved, target)
    moving.check_intermediate(nest, moved)
    moving.check_only_writer(nest, moved)
    beside = moving.blocks_beside(nest, target)
    under = blocks_of([target])
    consumers = [b for buffer in moved.outputs() for b in moving.readers_of(beside, buffer)]
    outside = [b for b in consumers if b.name not in {u.name for u in under}]
    if not consumers:
        raise ScheduleError(f"block {block}: expected a block that is read, found no consumer")
    if outside:
        raise ScheduleError(f"block {block}: expected all of its consumers under loop {loop}, found {moving.names_of(outside)} outside")
    moving.check_inputs_stay(nest, moved)
    regions = {b: found for b in moved.outputs() if (found := _region_read(nest, b, target)) is not None}
    domain = _points_to_write(moved, regions)
    first = moving.members_with(target, consumers)[0]
    nest.take_out(moved)
    made = moving.place(nest, moved, domain, first, behind=False, keep_unit=preserve_unit_loops)
    return [m.name for m in made]


def _region_read(nest: Nest, buffer: ir.Value, under: Loop) -> Region | None:
    """The region of a buffer that is read in a loop; for a shared buffer the region that all threads read; None if nothing reads it."""
    still = still_in(under)
    if nest.scope(buffer) == "shared":
        still -= {loop.var for loop in (*under.around, under) if loop.kind.startswith("threadIdx.")}
    return region_of_blocks(nest, buffer, blocks_of([under]), still, Block.loads)


def _points_to_write(block: Block, regions: dict[ir.Value, Region]) -> list[Span]:
    """The points of a block that write the regions of its outputs that are read."""
    needed: list[list[Span | None]] = [[] for _ in block.vars]
    for access in block.results():
        region = regions.get(access.buffer)
        if region is None:
            continue
        for i, (var, extent) in enumerate(zip(block.vars, block.extents, strict=True)):
            limits = [moving.values_within(index, found, var) for index, found in zip(access.indices, region, strict=True)]
            found = min((clip(f, extent) for f in limits if f is not None), key=lambda f: _size(f), default=None)
            needed[i].append(found)
    domain = []
    for i, (spans, extent) in enumerate(zip(needed, block.extents, strict=True)):
        first = spans[0]
        same = first is not None and all(s is not None and (s.low.key, s.extent) == (first.low.key, first.extent) for s in spans)
        domain.append(first if same and first is not None and i in block.parallel else Span(moving.ZERO, extent))
    return domain


def _size(found: Span) -> int:
    """Sort key of spans: the choice affects the amount of computation, not the result."""
    return found.extent if isinstance(found.extent, int) else 1 << 62


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
            regions[buffer] = _region_written(nest, buffer, target, moved)
            producers += inside
        _check_done(nest, moved, target, [b for b in writers if b.name not in under], bool(inside))
    if not producers:
        raise ScheduleError(f"block {block}: expected a producer of it under loop {loop}, found none")
    for producer in producers:
        _check_finished(nest, producer, target, moved)
    domain = _points_to_read(nest, moved, regions, target)
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


def _region_written(nest: Nest, buffer: ir.Value, under: Loop, moved: Block) -> Region:
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


def _points_to_read(nest: Nest, moved: Block, regions: dict[ir.Value, Region], target: Loop) -> list[Span]:
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
