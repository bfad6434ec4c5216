"""The loops and blocks of a function for lowering."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.tree.members import Loop, ScheduleError
from relayc.symbolic import Dim

if TYPE_CHECKING:
    from relayc.pipelines.tir.lower.prefetch import Prefetch

MOST_UNROLLED = 1 << 12
"""Limit of the block points that one loop nest may be unrolled to: larger code would exceed the instruction cache and compile slowly."""


@dataclass(eq=False)
class LoopNode:
    """A loop with its contents, in order.

    Attributes:
      prefetch: the prefetches that its iterations issue.
      kind: how it runs.
      uses: the blocks in it, in order.
      begins: blocks whose reduction has this loop as its outermost one: their init is placed before the loop.
      reduces: whether there are reductions in it.
    """

    loop: Loop
    children: "tuple[Node, ...]"
    prefetch: "Prefetch | None" = None

    def __post_init__(self) -> None:
        self.kind = self.loop.kind
        self.uses = tuple(uses_in(self.children))
        self.reduces = any(use.block.is_reduction for use in self.uses)
        self.begins = [use for use in self.uses if use.has_init and use.reduction_loops[:1] == (self.loop.name,)]


Node: TypeAlias = LoopNode | Use


@dataclass(frozen=True)
class Init:
    """The init of a block, emitted with the loops of its reduction at their start."""

    use: Use
    skipped: frozenset[str]


def number_of(loop: Loop) -> int:
    """The extent of an unrolled or vectorized loop. Raises ScheduleError if it is symbolic or too large."""
    if isinstance(loop.extent, Dim):
        raise ScheduleError(f"loop {loop.name}: expected an extent that is a number where it is {loop.kind}, found {loop.extent}")
    if loop.extent > MOST_UNROLLED:
        raise ScheduleError(f"loop {loop.name}: expected at most {MOST_UNROLLED} iterations where it is {loop.kind}, found {loop.extent}")
    return loop.extent


_Loop = TypeVar("_Loop", bound=LoopNode)


def loops_in(nodes: Sequence[Node], kind: type[_Loop]) -> Iterator[_Loop]:
    """The loops of a class in a tree, in order."""
    for node in nodes:
        if isinstance(node, kind):
            yield node
        if isinstance(node, LoopNode):
            yield from loops_in(node.children, kind)


def uses_in(nodes: Sequence[Node]) -> list[Use]:
    """The blocks of a tree, in order."""
    return [use for node in nodes for use in (node.uses if isinstance(node, LoopNode) else (node,))]
