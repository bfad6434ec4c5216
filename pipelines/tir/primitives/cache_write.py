"""cache_write: a block writes another buffer, which is then copied to the original one."""

from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.analysis.regions import Span, iterators_of, region_of_blocks, still_in
from relayc.pipelines.tir.editing import bodies, copies, moving
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


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
    with nest.building():
        made = nest.add_buffer(nest.free_buffer(label), shape, buffer.type.element_type, storage_scope, member)
        for user, access in found:
            bodies.set_buffer(user, access, made)
        name = copies.add_copy(nest, label, (made, None), (buffer, None), domain, shape, member, behind=True)
    return [name]
