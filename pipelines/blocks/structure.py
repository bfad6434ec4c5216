"""What a function of blocks and loops holds, by name. Primitives look their operations up so: names stay when operations are rebuilt."""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.relay.attributes import read_size_attribute
from relayc.dialects.tir import names
from relayc.dialects.tir.block import block_name
from relayc.pipelines.blocks.indices import Reader
from relayc.pipelines.blocks.views import (
    COMPUTATIONS,
    STATEMENTS,
    Block,
    Facts,
    Guard,
    Loop,
    Member,
    body_point,
    drop,
    is_statement,
    move_body,
    operations_in,
    replace_points,
)
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.sizes import SizeValues, sizes_in, symbol_positions
from relayc.pipelines.tir import emit
from relayc.symbolic import Size, symbol


class Nest:
    """A function of blocks and loops: its buffers, loops and blocks by name."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.entry: ir.Block = function.regions[0].blocks[0]
        self.facts = Facts({self.entry.arguments[i]: symbol(name) for name, i in symbol_positions(function).items()})
        self._contents = _Contents()
        """What there is by name; while the function is edited what is left of that before."""
        self._is_current = False
        self._stays_current = False
        """Whether `_contents` is kept up while the function is edited (see `replaced` and `removed`)."""
        self._changed: Collection[str] = ()
        """Blocks of `_contents` that are others now."""
        self._taken: dict[str, set[str]] | None = None
        """Names of loops, blocks and buffers, while the function is edited."""
        self._constants: emit.Constants | None = None
        """Those at the start of the function, where nothing else is computed there."""

    @property
    def name(self) -> str:
        return ir.StringAttr(self.function.attributes["sym_name"]).value

    @property
    def sizes(self) -> Mapping[ir.Value, Size]:
        """The values of the function that are sizes: its symbols."""
        return self.facts.sizes

    @sizes.setter
    def sizes(self, sizes: Mapping[ir.Value, Size]) -> None:
        self.facts = Facts(sizes)
        self._contents, self._is_current = _Contents(), False

    @contextmanager
    def editing(self, bodies: Collection[str] | None = None) -> Iterator[None]:
        """In it operations may be built: constants stand at the start of the function, each once, and symbols have their values.

        Args:
          bodies: names of the blocks whose accesses change, or that are made anew; None where extents change too, of blocks or of loops.
            What is known of others stays.
        """
        before = self._found()
        self._taken = {"loop": set(before.loops), "block": set(before.blocks), "buffer": {*self._arguments, *before.allocations}}
        self._is_current = self._stays_current = False
        before.remembered.clear()
        if bodies is None:
            self._contents = _Contents()
        self._changed = () if bodies is None else bodies
        self.facts.begin(bodies)
        symbols = {str(size): value for value, size in self.sizes.items()}
        try:
            with self.function.context, ir.Location.unknown():
                constants = self._constants or emit.Constants(self.entry, reuse=True)
                with emit.constants_at(constants), sizes_in(SizeValues(self.entry, symbols)) if symbols else nullcontext():
                    yield
                self._sweep(constants)
            if self._stays_current:
                self._is_current, self._changed = True, ()
        finally:
            self.facts.end()
            self._taken = None

    def _sweep(self, constants: emit.Constants) -> None:
        """Erases computations and constants at the start of the function that nothing uses."""
        if constants.is_alone and not self.sizes:
            constants.sweep()
            self._constants = constants
            return
        for op in reversed(operations_in(self.entry)):
            if op.name.startswith(COMPUTATIONS) and next(iter(op.results[0].uses), None) is None:
                op.erase()

    def _found(self) -> "_Contents":
        """What there is; while the function is edited it is looked for each time."""
        if self._is_current:
            return self._contents
        found = _Contents()
        stack: list[tuple[ir.Operation, tuple[Loop, ...], list[Member]]] = [(self.function.operation, (), found.inside)]

        def visit(op: ir.Operation) -> ir.WalkResult:
            name = op.name
            if name not in STATEMENTS:
                return ir.WalkResult.ADVANCE
            parent = op.parent
            while len(stack) > 1 and stack[-1][0] != parent:
                stack.pop()
            _, around, beside = stack[-1]
            if name == "memref.alloc":
                found.allocations[ir.StringAttr(op.attributes[names.BUFFER]).value] = op.results[0]
                beside.append(op)
                return ir.WalkResult.ADVANCE
            if name == "tir.block":
                block = self.block_view(op)
                block.around, block.inside = around, []
                found.blocks[block.name] = block
                beside.append(block)
                stack.append((op, (), block.inside))
                return ir.WalkResult.SKIP if self.facts.is_plain(block.name) else ir.WalkResult.ADVANCE
            loop = self.loop_view(op)
            loop.around, loop.inside = around, []
            if names.LOOP in op.attributes:
                found.loops[loop.name] = loop
            beside.append(loop)
            stack.append((op, (*around, loop), loop.inside))
            return ir.WalkResult.ADVANCE

        self.function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        if self._taken is None:
            self._contents, self._is_current, self._changed = found, True, ()
            self.facts.keep(found.blocks)
        return found

    # ---- what stays known

    def replaced(self, old: list[Loop], new: list[Loop]) -> None:
        """Says, while the function is edited, that other loops, one inside the other, take the place of such loops.

        Nothing else may change then but the points of blocks.
        """
        found, outer = self._contents, old[0].around
        beside: list[Member] = outer[-1].inside if outer else found.scope_of(old[0])
        beside[beside.index(old[0])] = new[0]
        inside = old[-1].inside
        for i, loop in enumerate(new):
            loop.around = (*outer, *new[:i])
            loop.inside = [new[i + 1]] if i + 1 < len(new) else inside
        _set_around(inside, (*outer, *new))
        loops = list(found.loops.items())
        gone, made = {loop.name for loop in old}, {loop.name: loop for loop in new}
        found.loops.clear()
        for name, loop in loops:
            if name == old[0].name:
                found.loops.update(made)
            elif name not in gone and name not in made:
                found.loops[name] = loop
        self._stays_current = True

    def removed(self, block: Block, buffer: ir.Value) -> None:
        """Says, while the function is edited, that a block and an allocation go, with the loops around the block that then are empty.

        Nothing else may change then but the bodies of the blocks that `editing` was told.
        """
        found = self._contents
        del found.blocks[block.name]
        self.facts.forget(block.name)
        gone: Loop | Block = block
        for loop in reversed(block.around):
            loop.inside.remove(gone)
            if loop.inside:
                break
            gone = loop
            del found.loops[loop.name]
        else:
            found.scope_of(gone).remove(gone)
        alloc = buffer.owner.operation
        found.inside.remove(next(m for m in found.inside if not isinstance(m, (Loop, Block)) and m == alloc))
        del found.allocations[ir.StringAttr(alloc.attributes[names.BUFFER]).value]
        self._stays_current = True

    def added(self, loops: list[Loop], block: ir.Operation) -> None:
        """Says, while the function is edited, that a block in loops, one inside the other, was added at the end of the function.

        Nothing else may change then but allocations that `add_buffer` adds.
        """
        view = Block(block, self.facts)
        self._contents.blocks[view.name] = view
        self._contents.inside.append(loops[0] if loops else view)
        for i, loop in enumerate(loops):
            loop.around, loop.inside = tuple(loops[:i]), [loops[i + 1] if i + 1 < len(loops) else view]
        view.around = tuple(loops)
        self._stays_current = True

    def release(self, loops: Collection[str]) -> None:
        """Gives the names of loops that are gone to those that will be made."""
        assert self._taken is not None
        self._taken["loop"] -= set(loops)

    def add_buffer(self, name: str, shape: Sequence[Size], element: ir.Type) -> ir.Value:
        """An allocation at the end of the function, which is the ambient insertion point (see `added`)."""
        made = make_buffer(name, shape, element)
        self._contents.allocations[name] = made
        self._contents.inside.append(made.owner.operation)
        return made

    # ---- views

    def loop_view(self, operation: ir.Operation) -> Loop:
        """The view of a loop: the same for as long as it is there."""
        attributes = operation.attributes
        known = self._contents.loops.get(ir.StringAttr(attributes[names.LOOP]).value) if names.LOOP in attributes else None
        return known if known is not None and known.operation == operation else Loop(operation, self.facts)

    def block_view(self, operation: ir.Operation) -> Block:
        """The view of a block: the same for as long as it stays what it is."""
        name = block_name(operation)
        known = self._contents.blocks.get(name) if name not in self._changed else None
        return known if known is not None and known.operation == operation else Block(operation, self.facts)

    def remembered(self, key: tuple, make: Callable[[], Any]) -> Any:
        """What `make` gives, which is computed of the function as it stands: once, until it is edited."""
        if not self._is_current:
            return make()
        known = self._contents.remembered
        if key not in known:
            known[key] = make()
        return known[key]

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
        if self._is_current:
            return list(self._view(operation).around)
        found = []
        parent = operation.parent
        while parent is not None and parent.name not in ("func.func", "tir.block"):
            if parent.name == "scf.for":
                found.append(self.loop_view(parent))
            parent = parent.parent
        return found[::-1]

    def members(self, operation: ir.Operation) -> list[ir.Operation]:
        """Loops, blocks and allocations directly in a loop, a block or the function."""
        if self._is_current:
            return [member.operation for member in self._inside(operation)]
        return [op for region in operation.regions for block in region.blocks for op in operations_in(block) if is_statement(op)]

    def blocks_in(self, operation: ir.Operation) -> list[Block]:
        """The outermost blocks inside of a loop, in order; a block itself."""
        if operation.name == "tir.block":
            return [self.block_view(operation)]
        if self._is_current:
            return _blocks_of(self._inside(operation))
        return [block for op in self.members(operation) if op.name != "memref.alloc" for block in self.blocks_in(op)]

    def _view(self, operation: ir.Operation) -> Loop | Block:
        return self.block_view(operation) if operation.name == "tir.block" else self.loop_view(operation)

    def _inside(self, operation: ir.Operation) -> "list[Member]":
        return self._contents.inside if operation.name == "func.func" else self._view(operation).inside

    def at_root(self) -> list[ir.Operation]:
        """Loops, blocks and allocations of the function itself."""
        return self.members(self.function.operation)

    def readers(self, buffer: ir.Value) -> list[Block]:
        """The outermost blocks that read a buffer, in order, without those that only read what they write themselves."""
        return [b for b in self.outer_blocks() if buffer in b.inputs()]

    def writers(self, buffer: ir.Value) -> list[Block]:
        """The outermost blocks that write a buffer, in order."""
        return [b for b in self.outer_blocks() if any(a.buffer == buffer for a in b.stores(with_init=True))]

    def outer_blocks(self) -> list[Block]:
        """The blocks that are in no other block, in the order of the text."""
        return self.blocks_in(self.function.operation)

    # ---- names

    def free_loop(self, name: str) -> str:
        """A name that no loop has: the name itself, or with a number behind. While the function is edited it is taken from then on."""
        return self._free("loop", name, self.loops)

    def free_block(self, name: str) -> str:
        """A name that no block has (see free_loop)."""
        return self._free("block", name, self.blocks)

    def free_buffer(self, name: str) -> str:
        """A name that no buffer has (see free_loop)."""
        return self._free("buffer", name, self.buffers)

    def _free(self, kind: str, name: str, known: Callable[[], Container[str]]) -> str:
        if self._taken is None:
            return _free(name, known())
        found = _free(name, self._taken[kind])
        self._taken[kind].add(found)
        return found

    # ---- building

    def make_loop(self, name: str, extent: Size, kind: str = names.Kind.SERIAL) -> Loop:
        """A loop without a body at the ambient insertion point; its name must be free."""
        bounds = [emit.index_constant(0), emit.index_constant(extent), emit.index_constant(1)]
        operation = emit.serial_loop(bounds, attributes={names.LOOP: ir.StringAttr.get(name)})
        made = self._contents.loops[name] = Loop(operation, self.facts, name, extent)
        emit.yield_values([], ir.InsertionPoint(made.body))
        if kind != names.Kind.SERIAL:
            made.set_kind(kind)
        return made

    def make_loops(self, wanted: Sequence[tuple[str, Size]]) -> list[Loop]:
        """Nested loops at the ambient insertion point, the outermost first, whose names may get a number."""
        made: list[Loop] = []
        place = ir.InsertionPoint.current
        for name, extent in wanted:
            with place:
                made.append(self.make_loop(self.free_loop(name), extent))
            place = body_point(made[-1])
        return made

    def replace_loops(self, old: list[Loop], new: list[Loop], point: Mapping[Var, Index], guards: Sequence[Guard] = ()) -> None:
        """Puts new loops, one inside the other, in the place of such loops, of which each holds nothing but the next.

        Args:
          point: the variables of the old loops.
          guards: further guards of the blocks inside.
        """
        inside = [(block, block.around) for block in _blocks_of(old[-1].inside)]
        self.replaced(old, new)
        move_body(old[-1], new[-1])
        for block, around in inside:
            replace_points(block, around, point, guards)
        drop(old[0].operation)


@dataclass(frozen=True)
class _Contents:
    """What a function holds.

    Attributes:
      loops, blocks, allocations: by name, in the order of the text.
      inside: what is directly in the function.
      remembered: what was computed of the function.
    """

    loops: dict[str, Loop] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    allocations: dict[str, ir.Value] = field(default_factory=dict)
    inside: "list[Member]" = field(default_factory=list)
    remembered: dict[tuple, Any] = field(default_factory=dict)

    def scope_of(self, view: Loop | Block) -> "list[Member]":
        """The members of the block that holds a loop or block, or of the function."""
        return next((b.inside for b in self.blocks.values() if any(m is view for m in b.inside)), self.inside)


def _blocks_of(members: "Sequence[Member]") -> list[Block]:
    """The outermost blocks among some members and inside of them, in order."""
    found: list[Block] = []
    for member in members:
        if isinstance(member, Block):
            found.append(member)
        elif isinstance(member, Loop):
            found += _blocks_of(member.inside)
    return found


def _set_around(members: "Sequence[Member]", around: tuple[Loop, ...]) -> None:
    for member in members:
        if isinstance(member, (Loop, Block)):
            member.around = around
        if isinstance(member, Loop):
            _set_around(member.inside, (*around, member))


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
