"""Blocks that copy a region of a buffer to another buffer."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.dialects.tir.block import PARALLEL
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.analysis.regions import Span
from relayc.pipelines.tir.editing import moving
from relayc.pipelines.tir.tree.members import Block, Loop, ScheduleError
from relayc.pipelines.tir.tree.steps import Recorder
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Size

Place: TypeAlias = Callable[[Sequence[Index]], Sequence[Index]]
"""Computes the indices of an element from the iterators of a block."""


def common_loops(blocks: Sequence[Block]) -> list[Loop]:
    """The loops common to several blocks, outermost first."""
    found = list(blocks[0].around)
    for block in blocks[1:]:
        found = [a for a, b in zip(found, block.around, strict=False) if a is b]
    return found


def loop_between(ends: Sequence[Block], blocks: Sequence[Block]) -> Loop | None:
    """The innermost loop around all the blocks and one of `ends`, their producers or consumers."""
    around = max((common_loops([end, *blocks]) for end in ends), key=len, default=[])
    return around[-1] if around else None


def kind_of(buffer: Sequence[str | int]) -> tuple[str, str | int]:
    """Parses ["read", 0] or ["write", "C"]. Raises ScheduleError."""
    if len(buffer) != 2 or buffer[0] not in ("read", "write"):
        raise ScheduleError(f'buffer: expected ["read", position or name] or ["write", position or name], found {list(buffer)}')
    return str(buffer[0]), buffer[1]


def member_with(block: Block, loop: Loop | None) -> Loop | Block:
    """The outermost loop or block around a block inside a loop around it; for None inside the block or function around it."""
    path: list[Loop | Block] = [*block.around, block]
    return path[0 if loop is None else block.around.index(loop) + 1]


def add_copy(
    nest: Nest,
    name: str,
    source: tuple[ir.Value, Place | None],
    target: tuple[ir.Value, Place | None],
    domain: Sequence[Span],
    extents: Sequence[Size],
    beside: Loop | Block,
    behind: bool,
) -> str:
    """Adds a block that copies elements, in loops over a domain, before or behind a loop or block; returns its name.

    Args:
      source, target: a buffer, and the function from the iterators of the block to the element's indices (None: identity).
      extents: of the iteration space of the block.
    """

    def copy(record: Recorder, iterators: Sequence[Index]) -> None:
        read, written = [place(iterators) if place is not None else iterators for _, place in (source, target)]
        record.store(record.load(source[0], read), target[0], written)

    with nest.head.operation.location:
        block = nest.new_block(nest.free_block(name), [PARALLEL] * len(extents), extents, copy)
    moving.place(nest, block, domain, beside, behind)
    return block.name
