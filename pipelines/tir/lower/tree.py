"""The loops and blocks of a function as the lowering sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from relayc.pipelines.tir.lower.storage import Use
from relayc.pipelines.tir.tree.views import Loop, ScheduleError
from relayc.symbolic import Dim

if TYPE_CHECKING:
    from relayc.pipelines.tir.lower.prefetch import Prefetch

MOST_UNROLLED = 1 << 12
"""Points of blocks that one loop nest may be unrolled to: code beyond would not fit the instruction cache, nor compile in time."""


@dataclass(eq=False)
class LoopNode:
    """A loop with what is in it, in order.

    Attributes:
      prefetch: what its iterations ask the memory for.
      kind: how it runs.
      uses: the blocks in it, in order.
      begins: those of them whose reduction runs along this loop and no outer one: their init stands before it.
      reduces: whether there are reductions in it.
    """

    loop: Loop
    children: "tuple[Node, ...]"
    prefetch: "Prefetch | None" = None

    def __post_init__(self) -> None:
        self.kind = self.loop.kind
        self.uses: tuple[Use, ...] = tuple(
            use for child in self.children for use in (child.uses if isinstance(child, LoopNode) else (child,))
        )
        self.reduces = any(use.block.is_reduction for use in self.uses)
        self.begins = [use for use in self.uses if use.has_init and use.reduction_loops[:1] == (self.loop.name,)]


Node: TypeAlias = LoopNode | Use


@dataclass(frozen=True)
class Init:
    """The init of a block, for which the loops that its reduction runs along are at their start."""

    use: Use
    skipped: frozenset[str]


def number_of(loop: Loop) -> int:
    """The extent of a loop that is written out, or the lanes of vectors. Raises ScheduleError where it is none to be so."""
    if isinstance(loop.extent, Dim):
        raise ScheduleError(f"loop {loop.name}: expected an extent that is a number where it is {loop.kind}, found {loop.extent}")
    if loop.extent > MOST_UNROLLED:
        raise ScheduleError(f"loop {loop.name}: expected at most {MOST_UNROLLED} iterations where it is {loop.kind}, found {loop.extent}")
    return loop.extent


def uses_in(nodes: Sequence[Node]) -> list[Use]:
    """The blocks of a tree, in order."""
    return [use for node in nodes for use in (node.uses if isinstance(node, LoopNode) else (node,))]
