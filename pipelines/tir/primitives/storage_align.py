"""storage_align: pads the lines of a shared buffer to avoid bank conflicts."""

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.editing import bodies
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.arguments import decode, encode
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest

ANNOTATION = "buffer_dim_align"
"""Annotation of a block: [position of the written buffer, dimension, factor, offset] for each aligned buffer, as in TVM."""


@primitive
def storage_align(nest: Nest, block: str, buffer_index: int | str, axis: int, factor: int, offset: int) -> None:
    """Makes the stride of a dimension a multiple of `factor` plus `offset`, in elements."""
    found = find_block(nest, block)
    buffer = bodies.find_buffer(nest, found, "write", buffer_index)
    label, rank = nest.buffer_name(buffer), buffer.type.rank
    if nest.scope(buffer) != "shared":
        raise ScheduleError(f"buffer {label}: expected a shared one, found scope {nest.scope(buffer)}")
    if not -rank <= axis < rank - 1 or axis == -1:
        raise ScheduleError(f"axis: expected a dimension of {label} before its last one, out of {rank}, found {axis}")
    if not 0 <= offset < factor:
        raise ScheduleError(f"expected a factor of 1 or more and an offset below it, found {factor} and {offset}")
    position = found.outputs().index(buffer)
    kept = [one for one in _alignments(found.annotations) if one[:2] != [position, axis % rank]]
    found.annotations = {**found.annotations, ANNOTATION: encode([*kept, [position, axis % rank, factor, offset]])}


def alignments(nest: Nest, buffer: ir.Value) -> dict[int, tuple[int, int]]:
    """The requested alignments of a buffer: (factor, offset) by dimension."""
    found = {}
    for block in nest.blocks().values():
        for position, axis, factor, offset in _alignments(block.annotations):
            if block.outputs()[position] == buffer:
                found[axis] = factor, offset
    return found


def _alignments(annotations: dict[str, ir.Attribute]) -> list[list[int]]:
    return decode(annotations[ANNOTATION], lambda name: name) if ANNOTATION in annotations else []
