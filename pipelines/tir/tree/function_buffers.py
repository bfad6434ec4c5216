"""The buffers of a function of blocks and loops: their names, shapes and memory scopes, and which of them are results."""

from relayc.dialects.mlir import ir
from relayc.dialects.size_attribute import read_size_attribute
from relayc.dialects.tir import names
from relayc.pipelines.tir.tree.buffers import allocation_name
from relayc.pipelines.tir.tree.indices import Reader
from relayc.pipelines.tir.tree.state import FunctionState
from relayc.symbolic import Size


class FunctionBuffers(FunctionState):
    """A function of blocks and loops, with the facts about its buffers."""

    def buffer_name(self, buffer: ir.Value) -> str:
        """The name of a buffer."""
        owner = buffer.owner
        if not isinstance(owner, ir.Block):
            return allocation_name(owner.operation)
        return next((name for name, value in self._arguments.items() if value == buffer), "?")

    def shape(self, buffer: ir.Value) -> tuple[Size, ...]:
        """The shape of a buffer."""
        return self.remembered(("shape", buffer), lambda: self._shape(buffer), True)

    def _shape(self, buffer: ir.Value) -> tuple[Size, ...]:
        owner = buffer.owner
        if isinstance(owner, ir.Block):
            attributes = self._argument_attributes[ir.BlockArgument(buffer).arg_number]
            if names.SHAPE in attributes:
                return tuple(map(read_size_attribute, ir.ArrayAttr(attributes[names.SHAPE])))
            return tuple(buffer.type.shape)
        given = iter(owner.operation.operands)
        reader = Reader({}, self.sizes)
        dynamic = ir.ShapedType.get_dynamic_size()
        return tuple(reader.size(next(given)) if d == dynamic else d for d in buffer.type.shape)

    def scope(self, buffer: ir.Value) -> str:
        """The memory scope of a buffer: "global" for arguments."""
        owner = buffer.owner
        if isinstance(owner, ir.Block) or names.SCOPE not in owner.operation.attributes:
            return "global"
        return ir.StringAttr(owner.operation.attributes[names.SCOPE]).value

    def is_output(self, buffer: ir.Value) -> bool:
        return buffer in self.outputs

    @property
    def outputs(self) -> list[ir.Value]:
        """The arguments that are results, in order."""
        return self.remembered(("outputs",), self._outputs, True)

    def _outputs(self) -> list[ir.Value]:
        return [a for a, given in zip(self.entry.arguments, self._argument_attributes, strict=True) if names.OUTPUT in given]
