"""What emission promises to strategies about loops and sizes."""

import pytest

from relayc.dialects.mlir import func, ir, make_context
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Var
from relayc.pipelines.emission.sizes import size_product, size_value
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.pipelines.tir.values.nest import TileRun, run_of_tiles
from relayc.symbolic import symbol


def test_loops_and_sizes() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([], []))
        with ir.InsertionPoint(function.add_entry_block()):
            # A loop whose work is a number is parallel: whoever asks for it has compared the two.
            emit.parallel_loop([Var(0, 9)], lambda: None, work=10, grain=100)
            with run_of_tiles(TileRun(4, 8, 3, True), Evaluator({})) as start:
                assert start.bounds() == (4, 20)
            for use in (size_value, lambda size: size_product(emit.index_constant(2), size)):
                with pytest.raises(KeyError, match="n: a symbolic size outside of a function that takes symbols"):
                    use(symbol("n"))
        assert "parallel_if" not in str(module) and "arith.cmpi" not in str(module)
