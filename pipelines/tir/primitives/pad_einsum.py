"""pad_einsum: pads the extents of a sum of products to multiples of numbers, and its buffers to padded copies."""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import PARALLEL
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.analysis.dependence import loops_of_iterators
from relayc.pipelines.tir.analysis.reducers import find_reducer
from relayc.pipelines.tir.editing.bodies import set_buffer
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.indices import smallest, write
from relayc.pipelines.tir.tree.members import Block, Loop, ScheduleError
from relayc.pipelines.tir.tree.steps import Access
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size, ceil_div, maximum


@dataclass(frozen=True)
class _Padded:
    """A buffer that gets a padded copy: the iterator of each dimension, the name of the buffer, and whether the block writes it."""

    buffer: ir.Value
    iterators: Sequence[int]
    name: str
    is_written: bool


@primitive
def pad_einsum(nest: Nest, block: str, padding: Sequence[int]) -> list[str]:
    """Pads the extents of a block and its loops to multiples of numbers, one for each iterator; returns the blocks that it creates.

    Inputs are copied to BUFFER_pad, padded with zeros, and outputs copied from BUFFER_pad, by blocks of these names.
    """
    found = find_block(nest, block)
    loops = _checked(found, padding)
    extents = [ceil_div(e, p) * p for e, p in zip(found.extents, padding, strict=True)]
    moved = {i for i, (new, old) in enumerate(zip(extents, found.extents, strict=True)) if new != old}
    _check_sum(found, moved)
    padded = _padded(nest, found, moved)
    names = [nest.free_block(p.name) for p in padded]
    first = nest.inside[0]
    with nest.building(), found.operation.location:
        copies = [nest.add_buffer(p.name, [extents[i] for i in p.iterators], p.buffer.type.element_type, before=first) for p in padded]
        for p, copy, name in zip(padded, copies, names, strict=True):
            for access in found.accesses():
                if access.buffer == p.buffer:
                    set_buffer(found, access, copy)
            inner = [found.extents[i] for i in p.iterators]
            whole = inner if p.is_written else [extents[i] for i in p.iterators]
            made = _copy(nest, name, whole, inner, *((copy, p.buffer) if p.is_written else (p.buffer, copy)))
            around = nest.new_loops([(loops[i].name, e) for i, e in zip(p.iterators, whole, strict=True)], made.operation.location)
            nest.insert(made, around, [Index.of(loop.var) for loop in around], [], found.around[0], behind=p.is_written)
        found.set_extents(extents)
        for loop, extent in zip(loops, extents, strict=True):
            loop.extent, loop.var.high = extent, extent - 1
        nest.changed()
    return names


def _checked(block: Block, padding: Sequence[int]) -> list[Loop]:
    """The loops around a block, one for each iterator, in the order of the iterators."""
    if len(padding) != len(block.iterators) or any(not isinstance(p, int) or p < 1 for p in padding):
        raise ScheduleError(f"padding: expected {len(block.iterators)} numbers of 1 or more, one for each iterator, found {list(padding)}")
    loops = [loop for loop in loops_of_iterators(block) if loop is not None]
    if not loops or len(loops) < len(block.iterators):
        raise ScheduleError(f"expected a loop for each iterator of {block}, found others")
    return loops


def _check_sum(block: Block, moved: set[int]) -> None:
    """Checks that padding with zeros does not change the result of a reduction whose extent grows."""
    if not moved & set(block.reduction):
        return
    for part in find_reducer(block).parts:
        product = part.value.owner.operation.name if part.value is not None and not isinstance(part.value.owner, ir.Block) else "none"
        is_sum = part.combiner in ("arith.addf", "arith.addi")
        if not is_sum or (part.operation.name != "math.fma" and product not in ("arith.mulf", "arith.muli")):
            raise ScheduleError(f"expected a sum of products, found {part.operation.name} of {product} in {block}")


def _padded(nest: Nest, block: Block, moved: set[int]) -> list[_Padded]:
    """The buffers that need padding: inputs, then outputs."""
    found: dict[ir.Value, _Padded] = {}
    written = set(block.outputs())
    init = block.init.arguments if block.init is not None else []
    position_of = {**{a: i for i, a in enumerate(block.body.arguments)}, **{a: i for i, a in enumerate(init)}}
    for access in block.accesses():
        iterators = [_iterator(nest, block, access, v, position_of) for v in list(access.operation.operands)[1 + access.is_store :]]
        shape = nest.shape(access.buffer)
        if any(extent != block.extents[i] for i, extent in zip(iterators, shape, strict=True)):
            raise ScheduleError(f"expected {block} to go over all of {nest.buffer_name(access.buffer)}, found another extent")
        known = found.get(access.buffer)
        if known is not None and list(known.iterators) != iterators:
            raise ScheduleError(f"expected {block} to access {nest.buffer_name(access.buffer)} at one index, found several")
        if set(iterators) & moved:
            name = nest.free_buffer(f"{nest.buffer_name(access.buffer)}_pad")
            found[access.buffer] = _Padded(access.buffer, iterators, name, access.buffer in written)
    return sorted(found.values(), key=lambda p: p.is_written)


def _iterator(nest: Nest, block: Block, access: Access, value: ir.Value, position: dict[ir.Value, int]) -> int:
    if value not in position:
        raise ScheduleError(f"expected {block} to access {nest.buffer_name(access.buffer)} by one iterator for each dimension")
    return position[value]


def _copy(nest: Nest, name: str, extents: Sequence[Size], inner: Sequence[Size], source: ir.Value, target: ir.Value) -> Block:
    """A block that copies elements within the `inner` extents and writes zeros elsewhere; it has no place yet."""
    block = nest.new_block(name, [PARALLEL] * len(extents), extents)
    element = source.type.element_type
    with ir.InsertionPoint(block.body):
        at, inside = list(block.body.arguments), []
        for i, (var, limit, extent) in enumerate(zip(block.vars, inner, extents, strict=True)):
            if limit != extent:
                inside.append(emit.compare("ult", var.value, emit.index_constant(limit)))
                at[i] = write(smallest(Index.of(var), Index(maximum(limit - 1, 0))))  # of no elements none is read
        found = emit.create("memref.load", [element], [source, *at])
        if inside:
            found = emit.select(emit.all_of(inside), found, emit.zero(element))
        emit.create("memref.store", [], [found, target, *block.body.arguments])
    return block
