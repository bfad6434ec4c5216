"""The tiles of products by groups, at the limits of registers, latencies and loads."""

from types import SimpleNamespace
from typing import Any

import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.bf16.amx import tile_block, tile_lower
from relayc.pipelines.targets.cpu.strategies.bf16.dot import DOTS
from relayc.pipelines.targets.cpu.strategies.bf16.integers import FOURS, HALVES, PAIRS, SORTED, Dots
from relayc.pipelines.targets.cpu.strategies.bf16.layout import CopiedAxis, SumBlock
from relayc.pipelines.targets.cpu.strategies.bf16.nest import PairsNest
from relayc.pipelines.targets.cpu.strategies.bf16.rows import RowsCopy
from relayc.pipelines.targets.cpu.strategies.windows.tasks import run_length


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (15, 16, (15, 1)),
        (15, 17, (15, 1)),  # 30 cycles; two vectors have registers for 14 rows, and take two tiles of 8
        (14, 17, (14, 2)),
        (8, 64, (4, 4)),  # 32 cycles and 16 loads, where two vectors of all rows take 20 loads
        (1, 64, (1, 4)),
        (1, 80, (1, 3)),  # twice the latency, as with four, which load more
        (60, 64, (6, 4)),
        (31, 16, (16, 1)),
    ],
)
def test_tiles_of_pairs_in_vectors(rows: int, columns: int, expected: tuple[int, int]) -> None:
    block = DOTS.block(rows, 1, columns)
    assert (block.rows, block.column_tiles) == expected and block.row_tiles == 1
    assert DOTS.cycles(block) == max(6, block.rows * block.column_tiles)


def test_tiles_of_fours_in_vectors() -> None:
    """Of wide vectors up to 14 rows and four columns; of narrow ones, two of which are a block of columns, one block."""
    assert [Dots(16, 32, FOURS).most_rows(tiles) for tiles in (1, 2, 3, 4)] == [14, 14, 9, 6]
    assert [Dots(8, 16, products).most_rows(1) for products in (FOURS, PAIRS, HALVES, SORTED)] == [6, 5, 4, 5]
    assert Dots(8, 8, HALVES).most_rows(1) == Dots(8, 16, FOURS).most_rows(8) == 1
    wide, narrow, few = (Dots(*sizes, FOURS) for sizes in ((16, 32), (8, 16), (8, 8)))
    assert wide.block(8, 1, 64) == SumBlock(4, 1, 4) and wide.block(14, 1, 64) == SumBlock(14, 1, 2)
    assert wide.block(1, 1, 1000) == SumBlock(1, 1, 4) and wide.block(4, 1, 32) == SumBlock(4, 1, 2)
    assert narrow.block(14, 1, 1000) == SumBlock(5, 1, 1) and few.block(4, 1, 1000) == SumBlock(2, 1, 1)
    assert Dots(16, 32, SORTED).block(8, 1, 64) == SumBlock(8, 1, 1)


def test_cycles_of_groups() -> None:
    """Eight products of a step of four rows and two vectors; halves are two, and are widened. Seldom less than the latency."""
    block = SumBlock(4, 1, 2)
    assert [Dots(16, 32, products).cycles(block) for products in (FOURS, PAIRS, HALVES)] == [8, 12, 18]
    assert Dots(8, 16, FOURS).cycles(block) == 16 and Dots(16, 32, FOURS).cycles(SumBlock(1, 1, 1)) == 6


def test_tiles_in_tile_registers() -> None:
    """Four sums at most: of one column all tiles of rows, of one row of tiles all columns."""
    for rows, outer, columns, expected in (
        (17, 1, 16, (9, 2, 1)),
        (100, 1, 16, (15, 4, 1)),
        (16, 3, 16, (16, 3, 1)),
        (16, 5, 16, (16, 4, 1)),
        (16, 1, 33, (16, 1, 3)),
        (16, 1, 200, (16, 1, 4)),
        (16, 3, 17, (16, 2, 2)),
    ):
        assert tile_block(rows, outer, columns) == SumBlock(*expected), (rows, outer, columns)
    for column_tiles, together in ((1, 2), (2, 2), (4, 1)):
        assert [b.row_tiles for b in tile_lower(SumBlock(16, 1, column_tiles)).blocks] == [together, together, together, 1, 1]


