"""The sizes of the tasks and tiles of windows, at the limits of the buffer, of the accumulators and of rows that only a call knows."""

from types import SimpleNamespace
from typing import Any

import pytest

from relayc.dialects.mlir import func, ir, make_context
from relayc.pipelines.emission import sizes
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.windows import column_plan
from relayc.pipelines.targets.cpu.strategies.windows.column_plan import ColumnParameters, ColumnPlan
from relayc.pipelines.targets.cpu.strategies.windows.symbolic_columns import Ends, SymbolicColumns
from relayc.pipelines.te.read.window import WindowAxis
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Range, Ranges, symbol


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


def symbolic(low: int, high: int, most: int = 16) -> SymbolicColumns:
    """Of n columns with three taps each, and so many elements of padding before and behind them."""
    n = symbol("n")
    return SymbolicColumns(WindowAxis(Var.below(n), Var.below(3), 1, 1, low, n, high), most)


def function_of_n(module: ir.Module) -> func.FuncOp:
    """A function of the symbol n in a module, which the caller has to keep: an operation does not keep its parents."""
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("f", ([ir.IndexType.get()], []))
        function.arg_attrs = ir.ArrayAttr.get(sizes.symbol_attributes("n"))
    return function


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (1, 1, 16, [(13, "8. 8.. 8"), (5, "4. 4.. 4"), (3, "2. 2.. 2"), (0, "1...")]),
        (2, 0, 16, [(13, "8. 8.. 8"), (6, "4. 4.. 4"), (4, "2. 2.. 2"), (0, "1...")]),
        (2, 1, 4, [(7, "4. 4.. 4"), (0, "1...")]),
        (-1, -1, 2, [(4, "2"), (0, "1...")]),
    ],
)
def test_tiles_of_rows_whose_length_a_call_says(low: int, high: int, most: int, expected: Any, monkeypatch: Any) -> None:
    """The least length of rows with tiles of a size, and these: one dot stands for padding before it, two behind it."""
    found: list[Any] = [(0, "")]

    def at_least(wanted: Any, _: Any, then: Any, otherwise: Any) -> None:
        found[-1] = (wanted[0][1], "")
        then()
        found.append((0, ""))
        otherwise()

    def tile(_: Any, size: int, ends: Ends) -> None:
        found[-1] = (found[-1][0], f"{found[-1][1]} {size}{'.' * (ends.before + 2 * ends.behind)}".strip())

    monkeypatch.setattr("relayc.pipelines.tir.values.nest.at_least", at_least)
    with make_context(), ir.Location.unknown(), Ranges({"n": Range(1)}):
        module = ir.Module.create()
        function = function_of_n(module)
        with ir.InsertionPoint(function.add_entry_block()), sizes.function_sizes(function):
            symbolic(low, high, most).choose(Evaluator({}), lambda columns: columns(tile))
    assert found == expected


def test_what_is_known_of_padding_is_not_asked() -> None:
    """Whether a column is inside, where tiles of 8 reach 2 columns before the first and behind the last; None where a call says it."""
    with make_context(), ir.Location.unknown(), Ranges({"n": Range(1)}):
        module = ir.Module.create()
        function = function_of_n(module)
        with ir.InsertionPoint(block := function.add_entry_block()), sizes.function_sizes(function):
            n, columns = symbol("n"), symbolic(2, 2)

            def inside(at: Index, reach: int = 5, before: bool = False, behind: bool = False) -> bool | None:
                found = columns.inside(at, reach, 8, Ends(before, behind))
                return found if isinstance(found, bool) else None

            def within(low: Any, high: Any) -> Index:
                return Index.of(Var(low, high, block.arguments[0]))

            assert [inside(Index(at)) for at in (-1, 0, n - 1, n)] == [False, True, True, False]
            assert [inside(within(-1, 5), reach, before=True) for reach in (1, 2)] == [None, True]
            assert [inside(within(low, 5), 0, before=True) for low in (-1, 0)] == [None, True]
            assert [inside(within(0, n), reach, behind=True) for reach in (7, 8)] == [True, None]
            assert [inside(within(0, high), 9, behind=True) for high in (n - 1, n)] == [True, None]
            assert inside(within(-9, n * 2)) is True


def test_bytes_are_multiplied_as_floats_in_short_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both operands are bytes, and the sum begins at 0."""
    monkeypatch.setattr(column_plan, "multiply_add_casts", lambda structured: [[("arith.extsi", None)]] * 2)

    def are_floats(lanes: int, *bits: int, start: int = 0) -> bool:
        init = SimpleNamespace(op=SimpleNamespace(attributes={"value": SimpleNamespace(value=start)}))
        inputs = [SimpleNamespace(element=ir.IntegerType.get_signless(n)) for n in bits]
        structured = SimpleNamespace(block=SimpleNamespace(arguments=[None] * 3), inputs=inputs, inits=[init])
        window: Any = SimpleNamespace(structured=structured)
        return ColumnPlan(window, ColumnParameters(lanes)).to_floats is not None

    with make_context():
        assert [are_floats(column_plan.MOST_FLOATS + more, 8, 8) for more in (0, 1)] == [True, False]
        assert not are_floats(8, 8, 16) and not are_floats(8, 8, 8, start=1)
