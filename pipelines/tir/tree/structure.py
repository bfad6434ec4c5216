"""The tree of a function: its loops and blocks by name, changes of them, and how they are written as operations."""

from collections.abc import Container, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain, count

from relayc.dialects.mlir import func, ir
from relayc.dialects.tir.block import make_block
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.tree.buffers import make_buffer
from relayc.pipelines.tir.tree.computations import order_computations
from relayc.pipelines.tir.tree.contents import read_members
from relayc.pipelines.tir.tree.function import Function
from relayc.pipelines.tir.tree.guards import Guard
from relayc.pipelines.tir.tree.indices import substitute
from relayc.pipelines.tir.tree.members import Block, Loop, Member, blocks_of
from relayc.pipelines.tir.tree.operations import COMPUTATIONS, operations_in, walk
from relayc.pipelines.tir.tree.steps import Code, Contents, record_steps
from relayc.symbolic import Size


class Nest(Function):
    """A function of blocks and loops as a tree.

    Once it is read the tree alone says where loops, blocks and allocations are: operations hold the contents of blocks, and all else only
    after it is written (see `function`).
    """

    def __init__(self, function: func.FuncOp, sizes: Mapping[ir.Value, Size] | None = None) -> None:
        super().__init__(function, sizes)
        self.inside: list[Member] = read_members(self)
        """The members directly in the function."""
        self._loops: dict[str, Loop] = {}
        self._blocks: dict[str, Block] = {}
        self._is_written = True
        self._sort()

    # ---- the tree

    def loops(self) -> dict[str, Loop]:
        """The loops by name, outer ones first, in the order of the text."""
        return dict(self._loops)

    def blocks(self) -> dict[str, Block]:
        """The blocks by name, in the order of the text, including nested blocks."""
        return dict(self._blocks)

    def outer_blocks(self) -> list[Block]:
        """The blocks that are not nested in another block, in the order of the text."""
        return [b for b in self._blocks.values() if b.scope is None]

    def beside(self, view: Loop | Block) -> list[Member]:
        """The list of members that holds a loop or block: of a loop, of the init or body of a block, or of the function."""
        if view.around:
            return view.around[-1].inside
        if view.scope is None:
            return self.inside
        return view.scope.starts if any(m is view for m in view.scope.starts) else view.scope.inside

    def _sort(self) -> None:
        """Finds the loops, blocks and allocations in the tree, in the order of the text."""
        self._loops.clear()
        self._blocks.clear()
        self.allocations.clear()
        left = self.inside[::-1]
        while left:
            member = left.pop()
            if isinstance(member, Loop):
                self._loops[member.name] = member
                left += member.inside[::-1]
            elif isinstance(member, Block):
                self._blocks[member.name] = member
                left += [*member.starts, *member.inside][::-1]
            else:
                buffer = member.results[0]
                self.allocations[self.buffer_name(buffer)] = buffer

    def changed(self) -> None:
        """Records that the tree, or an attribute of a loop, changed."""
        self._is_written = False
        self.edits += 1
        self._sort()

    # ---- names

    def free_loop(self, name: str) -> str:
        """A name that no loop has: `name`, with a number appended if it is in use."""
        return _free(name, self._loops)

    def free_block(self, name: str) -> str:
        """A name that no block has (see free_loop)."""
        return _free(name, self._blocks)

    def free_buffer(self, name: str) -> str:
        """A name that no buffer has (see free_loop)."""
        return _free(name, self.buffers())

    # ---- new members, which have no place yet; their names are taken

    def new_loops(self, wanted: Sequence[tuple[str, Size]], location: ir.Location) -> list[Loop]:
        """Creates loops; a number is appended to names in use."""
        made: list[Loop] = []
        for wish, extent in wanted:
            name = self.free_loop(wish)
            found = self._loops[name] = Loop(name, extent, location)
            made.append(found)
        return made

    def new_block(
        self, name: str, iterators: Sequence[str], extents: Sequence[Size], body: Code | None = None, init: Code | None = None
    ) -> Block:
        """Creates a block; its name must be free, or of a block whose place it takes.

        Args:
          body, init: record the steps, given the values of the iterators; without a body the block is to hold loops.
        """
        with ir.InsertionPoint.at_block_terminator(self.entry):
            made = make_block(name, iterators, extents, [])
        found = self._blocks[name] = Block(made, self, name, iterators, extents)
        if body is not None:
            point = list(map(Index.of, found.vars))
            found.set_contents(
                Contents.of_steps(None if init is None else record_steps(init, point, True), record_steps(body, point, False))
            )
        return found

    def new_buffer(self, name: str, shape: Sequence[Size], element: ir.Type, scope: str) -> ir.Value:
        """Creates an allocation."""
        end = ir.InsertionPoint.at_block_terminator(self.entry)
        with nullcontext() if all(isinstance(d, int) for d in shape) else self.building(), end, ir.Location.unknown():
            return make_buffer(name, shape, element, scope)

    def add_buffer(
        self, name: str, shape: Sequence[Size], element: ir.Type, scope: str = "global", before: "Member | None" = None
    ) -> ir.Value:
        """Adds an allocation before the member of the function that is or contains another member, by default at its end."""
        made = self.allocations[name] = self.new_buffer(name, shape, element, scope)
        self.inside.insert(len(self.inside) if before is None else self.inside.index(top_of(before)), made.owner.operation)
        return made

    # ---- changes

    def insert(
        self,
        block: Block,
        loops: Sequence[Loop],
        points: Sequence[Index],
        guards: Sequence[Guard],
        beside: Loop | Block | None = None,
        behind: bool = True,
    ) -> None:
        """Places a block, in a nest of new loops, before or behind another member; by default at the end of the function."""
        members = self.inside if beside is None else self.beside(beside)
        at = len(members) if beside is None else members.index(beside) + behind
        around, scope = ((), None) if beside is None else (beside.around, beside.scope)
        members[at:at] = nested(loops, block)
        set_around(members[at : at + 1], around, scope)
        block.place(points, guards)
        if beside is None:
            self._is_written = False  # the order of the text is that in which all was made
        else:
            self.changed()

    def take_out(self, block: Block) -> None:
        """Removes a block from its place, with the enclosing loops that become empty, before another change."""
        gone: Loop | Block = block
        for loop in reversed(block.around):
            loop.inside.remove(gone)
            if loop.inside:
                break
            gone = loop
        else:
            self.beside(gone).remove(gone)

    def remove(self, block: Block, buffer: ir.Value) -> None:
        """Erases a block of the function, and an allocation."""
        self.take_out(block)
        self.inside.remove(buffer.owner.operation)
        block.operation.erase()
        self.erase_allocation(buffer)
        self.changed()

    def replace(self, old: Loop | Block, new: Loop | Block, inside: "list[Member] | None" = None) -> None:
        """Puts a loop or block in the place of another one.

        Args:
          inside: what is in it from now on, if that changes: the old one may be.
        """
        members = self.beside(old)
        at, around, scope = members.index(old), old.around, old.scope
        if inside is not None:
            new.inside = inside
        members[at] = new
        set_around(members[at : at + 1], around, scope)
        self.changed()

    def rebuild(self, old: Block, new: Block, wanted: Sequence[tuple[str, Size]]) -> list[Loop]:
        """Puts a block, in new loops, one for each iterator, in the place of another one, which is erased with the loops around it; returns
        the new loops."""
        for loop in old.around:
            del self._loops[loop.name]
        loops = self.new_loops(wanted, new.operation.location)
        nested(loops, new)
        self.replace(old.around[0] if old.around else old, loops[0] if loops else new)
        new.place([Index.of(loop.var) for loop in loops], [])
        old.operation.erase()
        return loops

    def replace_loops(
        self, old: Sequence[Loop], new: Sequence[Loop], point: Mapping[Var, Index] | None = None, guards: Sequence[Guard] = ()
    ) -> None:
        """Replaces a perfect nest of loops by another one.

        Args:
          point: the variables of the old loops, over the new ones; by default the new loops are the old ones in another order.
          guards: further guards of the blocks inside.
        """
        for block in blocks_of(old[-1].inside) if point is not None else ():
            limits = [Guard(substitute(g.index, point or {}), g.limit) for g in block.guards]
            block.place([substitute(p, point or {}) for p in block.points], [*limits, *guards])
        inside = old[-1].inside
        for i, loop in enumerate(new):
            loop.inside = [new[i + 1]] if i + 1 < len(new) else inside
        self.replace(old[0], new[0])

    def replace_buffer(self, old: ir.Value, new: ir.Value) -> None:
        """Erases an allocation, in whose place there is another one of the same name."""
        self.inside[self.inside.index(old.owner.operation)] = new.owner.operation
        self.erase_allocation(old)

    def hoist(self, buffer: ir.Value, before: Loop | Block) -> None:
        """Moves an allocation before the member of the function that is or contains a loop or block, if it is behind it."""
        if isinstance(buffer.owner, ir.Block):
            return
        here, there = self.inside.index(buffer.owner.operation), self.inside.index(top_of(before))
        if there < here:
            self.inside.insert(there, self.inside.pop(here))
            self.changed()

    # ---- writing

    @property
    def function(self) -> func.FuncOp:
        """The function, with all changes written."""
        if not self._is_written:
            with self.building():
                for block in self._blocks.values():
                    block.fill()
                    block.read_place()  # before the loops around the block change
                self._write(self.entry, self.inside)
            order_computations(self.head)
            self._is_written = True
        return self.head

    def _write(self, region: ir.Block, members: Sequence[Member]) -> None:
        """Writes the members of the function, or of a block, to its region."""
        kept = {member for member in members if isinstance(member, ir.Operation)}
        old = [op for op in operations_in(region) if op.name != "func.return" and op not in kept]
        end = ir.InsertionPoint.at_block_terminator(region) if region == self.entry else ir.InsertionPoint(region)
        self._write_members(members, end)
        for op in reversed(old):
            if op.name.startswith(COMPUTATIONS) and (region == self.entry or next(iter(op.results[0].uses), None) is not None):
                continue
            for constant in [c for r in op.regions for b in r.blocks for c in walk(b) if c.name == "arith.constant"]:
                constant.move_before(self.entry.operations[0])  # a block may use it
            op.erase()

    def _write_members(self, members: Sequence[Member], place: ir.InsertionPoint) -> None:
        for member in members:
            if isinstance(member, Loop):
                with place:
                    member.write()
                self._write_members(member.inside, ir.InsertionPoint.at_block_terminator(member.body))
            elif isinstance(member, Block):
                with place:
                    member.write()
                for region, inner, _ in member.parts():
                    if blocks_of(inner):
                        self._write(region, inner)
            else:
                place.insert(member.detach_from_parent())

    def order(self) -> None:
        """Writes the function in a canonical form: computations before the loops are in the order of their use, independent of the
        order in which values were requested."""
        order_computations(self.function)


