"""Which layout and which block of sums a contraction by groups gets: those of the fewest cycles by a model of one core."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, PairsLayout, SumBlock, layouts
from relayc.pipelines.te.read.contraction import Contraction, match
from relayc.pipelines.te.read.graph import Kernel, memory_of
from relayc.pipelines.tir.strategy.scheduled import is_param
from relayc.symbolic import Size, ceil_div, guess

COPIED = 16
"""Elements that a copy of an operand moves in a cycle where it moves vectors; transposed or widened they are a quarter, one by one a
sixteenth."""
STORED = 12
"""Results that the epilogue stores in a cycle where they are neighbours along the columns; transposed half as many."""


@dataclass(frozen=True)
class Lower:
    """Blocks of lower tiles for few rows.

    Attributes:
      blocks: of which none has tiles of more rows than there are where it is chosen.
      choice: for 0, 1, 2, ... rows which block; for more the one that these stand beside.
      staged, staged_choice: the same where the rows are copied first to where rows behind the last may be read: one tile has them all.
    """

    blocks: Sequence[SumBlock]
    choice: Sequence[int]
    staged: Sequence[SumBlock] = ()
    staged_choice: Sequence[int] = ()


def cheapest(blocks: Iterable[SumBlock], rows: int, column_tiles: int, cycles: Callable[[SumBlock], float]) -> SumBlock:
    """The block that takes the fewest cycles of a step for so many rows and tiles of columns, then the fewest loads."""

    def cost(block: SumBlock) -> tuple[float, float]:
        count = ceil_div(rows, block.rows) * ceil_div(column_tiles, block.column_tiles)
        return count * cycles(block), count * (block.rows + block.column_tiles)

    return min(blocks, key=cost)


@dataclass(frozen=True)
class Instructions:
    """What plans are made for.

    Attributes:
      takes: whether a contraction is of the elements that the instructions multiply.
      group: elements that are multiplied and added to one sum.
      max_step: reduction steps of an instruction, at most.
      block: the block of sums for (rows along the innermost loop, row tiles around them, columns).
      cycles: of a block for one instruction in depth.
      lower: the blocks for fewer rows than a block is made for, where a call says how many there are.
      shift: what makes elements of A such as the instructions take (see `PairsLayout.shift`).
      sorts: whether they take groups of a parameter in an order of its own (see `integers.SortedNest`).
    """

    takes: Callable[[Contraction], bool]
    group: int
    max_step: int
    block: Callable[[int, int, int], SumBlock]
    cycles: Callable[[SumBlock], float]
    lower: Callable[[SumBlock], Lower]
    shift: Callable[[Contraction], int] = lambda _: 0
    sorts: bool = False


@dataclass(frozen=True)
class Plan:
    """A way to run a contraction, and about how many cycles it takes on one core."""

    contraction: Contraction
    layout: PairsLayout
    block: SumBlock
    cycles: float
    instructions: Instructions

    @property
    def work(self) -> Size:
        """Multiply-adds."""
        return prod(v.extent for v in self.contraction.variables)

    @property
    def vector_cycles(self) -> float:
        """Cycles of the same work on f32 vectors: two multiply-adds of 16 lanes a cycle, the least that any schedule takes."""
        c = self.contraction
        return guess(c.batches * prod(row.extent for row in c.rows) * c.column_extent * c.depth) / 32


def best_plan(kernel: Kernel, instructions: Instructions) -> Plan | None:
    """The plan of fewest cycles over the roles of a kernel's operands; None where it is no contraction that they take, or does not fit."""
    if all(isinstance(node.element, (ir.F32Type, ir.F64Type)) for node in kernel.nodes()):
        return None  # the instructions multiply narrow elements
    found = []
    for contraction in (c for broadcasts in (False, True) for c in match(kernel, fills=True, broadcasts=broadcasts)):
        if instructions.takes(contraction) and all(memory_of(o.node) is not None for o in (contraction.a, contraction.b)):
            packed = is_param(kernel, contraction.b.node)
            shift, possible = instructions.shift(contraction), layouts(contraction, instructions.max_step, instructions.group)
            usable = (layout for layout in possible if not instructions.sorts or (packed and _is_known(layout)))
            chosen = (replace(layout, shift=shift, sorts=instructions.sorts) for layout in usable)
            plans = (_plan(contraction, layout, packed, instructions) for layout in chosen)
            found += [plan for plan in plans if plan is not None]
    return min(found, key=lambda plan: plan.cycles, default=None)


