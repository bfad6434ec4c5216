"""The loops and blocks of a function, by name, and changes of them. Primitives use names, because operations may be rebuilt."""

from collections.abc import Mapping, Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.tir import names
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.tree.buffers import allocation_name, make_buffer
from relayc.pipelines.tir.tree.contents import blocks_of, position, put_in
from relayc.pipelines.tir.tree.function_buffers import FunctionBuffers
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import substitute
from relayc.pipelines.tir.tree.operations import is_statement, operations_in
from relayc.pipelines.tir.tree.views import Block, Loop, Member, body_point
from relayc.symbolic import Size


class Nest(FunctionBuffers):
    """A function of blocks and loops: its structure, and changes of it by primitives.

    An edit (see `editing`) that calls `remove`, `added`, `rebuilt` or `replaced_buffer` changes nothing beyond what these record, except
    the bodies of the blocks passed to `editing`; the views then stay valid.
    """

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
        self._contents.replace_loops(old, new)
        self._changed_in(scope)

    def reorder_loops(self, old: list[Loop], new: list[Loop]) -> None:
        """Replaces a perfect nest of loops by the same loops in another order."""
        for block in blocks_of(old[-1].inside):
            block.read_place()
        self._contents.replace_loops(old, new)
        self._changed_in(old[0].scope)

    def move(
        self, block: Block, loops: Sequence[Loop], beside: Loop | Block, behind: bool, points: Sequence[Index], guards: Sequence[Guard]
    ) -> None:
        """Moves a block into a nest of new loops, before or after a loop or block of the same scope, and removes loops that become
        empty."""
        self._contents.take_out(block)
        around = beside.around
        members = around[-1].inside if around else self._contents.beside(beside)
        members.insert(position(members, beside) + behind, loops[0] if loops else block)
        put_in(block, loops, around, beside.scope)
        block.place(points, guards)
        self._contents.sort()
        self._changed_in(block.scope)

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
        self._contents.take_out(block)
        alloc = buffer.owner.operation
        found.inside.remove(next(m for m in found.inside if not isinstance(m, (Loop, Block)) and m == alloc))
        del found.allocations[allocation_name(alloc)]
        block.operation.erase()
        alloc.erase()
        self._unwritten[id(None)] = None
        self._keep_views()

    def added(self, loops: list[Loop], view: Block) -> None:
        """Records that a block, inside one loop for each iterator, was added at the end of the function. Nothing else may change in this
        edit except allocations that `add_buffer` adds."""
        name = view.name
        self._contents.blocks[name] = view
        self._contents.inside.append(loops[0] if loops else view)
        put_in(view, loops, (), None)
        view.place([Index.of(loop.var) for loop in loops], [])
        self._unwritten[id(None)] = None
        self._keep_views()

    def rebuilt(
        self, old: Block, made: ir.Operation, wanted: Sequence[tuple[str, Size]], iterators: Sequence[str], extents: Sequence[Size]
    ) -> list[Loop]:
        """Records, during an edit, that an operation replaces the block of the same name, which is alone in the loops around it; returns
        the new loops, one for each iterator.

        Nothing else may change in this edit.
        """
        found, top = self._contents, old.around[0] if old.around else old
        members = found.beside(top)
        assert self._edit is not None
        for loop in old.around:
            self._edit.taken["loop"].remove(loop.name)
            del found.loops[loop.name]
        loops = self.new_loops(wanted, made.location)
        view = found.blocks[old.name] = Block(made, self.facts, old.name, iterators, extents)
        members[position(members, top)] = loops[0] if loops else view
        put_in(view, loops, (), old.scope)
        view.place([Index.of(loop.var) for loop in loops], [])
        found.sort()
        self._unwritten[id(old.scope)] = old.scope
        self._keep_views()
        return loops

    def replaced_buffer(self, old: ir.Value, new: ir.Value) -> None:
        """Records, during an edit, that an allocation replaces the allocation of the same name, or that both are the same argument and all
        of its accesses change. Nothing else may change in this edit."""
        if old != new:
            inside = self._contents.inside
            (here,) = [i for i, m in enumerate(inside) if isinstance(m, ir.Operation) and m == old.owner.operation]
            inside[here] = new.owner.operation
            self._contents.allocations[self.buffer_name(new)] = new
        self._keep_views()

    def add_buffer(self, name: str, shape: Sequence[Size], element: ir.Type) -> ir.Value:
        """Adds an allocation at the end of the function, which is the ambient insertion point (see `added`)."""
        made = make_buffer(name, shape, element)
        self._contents.allocations[name] = made
        self._contents.inside.append(made.owner.operation)
        return made

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

    def outer_blocks(self) -> list[Block]:
        """The blocks that are not nested in another block, in the order of the text."""
        found = self._found()
        return [b for b in found.blocks.values() if b.scope is None] if self._is_current else self.blocks_in(self._function.operation)

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
