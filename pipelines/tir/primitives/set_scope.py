"""set_scope: sets the memory scope of a buffer."""

from relayc.dialects.mlir import ir
from relayc.dialects.tir import names
from relayc.pipelines.tir.editing import bodies, moving
from relayc.pipelines.tir.primitives.registry import find_block, primitive
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


@primitive
def set_scope(nest: Nest, block: str, buffer_index: int | str, storage_scope: str) -> None:
    """Sets the memory scope of a buffer that a block writes; arguments of the function cannot be moved."""
    moving.check_scope(storage_scope)
    buffer = bodies.find_buffer(nest, find_block(nest, block), "write", buffer_index)
    if isinstance(buffer.owner, ir.Block):
        raise ScheduleError(f"block {block}: expected a buffer inside of @{nest.name}, found its argument {nest.buffer_name(buffer)}")
    attributes = buffer.owner.operation.attributes
    if storage_scope != "global":
        attributes[names.SCOPE] = ir.StringAttr.get(storage_scope, nest.head.context)
    elif names.SCOPE in attributes:
        del attributes[names.SCOPE]