def nested(loops: Sequence[Loop], block: Block) -> list[Member]:
    """A nest of loops around a block, as members."""
    for loop, inner in zip(loops, [*loops[1:], block], strict=False):
        loop.inside = [inner]
    return [loops[0] if loops else block]


def set_around(members: Sequence[Member], around: tuple[Loop, ...], scope: Block | None) -> None:
    """Sets the loops and the block around loops and blocks, recursively."""
    for member in members:
        if isinstance(member, (Loop, Block)):
            member.around, member.scope = around, scope
        if isinstance(member, Loop):
            set_around(member.inside, (*around, member), scope)
        elif isinstance(member, Block):
            set_around(member.starts, (), member)
            set_around(member.inside, (), member)


def top_of(view: Member) -> Member:
    """The member of the function that is, or contains, another member."""
    if isinstance(view, ir.Operation):
        return view
    while view.scope is not None:
        view = view.scope
    return view.around[0] if view.around else view


def _free(name: str, taken: Container[str]) -> str:
    return free_name(name, taken, "_" if name[-1:].isdigit() else "")


def free_name(name: str, taken: Container[str], mark: str = "_") -> str:
    """`name`, or if it is in use the first of `name` with a mark and a number, from 2 on, that is not."""
    return next(free for free in chain([name], (f"{name}{mark}{number}" for number in count(2))) if free not in taken)
