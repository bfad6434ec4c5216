"""Buffers of functions of blocks and loops."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.tir import names
from relayc.pipelines.emission import emit
from relayc.symbolic import Size

SCOPES = ("global", "shared", "warpgroup", "warp", "local")
"""Memory scopes of buffers; see Schedule.set_scope."""


def make_buffer(name: str, shape: Sequence[Size], element: ir.Type, scope: str) -> ir.Value:
    """Creates an allocation at the ambient insertion point."""
    dynamic = [emit.index_constant(d) for d in shape if not isinstance(d, int)]
    type_ = memref_type(shape, element)
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(dynamic), 0]),
        names.BUFFER: ir.StringAttr.get(name),
    }
    if scope != "global":
        attributes[names.SCOPE] = ir.StringAttr.get(scope)
    return emit.create("memref.alloc", [type_], dynamic, attributes)


def allocation_name(op: ir.OpView | ir.Operation) -> str:
    """The name of the buffer of an allocation."""
    return ir.StringAttr(op.attributes[names.BUFFER]).value


def memref_type(shape: Sequence[Size], element: ir.Type) -> ir.MemRefType:
    """The memref type of a shape, whose sizes may be expressions."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.MemRefType.get([d if isinstance(d, int) else dynamic for d in shape], element)
