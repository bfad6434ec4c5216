"""What strategies have in common: what they give, and the function they emit into."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.mlir import func, ir
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.schedule.packing import Packing
from relayc.pipelines.tir import emit

Value = ir.Value


@dataclass
class Scheduled:
    """A kernel in tir.

    Attributes:
      packings: of its arguments, by position.
      workspace_bytes: scratch memory that it takes as its last argument.
      uses_tiles: whether it has operations on matrix tiles.
    """

    function: func.FuncOp
    packings: dict[int, Packing] = field(default_factory=dict)
    workspace_bytes: int = 0
    uses_tiles: bool = False


def is_param(kernel: Kernel, position: int) -> bool:
    """Whether an argument is a parameter at every call, so that it can be packed."""
    attributes = kernel.function.attributes
    return "arg_attrs" in attributes and "relay.param" in ir.DictAttr(ir.ArrayAttr(attributes["arg_attrs"])[position])


def flat(buffer: Value) -> Value:
    """A static identity-layout memref as one dimension."""
    type_ = buffer.type
    size = 1
    for extent in type_.shape:
        size *= extent
    target = ir.MemRefType.get([size], type_.element_type)
    if type_.rank == 1:
        return buffer
    groups = ir.ArrayAttr.get([])
    if type_.rank == 0:
        attributes: dict[str, Any] = {"reassociation": groups, "static_output_shape": ir.DenseI64ArrayAttr.get([1])}
        return emit.create("memref.expand_shape", [target], [buffer], attributes)
    i64 = ir.IntegerType.get_signless(64)
    groups = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in range(type_.rank)])])
    return emit.create("memref.collapse_shape", [target], [buffer], {"reassociation": groups})


def buffer_type(shape: Sequence[int], element: ir.Type) -> ir.MemRefType:
    """The memref in which functions pass a tensor: flat where it has no elements (MLIR passes only then a bare pointer)."""
    return ir.MemRefType.get([0] if 0 in shape else list(shape), element)


def begin_function(kernel: Kernel, packings: dict[int, Packing], workspace_bytes: int = 0) -> tuple[func.FuncOp, list[Value]]:
    """The tir function of a kernel, with an empty body: arguments (packed shapes), one destination per result, then the workspace."""
    types = [buffer_type(packings[i].shape if i in packings else node.shape, node.element) for i, node in enumerate(kernel.args)]
    types += [buffer_type(node.shape, node.element) for node in kernel.results]
    if workspace_bytes:
        types.append(ir.MemRefType.get([workspace_bytes], ir.IntegerType.get_signless(8)))
    function = func.FuncOp(kernel.name, (types, []), visibility="private")
    return function, list(function.add_entry_block().arguments)
