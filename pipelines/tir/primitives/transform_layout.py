"""transform_layout: changes the layout of a buffer."""

from collections.abc import Sequence

from relayc.dialects.discardable import PARAM
from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import ir
from relayc.dialects.size_attribute import size_attribute
from relayc.dialects.tir import names
from relayc.dialects.tir.block import PARALLEL
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.analysis.regions import Span
from relayc.pipelines.tir.editing import bodies, copies, moving
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.buffers import memref_type
from relayc.pipelines.tir.tree.layouts import composed, mapped, shape_in
from relayc.pipelines.tir.tree.members import Block, ScheduleError
from relayc.pipelines.tir.tree.steps import constant_of
from relayc.pipelines.tir.tree.structure import Nest, top_of
from relayc.symbolic import Dim, Size, product


@primitive
def transform_layout(
    nest: Nest, block: str, buffer: Sequence[str | int] | str, index_map: ir.AffineMap, pad_value: float | None = None
) -> list[str]:
    """Changes the layout of a buffer that a block accesses to an affine map, everywhere in the function.

    A parameter must be passed in the new layout: attributes of its argument specify it (tir.layout, tir.pad).

    Args:
      buffer: ["read", position or name], ["write", position or name], or a name.
      pad_value: of the elements that pad an extent which is not divided evenly; for a buffer of the function a block BUFFER_pad writes
        them, and is returned. Without it the padding is undefined.
    """
    found = _buffer(nest, find_block(nest, block), buffer)
    is_argument = isinstance(found.owner, ir.Block)
    shape, label = nest.shape(found), nest.buffer_name(found)
    wanted = shape_in(index_map, shape)
    uses = list(bodies.accesses_of(nest, found))
    bodies.check_changeable([b for b in nest.outer_blocks() if any(moving.contains(b, u) for u, _ in uses)])
    if is_argument:
        _check_parameter(nest, ir.BlockArgument(found).arg_number, label)
        made = found
        _change_argument(nest, ir.BlockArgument(found), index_map, wanted, pad_value)
    else:
        made = nest.new_buffer(label, wanted, found.type.element_type, nest.scope(found))
    bodies.reindex_accesses(uses, made, lambda access: mapped(index_map, access.indices))
    if not is_argument:
        nest.replace_buffer(found, made)
    nest.changed()
    if is_argument or pad_value is None or product(wanted) == product(shape):
        return []
    return [_fill(nest, made, f"{label}_pad", wanted, pad_value)]


def _buffer(nest: Nest, block: Block, buffer: Sequence[str | int] | str) -> ir.Value:
    if not isinstance(buffer, str):
        return bodies.find_buffer(nest, block, *copies.kind_of(buffer))
    written = buffer in map(nest.buffer_name, block.outputs())
    return bodies.find_buffer(nest, block, "write" if written else "read", buffer)


def _check_parameter(nest: Nest, number: int, label: str) -> None:
    attributes = value_attributes(nest.head)[number]
    if names.OUTPUT in attributes:
        raise ScheduleError(f"buffer {label}: expected a buffer of the function or a parameter, found an output: use cache_write first")
    if not PARAM.on(attributes):
        raise ScheduleError(f"buffer {label}: expected a buffer of the function or a parameter, found an argument: use cache_read first")


def _change_argument(nest: Nest, argument: ir.BlockArgument, layout: ir.AffineMap, shape: Sequence[Size], pad_value: float | None) -> None:
    """Changes the type of a parameter, and records its packing."""
    function, number = nest.head, argument.arg_number
    attributes = value_attributes(function)
    own = {a.name: a.attr for a in attributes[number]}
    if names.LAYOUT in own:
        layout = composed(layout, ir.AffineMapAttr(own[names.LAYOUT]).value)
    own[names.LAYOUT] = ir.AffineMapAttr.get(layout)
    if any(isinstance(d, Dim) for d in shape):
        own[names.SHAPE] = ir.ArrayAttr.get([size_attribute(d) for d in shape])
    if pad_value is not None:
        own[names.PAD] = ir.FloatAttr.get_f64(float(pad_value))
    nest.forget_shape(argument)
    argument.set_type(memref_type(shape, argument.type.element_type))
    function.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(own) if i == number else a for i, a in enumerate(attributes)])
    signature = ir.FunctionType.get([a.type for a in nest.entry.arguments], [])
    function.attributes["function_type"] = ir.TypeAttr.get(signature)


def _fill(nest: Nest, buffer: ir.Value, name: str, shape: Sequence[Size], value: float) -> str:
    """Adds a block that writes all elements of a buffer, before its first writer; returns its name."""
    first = moving.writers_of(nest.outer_blocks(), buffer)[0]
    element = buffer.type.element_type
    number = constant_of(float(value) if isinstance(element, ir.FloatType) else int(value), element)
    with first.operation.location:
        filled = nest.new_block(nest.free_block(name), [PARALLEL] * len(shape), shape, lambda record, at: record.store(number, buffer, at))
    moving.place(nest, filled, [Span(Index(), d) for d in shape], top_of(first), behind=False)
    return filled.name
