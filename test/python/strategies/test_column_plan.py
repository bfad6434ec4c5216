"""The sizes of the tasks and tiles of windows by columns, at the limits of the buffer and of the accumulators."""

from types import SimpleNamespace
from typing import Any

from relayc.pipelines.targets.cpu.strategies.windows.column_plan import ColumnParameters, ColumnPlan


def plan(columns: int, rows: int, stride: int = 1, reach: int = 2, lanes: int = 16, **numbers: int) -> ColumnPlan:
    """Of a window of f32 with the same strides and taps in both directions."""
    axes = {n: SimpleNamespace(outputs=size, stride=stride, reach=reach) for n, size in (("columns", columns), ("rows", rows))}
    structured = SimpleNamespace(block=SimpleNamespace(arguments=[]))
    window: Any = SimpleNamespace(**axes, structured=structured, data=SimpleNamespace(element=SimpleNamespace(width=32)))
    return ColumnPlan(window, ColumnParameters(lanes, **numbers))


def test_tiles_have_all_accumulators() -> None:
    """The most vectors of a row that leave the fewest of the last tile idle; rows shorter than a vector have fewer lanes."""
    assert [plan(16 * count, 99).tile_vectors for count in (1, 2, 7, 8, 9, 11)] == [1, 2, 7, 8, 3, 1]
    assert [plan(16 * count, 99).tile_rows for count in (1, 2, 3, 5)] == [8, 4, 2, 1] and plan(16, 3).tile_rows == 3
    assert [(plan(n, 9).is_narrow, plan(n, 9).lanes) for n in (5, 15, 16, 17)] == [(True, 8), (True, 16), (False, 16), (False, 16)]


def test_rows_in_the_buffer_are_apart_by_phases() -> None:
    assert [plan(100, 9, stride, reach).phases for stride, reach in ((1, 2), (2, 2), (4, 2), (4, 0))] == [1, 2, 3, 1]
    assert plan(100, 9).row_pitch == 102 and plan(100, 9, 2, 4).row_pitch == 2 * 102


def test_tasks_fill_the_buffer() -> None:
    """It has 40 rows of 102 columns, two of which are those around the first and the last row of the output."""
    assert [(plan(100, rows).block_rows, plan(100, rows).blocks) for rows in (37, 38, 39, 50)] == [(37, 1), (38, 1), (20, 2), (25, 2)]
    assert plan(100, 50).input_rows == 27 and plan(100, 50).buffer_bytes == 4 * (27 * 102 + 16) and plan(100, 50).sums_size == 2516
    assert plan(100, 50, buffer_bytes=1).block_rows == 1
    # Rows of 5 columns are in tiles of eight rows, of 7 with the taps in the buffer.
    for rows, expected in ((9, 9), (10, 8), (11, 8)):
        assert plan(5, rows, buffer_bytes=11 * 7 * 4).block_rows == expected
