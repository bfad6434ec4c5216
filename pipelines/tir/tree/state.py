"""The operations of a function of blocks and loops, and the views of them by name: which of the two is current, and when."""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relayc.dialects.functions import value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.tir import names
from relayc.dialects.tir.block import block_name
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.sizes import SizeValues, sizes_in, symbol_positions
from relayc.pipelines.tir.tree.computations import order_computations
from relayc.pipelines.tir.tree.contents import Contents, blocks_of, read_contents
from relayc.pipelines.tir.tree.operations import COMPUTATIONS, is_statement, operations_in
from relayc.pipelines.tir.tree.views import Block, Facts, Loop, Member, body_point
from relayc.symbolic import Size, symbol


@dataclass
class _Edit:
    """An edit in progress (see `FunctionState.editing`).

    Attributes:
      bodies: names of the blocks that the edit replaces: their views are stale.
      taken: names of loops, blocks and buffers in use.
      keeps_views: whether the edit updates the views along with the operations.
    """

    bodies: Collection[str]
    taken: dict[str, set[str]]
    keeps_views: bool = False


class FunctionState:
    """A function of blocks and loops, and its loops, blocks and buffers by name.

    Changes of loops, and of the positions of blocks, change only the views. The operations are written when the function is requested:
    until then they are the operations from before the change, or absent for new loops and for the bodies of blocks that come from a te
    function (see steps).

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
        self._edit: _Edit | None = None
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
        taken = {"loop": set(before.loops), "block": set(before.blocks), "buffer": {*self._arguments, *before.allocations}}
        before.remembered.clear()
        before.of_buffers.clear()
        if bodies is None:
            self._contents = Contents()
        self._is_current, self._edit = False, (edit := _Edit(bodies or (), taken))
        self.facts.begin(bodies)
        try:
            with self.building():
                yield
            self._is_current = edit.keeps_views
        finally:
            self.facts.end()
            self._edit = None
            if not self._is_current:
                for name in edit.bodies:
                    self._contents.blocks.pop(name, None)

    def _keep_views(self) -> None:
        """Records that the edit in progress, if any, updates the views along with the operations."""
        if self._edit is not None:
            self._edit.keeps_views = True

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
        found = read_contents(self._function.operation, self.loop_view, self.block_view, self.facts.is_plain)
        if self._edit is None:
            self._contents, self._is_current = found, True
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
        self._forget()
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
        self._forget()
        self._is_ordered = True

    def _forget(self) -> None:
        """Drops the views and the constants: the operations are new."""
        self._contents, self._is_current, self._constants = Contents(), False, None

    def _write(self, region: ir.Block, members: "Sequence[Member]") -> None:
        """Writes the members of the function, or of a block, to its region."""
        for block in blocks_of(members):
            block.read_place()
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

    # ---- loops, blocks and buffers by name

    def loop_view(self, operation: ir.Operation) -> Loop:
        """The view of a loop; the same object while the loop exists."""
        attributes = operation.attributes
        known = self._contents.loops.get(ir.StringAttr(attributes[names.LOOP]).value) if names.LOOP in attributes else None
        return known if known is not None and known.is_of(operation) else Loop(operation, self.facts)

    def block_view(self, operation: ir.Operation) -> Block:
        """The view of a block; the same object until the block changes."""
        name = block_name(operation)
        known = self._contents.blocks.get(name) if self._edit is None or name not in self._edit.bodies else None
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
        if self._edit is None:
            return _free(name, known())
        found = _free(name, self._edit.taken[kind])
        self._edit.taken[kind].add(found)
        return found


def _free(name: str, taken: Container[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}" if name[-1].isdigit() else f"{name}{number}"
    return found
