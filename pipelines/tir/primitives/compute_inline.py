"""compute_inline: computes a block inside the blocks that read it."""

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.editing import bodies, moving
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.indices import write
from relayc.pipelines.tir.tree.members import Block, ScheduleError
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
