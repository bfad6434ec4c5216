"""The contents of a function of blocks and loops, and their order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import block_name
from relayc.pipelines.tir.tree.operations import operations_in, walk
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
