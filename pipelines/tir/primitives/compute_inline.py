"""compute_inline and reverse_compute_inline: compute a block inside the blocks that read it, or inside the one that produces its input."""

from relayc.pipelines.tir.editing import bodies, moving
from relayc.pipelines.tir.editing.bodies import Inverse
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.indices import equal
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.steps import Access, Contents, Copy, Recorder, Step, live_steps
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def compute_inline(nest: Nest, block: str) -> None:
    """Replaces the loads of a block's buffer by the computation of the block, and removes the block and its buffer."""
    inlined = find_block(nest, block)
    check_inlinable(nest, inlined)
    moving.check_intermediate(nest, inlined)
    moving.check_only_writer(nest, inlined)
    moving.check_inputs_stay(nest, inlined)
    (store,) = inlined.results()
    inverse = bodies.inverse_of(nest, inlined, store)
    users = {b.name: b for b, a in bodies.accesses_of(nest, store.buffer) if not a.is_store}
    if not users:
        raise ScheduleError(f"block {block}: expected a block that is read, found no consumer")
    bodies.check_changeable(moving.readers_of(nest.outer_blocks(), store.buffer))
    for user in users.values():
        init, body = (_inlined(user, inlined, inverse, is_init) for is_init in (True, False))
        user.set_contents(Contents.of_steps(init, body))
    nest.remove(inlined, store.buffer)


def _inlined(user: Block, block: Block, inverse: Inverse, is_init: bool) -> list[Step] | None:
    """The steps of an init or body with those of another block in the place of loads of what that block writes."""
    steps, code = user.steps(is_init), block.steps(False) or []
    if steps is None:
        return None
    (buffer,) = block.outputs()
    copy = Copy(Recorder(is_init), {})
    for step in steps:
        if step.access is None or step.access.buffer != buffer:
            copy.step(step)
            continue
        inner = Copy(copy.record, dict(zip(block.vars, inverse(copy.indices(step.access)), strict=True)))
        for found in code:
            if found.access is not None and found.access.is_store:
                copy.replace(step, inner.operand(found.operands[0]))
            else:
                inner.step(found)
    return live_steps(copy.record.steps, is_init)


def check_inlinable(nest: Nest, block: Block) -> None:
    """Raises ScheduleError unless a block computes single elements of one buffer from other buffers."""
    bodies.check_plain(block)
    bodies.check_changeable([block])
    if block.scope is not None:
        raise ScheduleError(f"block {block.name}: expected a block of the function, found one in another block")
    if block.has_init or len(block.parallel) != len(block.iterators):
        raise ScheduleError(f"block {block.name}: expected parallel iterators only, found a reduction")
    stores = block.results()
    if len(stores) != 1:
        raise ScheduleError(f"block {block.name}: expected one store, found {len(stores)}")
    if any(a.buffer == stores[0].buffer for a in block.loads()):
        raise ScheduleError(f"block {block.name}: expected it not to read {nest.buffer_name(stores[0].buffer)}, which it writes")


@primitive
def reverse_compute_inline(nest: Nest, block: str) -> None:
    """Moves the computation of a block on an element into its producer, at the store of the element, and removes the block and its input
    buffer."""
    inlined = find_block(nest, block)
    check_inlinable(nest, inlined)
    moving.check_only_writer(nest, inlined)
    producer, loads = _producer(nest, inlined)
    buffer = loads[0].buffer
    (store,) = producer.results()
    inverse = bodies.inverse_of(nest, inlined, loads[0])
    for output in inlined.outputs():
        nest.hoist(output, producer)
    copy = Copy(Recorder(False), {})
    for step in producer.steps(False) or ():
        if step.access is not store:
            copy.step(step)
            continue
        inner = Copy(copy.record, dict(zip(inlined.vars, inverse(store.indices), strict=True)))
        for found in inlined.steps(False) or ():
            if found.access is not None and found.access.buffer == buffer:
                inner.replace(found, copy.operand(step.operands[0]))
            else:
                inner.step(found)
    producer.set_contents(Contents.of_steps(None, copy.record.steps))
    nest.remove(inlined, buffer)


def _producer(nest: Nest, inlined: Block) -> tuple[Block, list[Access]]:
    """The block that produces the input of another one, and the loads of it."""
    beside = moving.blocks_beside(nest, inlined)
    order = list(nest.blocks())
    producers = [w for b in inlined.inputs() for w in moving.writers_of(beside, b)]
    if not producers:
        raise ScheduleError(f"block {inlined.name}: expected a block that makes its input, found none")
    producer = max(producers, key=lambda b: order.index(b.name))
    where = f"block {inlined.name}: producer {producer.name}"
    if producer.is_reduction or producer.has_init:
        raise ScheduleError(f"{where}: expected a complete block, found a reduction (reverse_compute_at moves a block behind one)")
    check_inlinable(nest, producer)
    moving.check_intermediate(nest, producer)
    moving.check_only_writer(nest, producer)
    buffer = producer.outputs()[0]
    others = [b for b in moving.readers_of(beside, buffer) if b.name != inlined.name]
    if others:
        raise ScheduleError(f"{where}: expected {inlined.name} to be its only consumer, found also {moving.names_of(others)}")
    for other in producers:
        if other.name != producer.name and not set(other.around).isdisjoint(producer.around):
            raise ScheduleError(f"block {inlined.name}: expected its other inputs to be done before {producer.name}, found {other.name}")
    loads = [a for a in inlined.loads() if a.buffer == buffer]
    if any(not equal(i, j) for a in loads[1:] for i, j in zip(a.indices, loads[0].indices, strict=True)):
        raise ScheduleError(f"{where}: expected one element of {nest.buffer_name(buffer)} at each point, found loads of several")
    return producer, loads
