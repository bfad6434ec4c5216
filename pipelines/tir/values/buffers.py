"""Buffers: flat views of tensors and workspaces, memory on the stack of a thread."""

from collections.abc import Sequence
from math import prod
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.operations import element_bytes
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.te.read.graph import NotStructured
from relayc.symbolic import Dim, Size

LINE = 64
"""Bytes of a cache line, and of the widest vector: the alignment of memory that kernels allocate."""


def buffer_type(shape: Sequence[Size], element: ir.Type) -> ir.MemRefType:
    """The memref in which functions pass a tensor: flat if it is empty (MLIR passes a bare pointer only then), or if its size is an
    expression."""
    if any(isinstance(d, Dim) for d in shape):
        return ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], element)
    return ir.MemRefType.get([0] if 0 in shape else list(shape), element)


def flat(buffer: ir.Value) -> ir.Value:
    """A static identity-layout memref as one dimension."""
    type_ = buffer.type
    if type_.rank == 1:  # also of a symbolic size
        return buffer
    target = ir.MemRefType.get([prod(type_.shape)], type_.element_type)
    if type_.rank == 0:
        attributes: dict[str, Any] = {"reassociation": ir.ArrayAttr.get([]), "static_output_shape": ir.DenseI64ArrayAttr.get([1])}
        return emit.create("memref.expand_shape", [target], [buffer], attributes)
    i64 = ir.IntegerType.get_signless(64)
    together = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in range(type_.rank)])])
    return emit.create("memref.collapse_shape", [target], [buffer], {"reassociation": together})


def view(memory: ir.Value, first_byte: Size | Index, count: Size, element: ir.Type) -> ir.Value:
    """`count` elements of a memref of bytes, as a flat buffer."""
    operands = [memory, emit.materialize(Index.of(first_byte))]
    if isinstance(count, int):
        return emit.create("memref.view", [ir.MemRefType.get([count], element)], operands)
    return emit.create(
        "memref.view", [ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], element)], [*operands, emit.index_constant(count)]
    )


MOST_LOCAL_BYTES = 1 << 20
"""Limit of a buffer on the stack: a quarter of the stack of a thread of libiomp5."""


def local_buffer(shape: int | Sequence[int], element: ir.Type) -> ir.Value:
    """A buffer (flat if `shape` is a number) on the stack, aligned to a cache line: one per thread in the body of a parallel loop.

    Raises NotStructured if it exceeds the limit: the strategy is not meant for such shapes.
    """
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
        "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE),
    }
    extents = [shape] if isinstance(shape, int) else list(shape)
    if prod(extents) * element_bytes(element) > MOST_LOCAL_BYTES:
        raise NotStructured(f"a buffer of {extents} elements on the stack")
    return emit.create("memref.alloca", [ir.MemRefType.get(extents, element)], [], attributes)


def buffer_of_thread(shape: int | Sequence[int], element: ir.Type) -> ir.Value:
    """A buffer on the stack, allocated once at the start of the innermost enclosing parallel loop body, or of the function; see
    local_buffer."""
    block = ir.InsertionPoint.current.block
    while block.owner.operation.name not in ("scf.parallel", "func.func"):
        block = block.owner.operation.block
    with ir.InsertionPoint.at_block_begin(block):
        return local_buffer(shape, element)


def prefetch(buffer: ir.Value, index: Index, level: int = 2) -> None:
    """Prefetches the cache line of an element of a flat buffer, which may be beyond its end, into the cache of a level (1 to 3)."""
    attributes = {
        "isWrite": ir.BoolAttr.get(False),
        "localityHint": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4 - level),
        "isDataCache": ir.BoolAttr.get(True),
    }
    if buffer.type.has_static_shape:
        index = emit.at_most(index, buffer.type.shape[0] - 1)
    emit.create("memref.prefetch", [], [buffer, emit.materialize(index)], attributes)
