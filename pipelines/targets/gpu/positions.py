"""The indices of the current block and thread, as values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import gpu, ir
from relayc.dialects.operations import keyword_of
from relayc.pipelines.emission import emit

WARP = 32
"""Threads of a warp."""


@dataclass(frozen=True)
class Position:
    """Where a thread is: values of type index, each for x, y and z.

    Attributes:
      grid, block: the sizes of the grid, in blocks, and of a block, in threads.
      block_id, thread_id: the numbers of the block in the grid and of the thread in the block.
      linear: the number of the thread in its block, x fastest.
    """

    grid: Sequence[ir.Value]
    block: Sequence[ir.Value]
    block_id: Sequence[ir.Value]
    thread_id: Sequence[ir.Value]
    linear: ir.Value


def product(sizes: Sequence[ir.Value]) -> ir.Value:
    """How many blocks a grid has, or threads a block."""
    return emit.arith("muli", emit.arith("muli", sizes[0], sizes[1]), sizes[2])


AXES: Mapping[str, Callable[[Position], Sequence[ir.Value]]] = {
    "thread_id": lambda at: at.thread_id,
    "block_id": lambda at: at.block_id,
    "block_dim": lambda at: at.block,
    "grid_dim": lambda at: at.grid,
    "global_id": lambda at: [
        emit.arith("addi", emit.arith("muli", number, size), thread)
        for number, size, thread in zip(at.block_id, at.block, at.thread_id, strict=True)
    ],
}
"""The numbers of a position that have an axis, by the names of the gpu dialect."""

NUMBERS: Mapping[str, Callable[[Position], ir.Value]] = {
    "lane_id": lambda at: emit.arith("remui", at.linear, emit.index_constant(WARP)),
    "subgroup_id": lambda at: emit.arith("divui", at.linear, emit.index_constant(WARP)),
    "subgroup_size": lambda at: emit.index_constant(WARP),
    "num_subgroups": lambda at: emit.arith("ceildivui", product(at.block), emit.index_constant(WARP)),
}
"""The other ones."""


def number_of(op: ir.Operation, at: Position) -> ir.Value:
    """What an operation of the gpu dialect gives: one of AXES, or of NUMBERS."""
    name = op.name.removeprefix("gpu.")
    return AXES[name](at)[gpu.Dimension[keyword_of(op, "dimension")].value] if name in AXES else NUMBERS[name](at)


def linear_thread(block: Sequence[ir.Value], thread_id: Sequence[ir.Value]) -> ir.Value:
    """The number of a thread in its block."""
    rows = emit.arith("addi", emit.arith("muli", thread_id[2], block[1]), thread_id[1])
    return emit.arith("addi", emit.arith("muli", rows, block[0]), thread_id[0])


def block_of(grid: Sequence[ir.Value], number: ir.Value) -> list[ir.Value]:
    """The numbers of a block along x, y and z, of its number in the grid; or those of a thread, of its number in its block."""
    row = emit.arith("divui", number, grid[0])
    return [emit.arith("remui", number, grid[0]), emit.arith("remui", row, grid[1]), emit.arith("divui", row, grid[1])]
