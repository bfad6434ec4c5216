"""A function of blocks and loops without its tree: its values, and its buffers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.size_attribute import read_size_attribute
from relayc.dialects.tir import names
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.sizes import SizeValues, sizes_in, symbol_positions
from relayc.pipelines.tir.tree.buffers import allocation_name
from relayc.pipelines.tir.tree.indices import Reader
from relayc.symbolic import Size, symbol


class Function:
    """A function of blocks and loops.

    Args:
      sizes: the values of the function that hold sizes, if they are not its symbols.

    Attributes:
      head: the operation; its body may lack changes that are not written yet.
      arguments: its buffers that are arguments, by name; outputs: those that are results, in order.
      allocations: its other buffers, by name.
      edits: counts the changes of its tree and of the contents of its blocks.
    """

    def __init__(self, function: func.FuncOp, sizes: Mapping[ir.Value, Size] | None = None) -> None:
        self.head = function
        self.entry: ir.Block = function.regions[0].blocks[0]
        self.sizes = sizes or {self.entry.arguments[i]: symbol(name) for name, i in symbol_positions(function).items()}
        self.allocations: dict[str, ir.Value] = {}
        self._is_building = False
        self.edits = 0
        described = list(zip(self.entry.arguments, value_attributes(function), strict=True))
        self.arguments: dict[str, ir.Value] = {
            ir.StringAttr(given[names.BUFFER]).value: value for value, given in described if names.BUFFER in given
        }
        self._names: dict[ir.Value, str] = {value: name for name, value in self.arguments.items()}
        self._shapes: dict[ir.Value, tuple[Size, ...]] = {}
        self.outputs: list[ir.Value] = [value for value, given in described if names.OUTPUT in given]

    @property
    def name(self) -> str:
        return ir.StringAttr(self.head.attributes["sym_name"]).value

    # ---- building operations

    @contextmanager
    def building(self) -> Iterator[None]:
        """Context in which operations may be built: each constant once at the start of the function, symbols with their values."""
        if self._is_building:
            yield
            return
        self._is_building = True
        symbols = {str(size): value for value, size in self.sizes.items()}
        constants = emit.constants_at(emit.Constants(self.entry, reuse=True))
        sizes = sizes_in(SizeValues(self.entry, symbols)) if symbols else nullcontext()
        try:
            with self.head.context, ir.Location.unknown(), constants, sizes:
                yield
        finally:
            self._is_building = False

    # ---- buffers

    def buffers(self) -> dict[str, ir.Value]:
        """The buffers by name: arguments, then allocations in the order of the text."""
        return self.arguments | self.allocations

    def buffer_name(self, buffer: ir.Value) -> str:
        """The name of a buffer."""
        if buffer not in self._names:
            owner = buffer.owner
            self._names[buffer] = "?" if isinstance(owner, ir.Block) else allocation_name(owner.operation)
        return self._names[buffer]

    def forget_shape(self, buffer: ir.Value) -> None:
        """Records that the shape of a buffer changes."""
        self._shapes.pop(buffer, None)

    def erase_allocation(self, buffer: ir.Value) -> None:
        """Erases an allocation, which is in no list of members any more."""
        self._names.pop(buffer, None)
        self.forget_shape(buffer)
        buffer.owner.operation.erase()

    def shape(self, buffer: ir.Value) -> tuple[Size, ...]:
        """The shape of a buffer."""
        if buffer not in self._shapes:
            self._shapes[buffer] = self._read_shape(buffer)
        return self._shapes[buffer]

    def _read_shape(self, buffer: ir.Value) -> tuple[Size, ...]:
        owner = buffer.owner
        if isinstance(owner, ir.Block):
            attributes = value_attributes(self.head)[ir.BlockArgument(buffer).arg_number]
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
