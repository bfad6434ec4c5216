"""compute_inline and reverse_compute_inline: compute a block inside the blocks that read it, or inside the one that produces its input."""

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.editing import bodies, moving
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.indices import equal, write
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.steps import Access
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
    uses = [(b, a) for b, a in bodies.accesses_of(nest, store.buffer) if not a.is_store]
    if not uses:
        raise ScheduleError(f"block {block}: expected a block that is read, found no consumer")
    bodies.check_changeable(moving.readers_of(nest.outer_blocks(), store.buffer))
    code = [op.operation for op in inlined.body.operations][:-1]
    with nest.building():
        for user, access in uses:
            user.changed()
            load = access.operation
            with ir.InsertionPoint(load), load.location:
                at = [write(i) for i in inverse(access.indices)]
                values: dict[ir.Value, ir.Value] = dict(zip(inlined.body.arguments, at, strict=True))
                bodies.copy_operations(code, values)
            load.results[0].replace_all_uses_with(values.get(store.operation.operands[0], store.operation.operands[0]))
            region = load.block
            load.erase()
            bodies.sweep(region)
        nest.remove(inlined, store.buffer)


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
    (made,) = [a for b, a in bodies.accesses_of(nest, buffer) if a.is_store]
    code = [op.operation for op in inlined.body.operations]
    for output in inlined.outputs():
        nest.hoist(output, producer)
    with nest.building():
        producer.changed()
        with ir.InsertionPoint(made.operation), made.operation.location:
            at = [write(i) for i in inverse(made.indices)]
            values: dict[ir.Value, ir.Value] = dict(zip(inlined.body.arguments, at, strict=True))
            values |= {load.operation.results[0]: store.operation.operands[0] for load in loads}
            bodies.copy_operations(code, values)
        region = made.operation.block
        made.operation.erase()
        bodies.sweep(region)
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
