"""What emission promises to strategies about loops and sizes."""

import pytest

from relayc.dialects.mlir import func, ir, make_context
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.emission.sizes import size_product, size_value
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.pipelines.tir.values.nest import TileRun, carrying, loop, run_of_tiles
from relayc.pipelines.tir.values.vectors import is_byte_table
from relayc.symbolic import maximum, symbol


def test_loops_and_sizes() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([], []))
        with ir.InsertionPoint(function.add_entry_block()):
            # A loop whose work is a number is parallel: whoever asks for it has compared the two. So is one that has enough in any call.
            for work in (10, maximum(symbol("n"), 100)):
                with emit.parallel_loop([Var(0, 9)], work, grain=100):
                    pass
            with run_of_tiles(TileRun(4, 8, 3, True), Evaluator({})) as start:
                assert start.bounds() == (4, 20)
            for use in (size_value, lambda size: size_product(emit.index_constant(2), size)):
                with pytest.raises(KeyError, match="n: a symbolic size outside of a function that takes symbols"):
                    use(symbol("n"))
        assert "parallel_if" not in str(module) and "arith.cmpi" not in str(module)


@pytest.mark.parametrize(
    ("numbers", "below", "bounds", "divisor"),
    [
        ((0, 10, 4), None, (0, 8), 4),
        ((3, 10, 4), None, (3, 7), 1),
        ((0, None, 4), 12, (0, 8), 4),
        ((None, None, 1), 5, (0, 4), 1),
        ((None, 7, 2), None, (0, 6), 1),
    ],
)
def test_the_index_of_a_loop_is_within_what_is_known_of_it(numbers, below, bounds, divisor) -> None:
    """None stands for a value of the running program; from there on, any index may be the first."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([], []))
        with ir.InsertionPoint(function.add_entry_block()):
            value = emit.index_constant(2)
            low, high = (value if number is None else number for number in numbers[:2])
            with loop(low, high, Evaluator({}), step=numbers[2], below=below) as index:
                assert (index.bounds(), index.divisor) == (bounds, divisor)
            with carrying(low, high, Evaluator({}), [value], step=numbers[2], below=below) as (index, made):
                assert (index.bounds(), index.divisor) == (bounds, divisor)
                emit.yield_values(made.inner_iter_args)
            func.ReturnOp([])
        assert module.operation.verify() and str(module).count("scf.for") == 2


def test_constants_are_emitted_once() -> None:
    """At the start of a function; zeros keep their signs, and what a pass may erase is not taken."""
    with make_context(), ir.Location.unknown():
        module, f32 = ir.Module.create(), ir.F32Type.get()
        with ir.InsertionPoint(module.body):
            zero = ir.FloatAttr.get(f32, 0.0)
            there = emit.constant(zero, f32)
            with emit.constants_at(module.body):
                first, negative, *others = (emit.number(value, f32) for value in (0.0, -0.0, 0, 0.0))
                assert [*others, emit.constant(zero, f32)] == [first] * 3 and there != first
                assert str(negative.owner.attributes["value"]).startswith("-0.0")
            with emit.constants_at(emit.Constants(module.body, reuse=True)):
                assert emit.constant(zero, f32) in (there, first)


def test_tables_of_bytes_are_flat_and_have_256() -> None:
    tables = {
        "256xi8": True,
        "255xi8": False,
        "257xi8": False,
        "16x16xi8": False,
        "256x1xi8": False,
        "256xi16": False,
        "256xf8E4M3FN": False,
    }
    with make_context():
        assert {shape: is_byte_table(ir.Type.parse(f"memref<{shape}>")) for shape in tables} == tables
        assert not is_byte_table(ir.Type.parse("vector<256xi8>"))
