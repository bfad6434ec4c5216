"""What a function of blocks and loops holds, by name. Primitives look their operations up so: names stay when operations are rebuilt."""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import func, ir, scf
from relayc.dialects.relay.attributes import read_size_attribute
from relayc.dialects.tir import names
from relayc.dialects.tir.block import block_name
from relayc.pipelines.blocks.indices import Reader
from relayc.pipelines.blocks.views import (
    COMPUTATIONS,
    Block,
    Guard,
    Loop,
    body_point,
    drop,
    is_statement,
    move_body,
    operations_in,
    replace_points,
)
from relayc.pipelines.kernel.index import Index
from relayc.pipelines.sizes import function_sizes, symbol_positions
from relayc.pipelines.tir import emit
from relayc.symbolic import Size, symbol


class Nest:
    """A function of blocks and loops: its buffers, loops and blocks by name."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.sizes: dict[ir.Value, Size] = {
            function.regions[0].blocks[0].arguments[i]: symbol(name) for name, i in symbol_positions(function).items()
        }
        self._contents: _Contents | None = None
        """What there is by name; only outside of `editing`, where nothing changes."""
        self._is_edited = False

    @property
    def entry(self) -> ir.Block:
        return self.function.regions[0].blocks[0]

    @property
    def name(self) -> str:
        return ir.StringAttr(self.function.attributes["sym_name"]).value

    @contextmanager
    def editing(self) -> Iterator[None]:
        """In it operations may be built: constants stand at the start of the function, each once, and symbols have their values."""
        self._contents, self._is_edited = None, True
        try:
            with self.function.context, ir.Location.unknown():
                with emit.constants_at(self.entry, reuse=True), function_sizes(self.function):
                    yield
                self._sweep()
        finally:
            self._is_edited = False

    def _sweep(self) -> None:
        """Erases computations and constants at the start of the function that nothing uses."""
        for op in reversed(operations_in(self.entry)):
            if op.name.startswith(COMPUTATIONS) and next(iter(op.results[0].uses), None) is None:
                op.erase()

    def _found(self) -> "_Contents":
        if self._contents is not None:
            return self._contents
        found = _Contents({}, {}, {})
        self._find(self.entry, found)
        if not self._is_edited:
            self._contents = found
        return found

    def _find(self, block: ir.Block, found: "_Contents") -> None:
        """Notes what a block of operations holds."""
        for view in block.operations:
            op = view.operation
            name = op.name
            if name == "scf.for":
                if names.LOOP in op.attributes:
                    loop = self.loop_view(op)
                    found.loops[loop.name] = loop
                self._find(op.regions[0].blocks[0], found)
            elif name == "tir.block":
                made = self.block_view(op)
                found.blocks[made.name] = made
                for region in op.regions:
                    for inner in region.blocks:
                        self._find(inner, found)
            elif name == "memref.alloc":
                found.allocations[ir.StringAttr(op.attributes[names.BUFFER]).value] = op.results[0]

    def loop_view(self, operation: ir.Operation) -> Loop:
        if self._contents is not None and names.LOOP in operation.attributes:
            return self._contents.loops[ir.StringAttr(operation.attributes[names.LOOP]).value]
        return Loop(operation, self.sizes)

    def block_view(self, operation: ir.Operation) -> Block:
        return Block(operation, self.sizes) if self._contents is None else self._contents.blocks[block_name(operation)]

    def remembered(self, key: tuple, make: Callable[[], Any]) -> Any:
        """What `make` gives, which is computed of the function as it stands: once, until it is edited."""
        if self._contents is None:
            return make()
        if key not in self._contents.remembered:
            self._contents.remembered[key] = make()
        return self._contents.remembered[key]

    def loops(self) -> dict[str, Loop]:
        """The loops by name, outer ones first, in the order of the text."""
        return dict(self._found().loops)

    def blocks(self) -> dict[str, Block]:
        """The blocks by name, in the order of the text; of a block in a block also the inner ones."""
        return dict(self._found().blocks)

    def buffers(self) -> dict[str, ir.Value]:
        """The buffers by name: arguments, then allocations in the order of the text."""
        return self._arguments | self._found().allocations

    @cached_property
    def _arguments(self) -> dict[str, ir.Value]:
        """The buffers that are arguments, by name."""
        described = zip(self.entry.arguments, value_attributes(self.function), strict=True)
        return {ir.StringAttr(given[names.BUFFER]).value: value for value, given in described if names.BUFFER in given}

    def buffer_name(self, buffer: ir.Value) -> str:
        """The name of a buffer."""
        owner = buffer.owner
        if not isinstance(owner, ir.Block):
            return ir.StringAttr(owner.operation.attributes[names.BUFFER]).value
        return next((name for name, value in self._arguments.items() if value == buffer), "?")

    def shape(self, buffer: ir.Value) -> tuple[Size, ...]:
        """The shape of a buffer."""
        owner = buffer.owner
        if isinstance(owner, ir.Block):
            attributes = value_attributes(self.function)[ir.BlockArgument(buffer).arg_number]
            if names.SHAPE in attributes:
                return tuple(map(read_size_attribute, ir.ArrayAttr(attributes[names.SHAPE])))
            return tuple(buffer.type.shape)
        given = iter(owner.operation.operands)
        reader = Reader({}, self.sizes)
        dynamic = ir.ShapedType.get_dynamic_size()
        return tuple(reader.size(next(given)) if d == dynamic else d for d in buffer.type.shape)

    def scope(self, buffer: ir.Value) -> str:
        """Where a buffer lies: "global" for arguments."""
        owner = buffer.owner
        if isinstance(owner, ir.Block) or names.SCOPE not in owner.operation.attributes:
            return "global"
        return ir.StringAttr(owner.operation.attributes[names.SCOPE]).value

    def is_output(self, buffer: ir.Value) -> bool:
        owner = buffer.owner
        return isinstance(owner, ir.Block) and names.OUTPUT in value_attributes(self.function)[ir.BlockArgument(buffer).arg_number]

    # ---- places

    def loops_around(self, operation: ir.Operation) -> list[Loop]:
        """The loops around a block or loop, outermost first; of what is in a block those in the same block."""
        found = []
        parent = operation.parent
        while parent is not None and parent.operation.name not in ("func.func", "tir.block"):
            if parent.operation.name == "scf.for":
                found.append(self.loop_view(parent.operation))
            parent = parent.operation.parent
        return found[::-1]

    def blocks_in(self, operation: ir.Operation) -> list[Block]:
        """The outermost blocks inside of a loop, in order; a block itself."""
        if operation.name == "tir.block":
            return [self.block_view(operation)]
        found: list[Block] = []
        for op in operations_in(operation.regions[0].blocks[0]):
            if op.name in ("scf.for", "tir.block"):
                found += self.blocks_in(op)
        return found

    def at_root(self) -> list[ir.Operation]:
        """Loops, blocks and allocations of the function itself."""
        return [op for op in operations_in(self.entry) if is_statement(op)]

    def readers(self, buffer: ir.Value) -> list[Block]:
        """The outermost blocks that read a buffer, in order, without those that only read what they write themselves."""
        return [b for b in self.outer_blocks() if buffer in b.inputs()]

    def writers(self, buffer: ir.Value) -> list[Block]:
        """The outermost blocks that write a buffer, in order."""
        return [b for b in self.outer_blocks() if any(a.buffer == buffer for a in b.stores(with_init=True))]

    def outer_blocks(self) -> list[Block]:
        """The blocks that are in no other block, in the order of the text."""
        return [b for op in self.at_root() if op.name != "memref.alloc" for b in self.blocks_in(op)]

    # ---- names

    def free_loop(self, name: str) -> str:
        """A name that no loop has yet: the name itself, or with a number behind."""
        return _free(name, self.loops())

    def free_block(self, name: str) -> str:
        """A name that no block has yet."""
        return _free(name, self.blocks())

    def free_buffer(self, name: str) -> str:
        """A name that no buffer has yet."""
        return _free(name, self.buffers())

    # ---- building

    def make_loop(self, name: str, extent: Size, kind: str = names.Kind.SERIAL) -> Loop:
        """A loop without a body at the ambient insertion point; its name must be free."""
        bounds = [emit.index_constant(0), emit.index_constant(extent), emit.index_constant(1)]
        operation = scf.ForOp(*bounds).operation
        operation.attributes[names.LOOP] = ir.StringAttr.get(name)
        with ir.InsertionPoint(operation.regions[0].blocks[0]):
            scf.YieldOp([])
        made = self.loop_view(operation)
        made.set_kind(kind)
        return made

    def make_loops(self, wanted: Sequence[tuple[str, Size]]) -> list[Loop]:
        """Nested loops at the ambient insertion point, the outermost first, whose names may get a number."""
        made: list[Loop] = []
        place = ir.InsertionPoint.current
        taken = set(self._found().loops)
        for name, extent in wanted:
            free = _free(name, taken)
            taken.add(free)
            with place:
                made.append(self.make_loop(free, extent))
            place = body_point(made[-1])
        return made

    def replace_loop(self, old: Loop, value: Index, inner: Loop, guards: Sequence[Guard] = ()) -> None:
        """Moves what is in a loop to the end of another, where its variable is `value`, and erases the loop.

        Args:
          guards: further guards of the blocks in it.
        """
        move_body(old, inner)
        for block in self.blocks_in(inner.operation):
            replace_points(block, [*self.loops_around(block.operation), old], {old.var: value}, guards)
        drop(old.operation)


@dataclass(frozen=True)
class _Contents:
    """What a function holds, by name."""

    loops: dict[str, Loop]
    blocks: dict[str, Block]
    allocations: dict[str, ir.Value]
    remembered: dict[tuple, Any] = field(default_factory=dict)


def _free(name: str, taken: Container[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}" if name[-1].isdigit() else f"{name}{number}"
    return found


def make_buffer(name: str, shape: Sequence[Size], element: ir.Type, scope: str = "global") -> ir.Value:
    """An allocation at the ambient insertion point."""
    dynamic = [emit.index_constant(d) for d in shape if not isinstance(d, int)]
    type_ = memref_type(shape, element)
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(dynamic), 0]),
        names.BUFFER: ir.StringAttr.get(name),
    }
    if scope != "global":
        attributes[names.SCOPE] = ir.StringAttr.get(scope)
    return emit.create("memref.alloc", [type_], dynamic, attributes)


def memref_type(shape: Sequence[Size], element: ir.Type) -> ir.MemRefType:
    """The type of a buffer of a shape, whose sizes may be expressions."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.MemRefType.get([d if isinstance(d, int) else dynamic for d in shape], element)
