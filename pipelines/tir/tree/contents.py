"""The contents of a function of blocks and loops, and their order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.tir import names
from relayc.dialects.tir.block import block_name
from relayc.pipelines.tir.tree.buffers import allocation_name
from relayc.pipelines.tir.tree.operations import STATEMENTS, operations_in, walk
from relayc.pipelines.tir.tree.views import Block, Loop, Member, ScheduleError


@dataclass(frozen=True)
class Contents:
    """The contents of a function.

    Attributes:
      loops, blocks, allocations: by name, in the order of the text.
      inside: the members directly in the function.
      remembered, of_buffers: cached results that depend on the function, and on its buffers alone.
    """

    loops: dict[str, Loop] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    allocations: dict[str, ir.Value] = field(default_factory=dict)
    inside: "list[Member]" = field(default_factory=list)
    remembered: dict[tuple, Any] = field(default_factory=dict)
    of_buffers: dict[tuple, Any] = field(default_factory=dict)

    def beside(self, view: Loop | Block) -> "list[Member]":
        """The members of the block that holds a loop or block, or of the function."""
        if view.scope is None:
            return self.inside
        return next(members for members in (view.scope.starts, view.scope.inside) if any(m is view for m in members))

    def replace_loops(self, old: Sequence[Loop], new: Sequence[Loop]) -> None:
        """Replaces a perfect nest of loops by another one."""
        outer, scope = old[0].around, old[0].scope
        beside = outer[-1].inside if outer else self.beside(old[0])
        beside[position(beside, old[0])] = new[0]
        inside = old[-1].inside
        for i, loop in enumerate(new):
            loop.around, loop.scope = (*outer, *new[:i]), scope
            loop.inside = [new[i + 1]] if i + 1 < len(new) else inside
        set_around(inside, (*outer, *new))
        loops = list(self.loops.items())
        gone, made = {loop.name for loop in old}, {loop.name: loop for loop in new}
        self.loops.clear()
        for name, loop in loops:
            if name == old[0].name:
                self.loops.update(made)
            elif name not in gone and name not in made:
                self.loops[name] = loop

    def take_out(self, block: Block) -> None:
        """Removes a block from its position, with the enclosing loops that become empty."""
        gone: Loop | Block = block
        for loop in reversed(block.around):
            del loop.inside[position(loop.inside, gone)]
            if loop.inside:
                return
            gone = loop
            del self.loops[loop.name]
        beside = self.beside(gone)
        del beside[position(beside, gone)]

    def sort(self) -> None:
        """Sorts the loops and blocks by name in the order of the text."""
        loops, blocks = dict[str, Loop](), dict[str, Block]()
        left = self.inside[::-1]
        while left:
            member = left.pop()
            if isinstance(member, Loop):
                loops[member.name] = member
                left += member.inside[::-1]
            elif isinstance(member, Block):
                blocks[member.name] = member
                left += [*member.starts, *member.inside][::-1]
        self.loops.clear()
        self.loops.update(loops)
        self.blocks.clear()
        self.blocks.update(blocks)


def read_contents(
    function: ir.Operation,
    loop_view: Callable[[ir.Operation], Loop],
    block_view: Callable[[ir.Operation], Block],
    is_plain: Callable[[str], bool],
) -> Contents:
    """Reads the contents of a function from its operations.

    Args:
      loop_view, block_view: return the view of an operation.
      is_plain: whether a block, by name, is known to have no inner loops.
    """
    found = Contents()
    stack: list[tuple[ir.Operation, tuple[Loop, ...], list[Member], Block | None]] = [(function, (), found.inside, None)]

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
            block = block_view(op)
            block.around, block.starts, block.inside, block.scope = around, [], [], scope
            found.blocks[block.name] = block
            beside.append(block)
            stack.append((op, (), block.inside, block))
            return ir.WalkResult.SKIP if is_plain(block.name) else ir.WalkResult.ADVANCE
        loop = loop_view(op)
        loop.around, loop.inside, loop.scope = around, [], scope
        if names.LOOP in op.attributes:
            found.loops[loop.name] = loop
        beside.append(loop)
        stack.append((op, (*around, loop), loop.inside, scope))
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def position(members: "Sequence[Member]", view: Loop | Block) -> int:
    """The position of a loop or block among members."""
    return members.index(view)


def blocks_of(members: "Sequence[Member]") -> list[Block]:
    """The outermost blocks among the members and in their loops, in order."""
    found: list[Block] = []
    for member in members:
        if isinstance(member, Block):
            found.append(member)
        elif isinstance(member, Loop):
            found += blocks_of(member.inside)
    return found


def set_around(members: "Sequence[Member]", around: tuple[Loop, ...]) -> None:
    """Sets the enclosing loops of loops and blocks, recursively."""
    for member in members:
        if isinstance(member, (Loop, Block)):
            member.around = around
        if isinstance(member, Loop):
            set_around(member.inside, (*around, member))


def put_in(block: Block, loops: Sequence[Loop], around: tuple[Loop, ...], scope: Block | None) -> None:
    """Sets the position of a block inside new loops: inside the loops `around` in the block `scope`."""
    for i, loop in enumerate(loops):
        loop.around, loop.scope = (*around, *loops[:i]), scope
        loop.inside = [loops[i + 1] if i + 1 < len(loops) else block]
    block.around, block.scope = (*around, *loops), scope


STORES = "stores, or loops and blocks in it (that store)"
"""Describes the allowed contents of a block, for a message."""


def stores_beside_loops(region: ir.Block) -> bool:
    """Whether a region has both stores and loops or blocks."""
    found = {op.name for op in operations_in(region)}
    return "memref.store" in found and not found.isdisjoint(("scf.for", "tir.block"))


def check_stores(function: ir.Operation) -> None:
    """Raises ScheduleError if a function of blocks and loops stores outside a block, or a block has stores beside loops or blocks.

    The iteration points of such stores are unknown.
    """
    for op in walk(function.regions[0].blocks[0]):
        if op.name != "memref.store":
            continue
        around = op.parent.operation
        while around.name == "scf.if":
            around = around.parent.operation
        if around.name != "tir.block":
            raise ScheduleError(f"expected stores in blocks (tir.block), found one in {around.name}")
        if stores_beside_loops(op.block):
            raise ScheduleError(f"block {block_name(around)}: expected {STORES}, found both")
