"""pad_einsum: pads the extents of a sum of products to multiples of numbers, and its buffers to padded copies."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import PARALLEL
from relayc.pipelines.emission.emit import predicate_of
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.analysis.dependence import loops_of_iterators
from relayc.pipelines.tir.analysis.reducers import find_reducer
from relayc.pipelines.tir.editing.bodies import check_plain, set_buffer
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.indices import smallest
from relayc.pipelines.tir.tree.members import Block, Loop, ScheduleError
from relayc.pipelines.tir.tree.steps import Access, Recorder, constant_of
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
    old = found.extents
    extents = [ceil_div(e, p) * p for e, p in zip(old, padding, strict=True)]
    moved = {i for i, (a, b) in enumerate(zip(extents, old, strict=True)) if a != b}
    _check_sum(found, moved)
    padded = _padded(nest, found, moved)
    names = [nest.free_block(p.name) for p in padded]
    first = nest.inside[0]
    with found.operation.location:
        found.set_extents(extents)
        copies = [nest.add_buffer(p.name, [extents[i] for i in p.iterators], p.buffer.type.element_type, before=first) for p in padded]
        for p, copy, name in zip(padded, copies, names, strict=True):
            for access in found.accesses():
                if access.buffer == p.buffer:
                    set_buffer(found, access, copy)
            inner = [old[i] for i in p.iterators]
            whole = inner if p.is_written else [extents[i] for i in p.iterators]
            made = _copy(nest, name, whole, inner, *((copy, p.buffer) if p.is_written else (p.buffer, copy)))
            around = nest.new_loops([(loops[i].name, e) for i, e in zip(p.iterators, whole, strict=True)], made.operation.location)
            nest.insert(made, around, [Index.of(loop.var) for loop in around], [], found.around[0], behind=p.is_written)
        for loop, extent in zip(loops, extents, strict=True):
            loop.extent, loop.var.high = extent, extent - 1
        nest.changed()
    return names


def _checked(block: Block, padding: Sequence[int]) -> list[Loop]:
    """The loops around a block, one for each iterator, in the order of the iterators."""
    if len(padding) != len(block.iterators) or any(not isinstance(p, int) or p < 1 for p in padding):
        raise ScheduleError(f"padding: expected {len(block.iterators)} numbers of 1 or more, one for each iterator, found {list(padding)}")
    check_plain(block)
    loops = [loop for loop in loops_of_iterators(block) if loop is not None]
    if not loops or len(loops) < len(block.iterators):
        raise ScheduleError(f"expected a loop for each iterator of {block}, found others")
    return loops


def _check_sum(block: Block, moved: set[int]) -> None:
    """Checks that padding with zeros does not change the result of a reduction whose extent grows."""
    if not moved & set(block.reduction):
        return
    reducer = find_reducer(block)
    for part in reducer.parts:
        product = reducer.steps[part.value].name if isinstance(part.value, int) else "none"
        is_sum = part.combiner in ("arith.addf", "arith.addi")
        if not is_sum or (part.operation.name != "math.fma" and product not in ("arith.mulf", "arith.muli")):
            raise ScheduleError(f"expected a sum of products, found {part.operation.name} of {product} in {block}")


def _padded(nest: Nest, block: Block, moved: set[int]) -> list[_Padded]:
    """The buffers that need padding: inputs, then outputs."""
    found: dict[ir.Value, _Padded] = {}
    written = set(block.outputs())
    position_of = {Index.of(v).key: i for i, v in enumerate(block.vars)}
    for access in block.accesses():
        iterators = [_iterator(nest, block, access, index, position_of) for index in access.indices]
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


def _iterator(nest: Nest, block: Block, access: Access, index: Index, position: dict[tuple, int]) -> int:
    if index.key not in position:
        raise ScheduleError(f"expected {block} to access {nest.buffer_name(access.buffer)} by one iterator for each dimension")
    return position[index.key]


def _copy(nest: Nest, name: str, extents: Sequence[Size], inner: Sequence[Size], source: ir.Value, target: ir.Value) -> Block:
    """A block that copies elements within the `inner` extents and writes zeros elsewhere; it has no place yet."""
    element, flag = source.type.element_type, ir.IntegerType.get_signless(1)

    def body(record: Recorder, at: Sequence[Index]) -> None:
        read, inside = list(at), []
        for i, (limit, extent) in enumerate(zip(inner, extents, strict=True)):
            if limit != extent:
                inside.append(record.make("arith.cmpi", flag, [at[i], Index(limit)], predicate_of("arith.cmpi", "ult")))
                read[i] = smallest(at[i], Index(maximum(limit - 1, 0)))  # of no elements none is read
        found = record.load(source, read)
        if inside:
            within = reduce(lambda a, b: record.make("arith.andi", flag, [a, b]), inside)
            found = record.make("arith.select", element, [within, found, constant_of(0, element)])
        record.store(found, target, at)

    return nest.new_block(name, [PARALLEL] * len(extents), extents, body)
