"""The loops, blocks and buffers of a function, by name. Primitives use names, because operations may be rebuilt."""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import Any

from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.size_attribute import read_size_attribute
from relayc.dialects.tir import names
from relayc.dialects.tir.block import block_name
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.emission.sizes import SizeValues, sizes_in, symbol_positions
from relayc.pipelines.tir.tree.buffers import allocation_name, make_buffer
from relayc.pipelines.tir.tree.computations import order_computations
from relayc.pipelines.tir.tree.contents import Contents, blocks_of, position, set_around
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import Reader, substitute
from relayc.pipelines.tir.tree.operations import COMPUTATIONS, STATEMENTS, is_statement, operations_in
from relayc.pipelines.tir.tree.views import Block, Facts, Loop, Member, body_point
from relayc.symbolic import Size, symbol


class Nest:
    """A function of blocks and loops: its buffers, loops and blocks by name.

    Primitives that change loops, or the positions of blocks, change only the views. The operations are written when the function is
    requested: until then they are the operations from before the change, or absent for new loops and for the bodies of blocks that come
    from a te function (see steps).

    Args:
      is_empty: whether the function has no statements yet.
    """

    def __init__(self, function: func.FuncOp, is_empty: bool = False) -> None:
        self._function = function
        self.entry: ir.Block = function.regions[0].blocks[0]
        self.facts = self._new_facts({self.entry.arguments[i]: symbol(name) for name, i in symbol_positions(function).items()})
        self._contents = Contents()
        """Loops, blocks and allocations by name. During an edit: the entries from before the edit that are still valid."""
        self._is_current = is_empty
        self._stays_current = False
        """Whether the edit in progress updates `_contents` itself (see `remove`, `added`, `rebuilt` and `replaced_buffer`)."""
        self._changed: Collection[str] = ()
        """Names of the blocks that the edit in progress replaces: their entries in `_contents` are stale."""
        self._taken: dict[str, set[str]] | None = None
        """Names of loops, blocks and buffers in use, during an edit."""
        self._is_building = False
        self._constants: emit.Constants | None = None
        """The constants at the start of the function; None if other values are computed there too."""
        self._is_ordered = not is_empty
        """Whether the computations before the loops are in the order of their use, as `order` writes them."""
        self._unwritten: dict[int, Block | None] = {}
        """Blocks whose loops must be written, by identity; None for the function."""

    @property
    def function(self) -> func.FuncOp:
        """The function, with all changes written."""
        self.write()
        return self._function

    @property
    def head(self) -> func.FuncOp:
        """The function operation, for its name and attributes. Its body may lack changes that are not yet written."""
        return self._function

    @property
    def name(self) -> str:
        return ir.StringAttr(self._function.attributes["sym_name"]).value

    @property
    def sizes(self) -> Mapping[ir.Value, Size]:
        """The values of the function that hold sizes: its symbols."""
        return self.facts.sizes

    @sizes.setter
    def sizes(self, sizes: Mapping[ir.Value, Size]) -> None:
        self.write()
        self.facts = self._new_facts(sizes)
        self._contents, self._is_current = Contents(), False

    def _new_facts(self, sizes: Mapping[ir.Value, Size]) -> Facts:
        made = Facts(sizes)
        made.building = self.building
        return made

    @contextmanager
    def editing(self, bodies: Collection[str] | None = None) -> Iterator[None]:
        """Context in which operations may be built: each constant once at the start of the function, symbols with their values.

        Args:
          bodies: names of the new blocks and of the blocks whose accesses change; facts about other blocks stay valid. None if extents of
            blocks or loops change too.
        """
        before = self._found()
        self._fill()
        self._taken = {"loop": set(before.loops), "block": set(before.blocks), "buffer": {*self._arguments, *before.allocations}}
        self._is_current = self._stays_current = False
        before.remembered.clear()
        before.of_buffers.clear()
        if bodies is None:
            self._contents = Contents()
        self._changed = () if bodies is None else bodies
        self.facts.begin(bodies)
        try:
            with self.building():
                yield
            if self._stays_current:
                self._is_current, self._changed = True, ()
        finally:
            self.facts.end()
            self._taken = None

    @contextmanager
    def building(self) -> Iterator[None]:
        """Context in which operations may be built (see `editing`)."""
        if self._is_building:
            yield
            return
        self._is_building, self._is_ordered = True, False
        try:
            yield from self._built()
        finally:
            self._is_building = False

    def _built(self) -> Iterator[None]:
        symbols = {str(size): value for value, size in self.sizes.items()}
        with self._function.context, ir.Location.unknown():
            constants = self._constants or emit.Constants(self.entry, reuse=True)
            with emit.constants_at(constants), sizes_in(SizeValues(self.entry, symbols)) if symbols else nullcontext():
                yield
            self._sweep(constants)

    def _fill(self) -> None:
        """Writes the contents of blocks."""
        for block in self._contents.blocks.values():
            block.fill()

    def _sweep(self, constants: emit.Constants) -> None:
        """Erases computations and constants at the start of the function that nothing uses."""
        if constants.is_alone and not self.sizes:
            constants.sweep()
            self._constants = constants
            return
        for op in reversed(operations_in(self.entry)):
            if op.name.startswith(COMPUTATIONS) and next(iter(op.results[0].uses), None) is None:
                op.erase()

    def _found(self) -> Contents:
        """The current contents. During an edit, each call searches the function again."""
        if self._is_current:
            return self._contents
        found = Contents()
        stack: list[tuple[ir.Operation, tuple[Loop, ...], list[Member], Block | None]] = [
            (self._function.operation, (), found.inside, None)
        ]

        def visit(op: ir.Operation) -> ir.WalkResult:
            name = op.name
            if name not in STATEMENTS:
                return ir.WalkResult.ADVANCE
            parent = op.parent
            while len(stack) > 1 and stack[-1][0] != parent:
                stack.pop()
            outer, around, beside, scope = stack[-1]
            if scope is not None and scope.operation == outer and scope.init is not None and op.block == scope.init:
                beside = scope.starts
            if name == "memref.alloc":
                found.allocations[allocation_name(op)] = op.results[0]
                beside.append(op)
                return ir.WalkResult.ADVANCE
            if name == "tir.block":
                block = self.block_view(op)
                block.around, block.starts, block.inside, block.scope = around, [], [], scope
                found.blocks[block.name] = block
                beside.append(block)
                stack.append((op, (), block.inside, block))
                return ir.WalkResult.SKIP if self.facts.is_plain(block.name) else ir.WalkResult.ADVANCE
            loop = self.loop_view(op)
            loop.around, loop.inside, loop.scope = around, [], scope
            if names.LOOP in op.attributes:
                found.loops[loop.name] = loop
            beside.append(loop)
            stack.append((op, (*around, loop), loop.inside, scope))
            return ir.WalkResult.ADVANCE

        self._function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        if self._taken is None:
            self._contents, self._is_current, self._changed = found, True, ()
            self.facts.keep(found.blocks)
        return found

    # ---- writing pending changes

    def write(self) -> None:
        """Writes the loops and the points of blocks to the function, as the views describe them. Later requests create new views."""
        if not self._unwritten:
            return
        scopes, self._unwritten = list(self._unwritten.values()), {}
        with self.building():
            self._fill()
            for scope in scopes:
                if scope is None:
                    self._write(self.entry, self._contents.inside)
                    continue
                for region, members in ((scope.init, scope.starts), (scope.body, scope.inside)):
                    if region is not None:
                        self._write(region, members)
        self._contents, self._is_current, self._constants = Contents(), False, None
        if None in scopes:
            self._order()

    def order(self) -> None:
        """Writes the function in a canonical form: computations before the loops are in the order of their use, independent of the
        order in which values were requested."""
        self.write()
        if not self._is_ordered:
            self._order()

    def _order(self) -> None:
        order_computations(self._function)
        self._contents, self._is_current, self._constants, self._is_ordered = Contents(), False, None, True

    def _write(self, region: ir.Block, members: "Sequence[Member]") -> None:
        """Writes the members of the function, or of a block, to its region."""
        for block in blocks_of(members):
            self._read_place(block)
        old = [op for op in operations_in(region) if is_statement(op)]
        end = ir.InsertionPoint.at_block_terminator(region) if region == self.entry else ir.InsertionPoint(region)
        self._write_members(members, end)
        kept = {member.results[0] for member in members if isinstance(member, ir.Operation)}
        for op in old:
            if op.name != "memref.alloc" or op.results[0] not in kept:
                op.erase()

    def _write_members(self, members: "Sequence[Member]", place: ir.InsertionPoint) -> None:
        for member in members:
            if isinstance(member, Loop):
                with place:
                    member.written()
                self._write_members(member.inside, body_point(member))
            elif isinstance(member, Block):
                with place:
                    member.written()
            else:
                place.insert(member.detach_from_parent())

    def _changed_in(self, scope: Block | None) -> None:
        """Marks the loops directly in a block, or in the function for None, as changed: `write` writes them."""
        self._contents.remembered.clear()
        self._unwritten[id(scope)] = scope
        if scope is not None:
            self.write()  # the accesses of the enclosing block are read from its operations

    def new_loops(self, wanted: Sequence[tuple[str, Size]], location: ir.Location) -> list[Loop]:
        """Creates loops that have no position yet (see `replace_loops`, `move` and `added`); a number is appended to names in use."""
        made: list[Loop] = []
        for wish, extent in wanted:
            name = self.free_loop(wish)
            loop = self._contents.loops[name] = Loop(None, self.facts, name, extent, location)
            made.append(loop)
        return made

    def replace_loops(self, old: list[Loop], new: list[Loop], point: Mapping[Var, Index], guards: Sequence[Guard] = ()) -> None:
        """Replaces a perfect nest of loops by another one.

        Args:
          point: the variables of the old loops, over the new ones.
          guards: further guards of the blocks inside.
        """
        scope = old[0].scope
        for block in blocks_of(old[-1].inside):
            points, known = block.points(block.around), block.guards(block.around)
            limits = [Guard(substitute(g.index, point), g.limit) for g in known]
            block.place([substitute(p, point) for p in points], [*limits, *guards])
        self._nest(old, new)
        self._changed_in(scope)

    def reorder_loops(self, old: list[Loop], new: list[Loop]) -> None:
        """Replaces a perfect nest of loops by the same loops in another order."""
        for block in blocks_of(old[-1].inside):
            self._read_place(block)
        self._nest(old, new)
        self._changed_in(old[0].scope)

    @staticmethod
    def _read_place(block: Block) -> None:
        """Reads the points and guards of a block before the loops around it change."""
        block.points(block.around)
        block.guards(block.around)

    def _nest(self, old: list[Loop], new: list[Loop]) -> None:
        """Replaces loops in the contents."""
        found, outer, scope = self._contents, old[0].around, old[0].scope
        beside = outer[-1].inside if outer else found.beside(old[0])
        beside[position(beside, old[0])] = new[0]
        inside = old[-1].inside
        for i, loop in enumerate(new):
            loop.around, loop.scope = (*outer, *new[:i]), scope
            loop.inside = [new[i + 1]] if i + 1 < len(new) else inside
        set_around(inside, (*outer, *new))
        loops = list(found.loops.items())
        gone, made = {loop.name for loop in old}, {loop.name: loop for loop in new}
        found.loops.clear()
        for name, loop in loops:
            if name == old[0].name:
                found.loops.update(made)
            elif name not in gone and name not in made:
                found.loops[name] = loop

    def move(
        self, block: Block, loops: Sequence[Loop], beside: Loop | Block, behind: bool, points: Sequence[Index], guards: Sequence[Guard]
    ) -> None:
        """Moves a block into a nest of new loops, before or after a loop or block of the same scope, and removes loops that become
        empty."""
        self._take_out(block)
        around = beside.around
        members = around[-1].inside if around else self._contents.beside(beside)
        members.insert(position(members, beside) + behind, loops[0] if loops else block)
        self._put_in(block, loops, around, beside.scope)
        block.place(points, guards)
        self._contents.sort()
        self._changed_in(block.scope)

    @staticmethod
    def _put_in(block: Block, loops: Sequence[Loop], around: tuple[Loop, ...], scope: Block | None) -> None:
        for i, loop in enumerate(loops):
            loop.around, loop.scope = (*around, *loops[:i]), scope
            loop.inside = [loops[i + 1] if i + 1 < len(loops) else block]
        block.around, block.scope = (*around, *loops), scope

    def _take_out(self, block: Block) -> None:
        """Removes a block from its position, with the enclosing loops that become empty."""
        gone: Loop | Block = block
        for loop in reversed(block.around):
            del loop.inside[position(loop.inside, gone)]
            if loop.inside:
                return
            gone = loop
            del self._contents.loops[loop.name]
        beside = self._contents.beside(gone)
        del beside[position(beside, gone)]

    def hoist(self, buffer: ir.Value, before: Loop | Block) -> None:
        """Moves an allocation before a loop or block of the function if it is after it."""
        if isinstance(buffer.owner, ir.Block):
            return
        inside = self._contents.inside
        (here,) = [i for i, m in enumerate(inside) if not isinstance(m, (Loop, Block)) and m == buffer.owner.operation]
        there = position(inside, before)
        if there < here:
            inside.insert(there, inside.pop(here))
            self._contents.sort()
            self._changed_in(None)

    def remove(self, block: Block, buffer: ir.Value) -> None:
        """During an edit, erases a block of the function, the loops that become empty, and an allocation.

        Nothing else may change in this edit except the bodies of the blocks passed to `editing`.
        """
        found = self._contents
        del found.blocks[block.name]
        self.facts.forget(block.name)
        self._take_out(block)
        alloc = buffer.owner.operation
        found.inside.remove(next(m for m in found.inside if not isinstance(m, (Loop, Block)) and m == alloc))
        del found.allocations[allocation_name(alloc)]
        block.operation.erase()
        alloc.erase()
        self._unwritten[id(None)] = None
        self._stays_current = True

    def added(self, loops: list[Loop], view: Block) -> None:
        """Records that a block, inside one loop for each iterator, was added at the end of the function. Nothing else may change in this
        edit except allocations that `add_buffer` adds."""
        name = view.name
        self._contents.blocks[name] = view
        self._contents.inside.append(loops[0] if loops else view)
        self._put_in(view, loops, (), None)
        view.place([Index.of(loop.var) for loop in loops], [])
        self._unwritten[id(None)] = None
        self._stays_current = True

    def rebuilt(
        self, old: Block, made: ir.Operation, wanted: Sequence[tuple[str, Size]], iterators: Sequence[str], extents: Sequence[Size]
    ) -> list[Loop]:
        """Records, during an edit, that an operation replaces the block of the same name, which is alone in the loops around it; returns
        the new loops, one for each iterator.

        Nothing else may change in this edit.
        """
        found, top = self._contents, old.around[0] if old.around else old
        members = found.beside(top)
        assert self._taken is not None
        for loop in old.around:
            self._taken["loop"].remove(loop.name)
            del found.loops[loop.name]
        loops = self.new_loops(wanted, made.location)
        view = found.blocks[old.name] = Block(made, self.facts, old.name, iterators, extents)
        members[position(members, top)] = loops[0] if loops else view
        self._put_in(view, loops, (), old.scope)
        view.place([Index.of(loop.var) for loop in loops], [])
        found.sort()
        self._unwritten[id(old.scope)] = old.scope
        self._stays_current = True
        return loops

    def replaced_buffer(self, old: ir.Value, new: ir.Value) -> None:
        """Records, during an edit, that an allocation replaces the allocation of the same name, or that both are the same argument and all
        of its accesses change. Nothing else may change in this edit."""
        if old != new:
            inside = self._contents.inside
            (here,) = [i for i, m in enumerate(inside) if isinstance(m, ir.Operation) and m == old.owner.operation]
            inside[here] = new.owner.operation
            self._contents.allocations[self.buffer_name(new)] = new
        self._stays_current = True

    def add_buffer(self, name: str, shape: Sequence[Size], element: ir.Type) -> ir.Value:
        """Adds an allocation at the end of the function, which is the ambient insertion point (see `added`)."""
        made = make_buffer(name, shape, element)
        self._contents.allocations[name] = made
        self._contents.inside.append(made.owner.operation)
        return made

    # ---- views

    def loop_view(self, operation: ir.Operation) -> Loop:
        """The view of a loop; the same object while the loop exists."""
        attributes = operation.attributes
        known = self._contents.loops.get(ir.StringAttr(attributes[names.LOOP]).value) if names.LOOP in attributes else None
        return known if known is not None and known.is_of(operation) else Loop(operation, self.facts)

    def block_view(self, operation: ir.Operation) -> Block:
        """The view of a block; the same object until the block changes."""
        name = block_name(operation)
        known = self._contents.blocks.get(name) if name not in self._changed else None
        return known if known is not None and known.operation == operation else Block(operation, self.facts)

    def remembered(self, key: tuple, make: Callable[[], Any], of_buffers: bool = False) -> Any:
        """Caches the result of `make`, which depends on the function in its present state. The entry is dropped by the next edit and,
        unless it depends on buffers alone, also when loops or blocks move."""
        if not self._is_current:
            return make()
        known = self._contents.of_buffers if of_buffers else self._contents.remembered
        if key not in known:
            known[key] = make()
        return known[key]

    def loops(self) -> dict[str, Loop]:
        """The loops by name, outer ones first, in the order of the text."""
        return dict(self._found().loops)

    def blocks(self) -> dict[str, Block]:
        """The blocks by name, in the order of the text, including nested blocks."""
        return dict(self._found().blocks)

    def buffers(self) -> dict[str, ir.Value]:
        """The buffers by name: arguments, then allocations in the order of the text."""
        return self._arguments | self._found().allocations

    @property
    def _argument_attributes(self) -> Sequence[ir.DictAttr]:
        return self.remembered(("arguments",), lambda: value_attributes(self._function), True)

    @cached_property
    def _arguments(self) -> dict[str, ir.Value]:
        """The buffers that are arguments, by name."""
        described = zip(self.entry.arguments, self._argument_attributes, strict=True)
        return {ir.StringAttr(given[names.BUFFER]).value: value for value, given in described if names.BUFFER in given}

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

    # ---- places

    def loops_around(self, at: "Loop | Block | ir.Operation") -> list[Loop]:
        """The loops around a block or loop, outermost first, up to the enclosing block."""
        if self._is_current:
            return list((self._view(at) if isinstance(at, ir.Operation) else at).around)
        found = []
        parent = (at if isinstance(at, ir.Operation) else at.operation).parent
        while parent is not None and parent.name not in ("func.func", "tir.block"):
            if parent.name == "scf.for":
                found.append(self.loop_view(parent))
            parent = parent.parent
        return found[::-1]

    def inside(self, at: Loop | None = None) -> "list[Member]":
        """Loops, blocks and allocations directly in a loop, or in the function."""
        self._found()
        return list(self._contents.inside if at is None else at.inside)

    def members(self, operation: ir.Operation) -> list[ir.Operation]:
        """Loops, blocks and allocations directly in a loop, a block or the function, as operations."""
        self.write()
        if self._is_current:
            return [member if isinstance(member, ir.Operation) else member.operation for member in self._inside(operation)]
        return [op for region in operation.regions for block in region.blocks for op in operations_in(block) if is_statement(op)]

    def blocks_in(self, at: "Loop | Block | ir.Operation") -> list[Block]:
        """The outermost blocks inside a loop, in order; for a block, the block itself."""
        if isinstance(at, Block):
            return [at]
        if isinstance(at, Loop):
            if self._is_current:
                return blocks_of(at.inside)
            at = at.operation
        if at.name == "tir.block":
            return [self.block_view(at)]
        if self._is_current:
            return blocks_of(self._inside(at))
        return [block for op in self.members(at) if op.name != "memref.alloc" for block in self.blocks_in(op)]

    def _view(self, operation: ir.Operation) -> Loop | Block:
        return self.block_view(operation) if operation.name == "tir.block" else self.loop_view(operation)

    def _inside(self, operation: ir.Operation) -> "list[Member]":
        if operation.name == "func.func":
            return self._contents.inside
        view = self._view(operation)
        return [*view.starts, *view.inside] if isinstance(view, Block) else view.inside

    def at_root(self) -> list[ir.Operation]:
        """Loops, blocks and allocations of the function itself."""
        return self.members(self.function.operation)

    def readers(self, buffer: ir.Value) -> list[Block]:
        """The outermost blocks that read a buffer, in order, except blocks that read only elements which they write themselves."""
        return [b for b in self.outer_blocks() if buffer in b.inputs()]

    def writers(self, buffer: ir.Value) -> list[Block]:
        """The outermost blocks that write a buffer, in order."""
        return [b for b in self.outer_blocks() if b.stores_to(buffer)]

    def outer_blocks(self) -> list[Block]:
        """The blocks that are not nested in another block, in the order of the text."""
        found = self._found()
        return [b for b in found.blocks.values() if b.scope is None] if self._is_current else self.blocks_in(self._function.operation)

    # ---- names

    def free_loop(self, name: str) -> str:
        """A name that no loop has: `name`, with a number appended if it is in use. During an edit the name is reserved."""
        return self._free("loop", name, lambda: self._found().loops)

    def free_block(self, name: str) -> str:
        """A name that no block has (see free_loop)."""
        return self._free("block", name, lambda: self._found().blocks)

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
        """Creates a loop without a body at the ambient insertion point; its name must be free."""
        bounds = [emit.index_constant(0), emit.index_constant(extent), emit.index_constant(1)]
        operation = emit.serial_loop(bounds, attributes={names.LOOP: ir.StringAttr.get(name)})
        made = self._contents.loops[name] = Loop(operation, self.facts, name, extent)
        emit.yield_values([], ir.InsertionPoint(made.body))
        if kind != names.Kind.SERIAL:
            made.set_kind(kind)
        return made

    def make_loops(self, wanted: Sequence[tuple[str, Size]]) -> list[Loop]:
        """Creates nested loops at the ambient insertion point, outermost first; a number is appended to names in use."""
        made: list[Loop] = []
        place = ir.InsertionPoint.current
        for name, extent in wanted:
            with place:
                made.append(self.make_loop(self.free_loop(name), extent))
            place = body_point(made[-1])
        return made


def _free(name: str, taken: Container[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}" if name[-1].isdigit() else f"{name}{number}"
    return found
