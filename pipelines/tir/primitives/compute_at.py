"""compute_at: computes a producer inside a loop of its consumers, only the region needed there."""

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.analysis.regions import Region, Span, clip, region_of_blocks, still_in
from relayc.pipelines.tir.editing import moving
from relayc.pipelines.tir.primitives.registry import find_block, find_loop, primitive
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
    regions = {b: found for b in moved.outputs() if (found := _read(nest, b, target)) is not None}
    domain = _domain(moved, regions)
    first = moving.members_with(target, consumers)[0]
    nest.take_out(moved)
    made = moving.place(nest, moved, domain, first, behind=False, keep_unit=preserve_unit_loops)
    return [m.name for m in made]


def _read(nest: Nest, buffer: ir.Value, under: Loop) -> Region | None:
    """The region of a buffer that is read in a loop; for a shared buffer the region that all threads read; None if nothing reads it."""
    still = still_in(under)
    if nest.scope(buffer) == "shared":
        still -= {loop.var for loop in (*under.around, under) if loop.kind.startswith("threadIdx.")}
    return region_of_blocks(nest, buffer, blocks_of([under]), still, Block.loads)


def _domain(block: Block, regions: dict[ir.Value, Region]) -> list[Span]:
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
