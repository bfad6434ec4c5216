"""cache_read and cache_write: blocks read or write another buffer, to or from which the elements are copied."""

from collections.abc import Sequence

from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.analysis.regions import Span, clip, iterators_of, region_of_blocks, still_in
from relayc.pipelines.tir.editing import bodies, copies, moving
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def cache_read(
    nest: Nest, block: str, read_buffer_index: int | str, storage_scope: str, consumer_blocks: Sequence[str] | None = None
) -> list[str]:
    """Copies a buffer that a block reads into a new buffer, BUFFER_SCOPE, which all its readers read instead.

    The copy is a block of that name, before the first reader. If a loop encloses both a writer of the buffer and its readers, the copy is
    in the innermost such loop and covers the region that is read there; otherwise it is at the top level.

    Args:
      consumer_blocks: the readers that read the copy; by default all.
    """
    moving.check_scope(storage_scope)
    reader = find_block(nest, block)
    buffer = bodies.find_buffer(nest, reader, "read", read_buffer_index)
    beside = moving.blocks_beside(nest, reader)
    readers = moving.readers_of(beside, buffer)
    if consumer_blocks is not None:
        unknown = [name for name in consumer_blocks if name not in {b.name for b in readers}]
        if unknown:
            raise ScheduleError(
                f"consumer_blocks: expected readers of {nest.buffer_name(buffer)}, out of {moving.names_of(readers)}, found {unknown[0]!r}"
            )
        readers = [b for b in readers if b.name in consumer_blocks]
    writers = moving.writers_of(beside, buffer)
    loop = copies.loop_between(writers, readers)
    still = iterators_of(reader.scope) if loop is None else still_in(loop)
    region = region_of_blocks(nest, buffer, readers, still, Block.loads)
    assert region is not None  # the readers read it
    shape = nest.shape(buffer)
    before = copies.member_with(readers[0], loop)
    inside = [b for b in writers if moving.contains(before, b)]
    if inside:
        raise ScheduleError(
            f"buffer {nest.buffer_name(buffer)}: expected readers that stand all behind {moving.names_of(inside)} in the same loops, or "
            f"all behind its loops, found {moving.names_of(readers)} (consumer_blocks says which)"
        )
    order = list(nest.blocks())
    places = [order.index(b.name) for b in readers]
    between = [b for b in writers if min(places) < order.index(b.name) < max(places)]
    if between:
        raise ScheduleError(
            f"buffer {nest.buffer_name(buffer)}: expected readers between which nothing writes it, found {moving.names_of(readers)} "
            f"before and behind {moving.names_of(between)} (consumer_blocks says which)"
        )
    label = f"{nest.buffer_name(buffer)}_{storage_scope}"
    found = [(b, a) for b, a in bodies.accesses_of(nest, buffer) if not a.is_store and any(moving.contains(r, b) for r in readers)]
    made = nest.add_buffer(nest.free_buffer(label), shape, buffer.type.element_type, storage_scope, before)
    for user, access in found:
        bodies.set_buffer(user, access, made)
    domain: list[Span] = [clip(s, d) for s, d in zip(region, shape, strict=True)]
    name = copies.add_copy(nest, label, (buffer, None), (made, None), domain, shape, before, behind=False)
    return [name]


@primitive
def cache_write(nest: Nest, block: str, write_buffer_index: int | str, storage_scope: str) -> list[str]:
    """Makes a block write a new buffer, BUFFER_SCOPE, and copies it to the original buffer in a block of that name.

    The copy is after the block. If a loop encloses both the block and a reader of the buffer, the copy is in the innermost such loop and
    covers the region that is written there; otherwise it is at the top level.
    """
    moving.check_scope(storage_scope)
    writer = find_block(nest, block)
    buffer = bodies.find_buffer(nest, writer, "write", write_buffer_index)
    moving.check_alone(nest, writer, buffer)
    beside = moving.blocks_beside(nest, writer)
    loop = copies.loop_between(moving.readers_of(beside, buffer), [writer])
    still = iterators_of(writer.scope) if loop is None else still_in(loop)
    region = region_of_blocks(nest, buffer, [writer], still, Block.stores)
    assert region is not None  # the writer writes it
    label, shape = f"{nest.buffer_name(buffer)}_{storage_scope}", nest.shape(buffer)
    if loop is not None and not all(s.exact for s in region):
        raise ScheduleError(
            f"block {block}: expected that an iteration of loop {loop.name} writes a box of {nest.buffer_name(buffer)}, "
            "found elements with gaps"
        )
    domain = region if loop is not None or writer.scope is not None else [Span(Index(), d) for d in shape]
    member = copies.member_with(writer, loop)
    found = [(b, a) for b, a in bodies.accesses_of(nest, buffer) if moving.contains(writer, b)]
    made = nest.add_buffer(nest.free_buffer(label), shape, buffer.type.element_type, storage_scope, member)
    for user, access in found:
        bodies.set_buffer(user, access, made)
    name = copies.add_copy(nest, label, (made, None), (buffer, None), domain, shape, member, behind=True)
    return [name]