def test_lower_tiles_are_those_of_the_fewest_cycles() -> None:
    """Three rows are a tile of three; seven are two of four in 18 cycles, where two of six take 26."""
    for rows, heights in ((8, [8, 6, 4, 3, 2, 1]), (7, [6, 4, 3, 2, 1]), (1, [1])):
        lower = DOTS.lower(SumBlock(rows, 1, 2))
        assert [block.rows for block in lower.blocks] == heights
        chosen = [heights[at] for at in lower.choice]
        assert chosen[:9] == ([1, 1, 2, 3, 4, 3, 6, 4, 8] if rows == 8 else [1, 1, 2, 3, 4, 3, 6, 4, 4] if rows == 7 else [1] * 9)


def test_runs_are_as_many_as_there_are_tasks_for() -> None:
    assert [run_length(10, pieces) for pieces in (0, 1, 3, 9, 10, 99)] == [10, 10, 4, 2, 1, 1]


def test_rows_are_transposed_in_blocks_of_sixteen() -> None:
    """Or of 2, 4 or 8 steps; what is outside of the operand is a padding."""

    def are(rows: int, steps: int, pitch: int, low: int = 0, contiguous: int = 1) -> bool:
        copy = object.__new__(RowsCopy)
        copy.axes = (CopiedAxis(0, 0, 1, rows, rows, rows), CopiedAxis(1, low, 1, steps, steps, pitch))
        copy.steps = [contiguous, rows]
        return copy._transposes()

    assert are(16, 16, 16) and are(16, 3, 4) and not are(15, 16, 16) and not are(16, 15, 15)
    assert not are(16, 16, 16, low=-1) and not are(16, 16, 16, contiguous=2)
    assert [CopiedAxis(0, low, 2, 4, size, 4).is_padded for low, size in ((0, 7), (0, 6), (-1, 7), (1, 8), (1, 7))] == [
        False,
        True,
        True,
        False,
        True,
    ]


def test_loops_over_what_no_cache_holds_are_divided() -> None:
    """Into parts of half of the second-level cache where all of it is more than three quarters, for tiles."""
    core = Target("cpu", mcpu="sapphirerapids", l2_bytes=2 << 20)

    def part(extent: int, num_bytes: int, uses_tiles: bool = True) -> object:
        instructions = SimpleNamespace(uses_tiles=uses_tiles)
        nest: Any = SimpleNamespace(target=core, instructions=instructions, block=None, plan=SimpleNamespace(block=None))
        return PairsNest._part(nest, extent, num_bytes)

    most = 3 << 19
    assert [part(16, n) for n in (0, most, most + 1, 1 << 30)] == [None, None, 8, 1]
    assert part(1, 1 << 30) is None and part(16, most + 1, uses_tiles=False) is None


def test_the_last_tile_of_a_row_begins_in_the_one_before() -> None:
    """Of 37 rows in tiles of 16, the last 5 are new; in no other tile are there old ones."""
    around, row, tile = Var.below(6), Var.below(37), Var.below(3)
    block = SimpleNamespace(rows=16, row_tiles=3)
    rows = [SimpleNamespace(var=around, extent=6), SimpleNamespace(var=row, extent=37)]
    nest: Any = SimpleNamespace(block=block, row=row, is_staged=False, along_rows=False, rows=rows, tile=tile, row_extent=37)
    with make_context(), ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        found = [PairsNest._tile_point(nest, {around: Index(1), tile: Index(i)}, Index(2)) for i in range(3)]
        assert [(point[row].bounds(), old.bounds()) for point, old in found] == [((0, 0), (0, 0)), ((16, 16), (0, 0)), ((21, 21), (11, 11))]