def _is_known(layout: PairsLayout) -> bool:
    """Whether it is known when compiling where the groups of A are."""
    return isinstance(layout.depth, int) and all(isinstance(stride, int) for stride in layout.strides)


def _plan(contraction: Contraction, layout: PairsLayout, packed: bool, instructions: Instructions) -> Plan | None:
    c = contraction
    rows = layout.row_loops(c)
    if not _is_regular(c, layout):
        return None
    columns_hint = c.column_extent if isinstance(c.column_extent, int) else max(guess(c.column_extent), MANY_COLUMNS)
    extent, outer = guess(rows[-1].extent) if rows else 1, guess(prod(row.extent for row in rows[:-1]))
    batches = guess(c.batches)
    is_known = not rows or isinstance(rows[-1].extent, int)
    block = instructions.block(extent if is_known else MANY_ROWS, outer, columns_hint)
    tiles = ceil_div(extent, block.rows) * outer
    row_blocks = ceil_div(tiles, block.row_tiles)
    columns = ceil_div(columns_hint, block.width)
    cycles = batches * row_blocks * columns * guess(layout.steps) * instructions.cycles(block)
    if layout.copy is not None:
        contiguous = c.a.offset.coefficient(layout.inner[-1]) == 1
        cycles += guess(layout.copied) / COPIED * (1 if contiguous else 4)
    if not packed:
        if len(layout.inner) != 1 or len(c.columns) != 1 or layout.shift:
            return None  # groups and columns of several loops, and what sums begin at, are made at compile time only
        regular = 1 in (c.b.offset.coefficient(c.column), c.b.offset.coefficient(layout.inner[0]))
        cycles += batches * guess(layout.depth) * columns * block.width / COPIED * (1 if regular else 16)
    cycles += batches * outer * extent * columns_hint / STORED * (1 if c.store_stride(c.column) == 1 else 2)
    return Plan(c, layout, block, cycles, instructions)


MANY_ROWS = 240
"""Rows that a block is chosen for where a call says how many there are: so many that tiles of any height have them about evenly."""


MANY_COLUMNS = 64
"""Columns that a block is chosen for, at least, where a call says how many there are."""


def _is_regular(c: Contraction, layout: PairsLayout) -> bool:
    """Whether masks suffice for what a call says: columns that are stored side by side, rows of B and of A that are contiguous."""
    if not isinstance(c.column_extent, int) and (len(c.columns) != 1 or c.store_stride(c.column) != 1):
        return False
    if isinstance(layout.depth, int) and isinstance(layout.size, int):
        return True
    contiguous = c.b.offset.coefficient(c.column) == 1 and c.a.offset.coefficient(layout.inner[-1]) == 1
    return contiguous and len(layout.inner) == 1 and not c.a.checks


LOWER = (8, 6, 4, 3, 2, 1)
"""Heights of tiles of vectors where a call says how many rows there are."""
MOST_LOWER = 20
"""Rows up to which these are chosen from."""


def lower_rows(block: SumBlock, cycles: Callable[[SumBlock], float]) -> Lower:
    """The lower tiles of vectors of the fewest cycles."""
    heights = [n for n in LOWER if n <= block.rows]
    blocks = [SumBlock(n, 1, block.column_tiles) for n in heights]

    def best(rows: int) -> int:
        costs = {i: ceil_div(rows, n) * (cycles(found) + 1) for i, (n, found) in enumerate(zip(heights, blocks, strict=True)) if n <= rows}
        return min(costs, key=lambda i: (costs[i], i), default=len(heights) - 1)

    return Lower(blocks, [best(rows) for rows in range(MOST_LOWER + 1)])


def column_tiles(columns: int) -> int:
    """Blocks of COLUMNS columns."""
    return ceil_div(columns, COLUMNS)
