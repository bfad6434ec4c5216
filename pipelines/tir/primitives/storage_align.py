"""storage_align and storage_swizzle: place the lines of a shared buffer so that threads that access it together meet no bank twice."""

from collections.abc import Iterator, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.tir.editing import bodies
from relayc.pipelines.tir.gpu.swizzle import BANK_CHUNKS, CHUNK_BYTES
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.arguments import decode, encode
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest

ALIGN, SWIZZLE = "buffer_dim_align", "buffer_swizzle"
"""Annotations of a block: [position of the written buffer, dimension, factor, offset] for each aligned buffer, as in TVM, and [position of
the written buffer, dimension, bytes of a chunk] for each swizzled buffer."""


@primitive
def storage_align(nest: Nest, block: str, buffer_index: int | str, axis: int, factor: int, offset: int) -> None:
    """Makes the stride of a dimension a multiple of `factor` plus `offset`, in elements."""
    if not 0 <= offset < factor:
        raise ScheduleError(f"expected a factor of 1 or more and an offset below it, found {factor} and {offset}")
    _annotate(nest, block, buffer_index, axis, ALIGN, [factor, offset])


@primitive
def storage_swizzle(nest: Nest, block: str, buffer_index: int | str, axis: int, chunk_bytes: int = CHUNK_BYTES) -> None:
    """Permutes the chunks of the lines along the dimensions behind a dimension, by the number of the line."""
    most = BANK_CHUNKS // 2 * CHUNK_BYTES
    if not CHUNK_BYTES <= chunk_bytes <= most or chunk_bytes & (chunk_bytes - 1):
        raise ScheduleError(f"chunk_bytes: expected a power of two from {CHUNK_BYTES} to {most}, found {chunk_bytes}")
    _annotate(nest, block, buffer_index, axis, SWIZZLE, [chunk_bytes])


def _annotate(nest: Nest, block: str, buffer_index: int | str, axis: int, annotation: str, values: Sequence[int]) -> None:
    """Sets numbers for a dimension of a shared buffer that a block writes. Raises ScheduleError for another buffer or dimension."""
    found = find_block(nest, block)
    buffer = bodies.find_buffer(nest, found, "write", buffer_index)
    label, rank = nest.buffer_name(buffer), buffer.type.rank
    if nest.scope(buffer) != "shared":
        raise ScheduleError(f"buffer {label}: expected a shared one, found scope {nest.scope(buffer)}")
    if not -rank <= axis < rank - 1 or axis == -1:
        raise ScheduleError(f"axis: expected a dimension of {label} before its last one, out of {rank}, found {axis}")
    position = found.outputs().index(buffer)
    kept = [one for one in _read(found.annotations, annotation) if one[:2] != [position, axis % rank]]
    found.annotations = {**found.annotations, annotation: encode([*kept, [position, axis % rank, *values]])}


def alignments(nest: Nest, buffer: ir.Value) -> dict[int, tuple[int, int]]:
    """The requested alignments of a buffer: (factor, offset) by dimension."""
    return {axis: (factor, offset) for axis, factor, offset in _of_buffer(nest, buffer, ALIGN)}


def swizzled(nest: Nest, buffer: ir.Value) -> tuple[int, int] | None:
    """The dimension behind which lie the lines of a swizzled buffer, and the bytes of a chunk; None for any other buffer."""
    return next(((axis, chunk_bytes) for axis, chunk_bytes in _of_buffer(nest, buffer, SWIZZLE)), None)


def _of_buffer(nest: Nest, buffer: ir.Value, annotation: str) -> Iterator[list[int]]:
    for block in nest.blocks().values():
        for position, *values in _read(block.annotations, annotation):
            if block.outputs()[position] == buffer:
                yield values


def _read(annotations: dict[str, ir.Attribute], annotation: str) -> list[list[int]]:
    return decode(annotations[annotation], lambda name: name) if annotation in annotations else []
