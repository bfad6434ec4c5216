"""What strategies of windows share: the epilogue on the sums of a window."""

from collections.abc import Mapping

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.te.read.window import Window
from relayc.pipelines.tir.values.evaluator import Evaluator


def store_result(
    window: Window, evaluator: Evaluator, output: ir.Value, point: Mapping[Var, Index], row: Index, column: Index, sums: ir.Value
) -> None:
    """Evaluates the epilogue on the sums at an output row and column and stores the result."""
    at = dict(point)
    for axis, index in ((window.columns, column), (window.rows, row)):
        if axis.output is not None:
            at[axis.output] = index
    where = window.output_at(at)
    evaluator.remember(window.node, where, sums)
    evaluator.store(evaluator.at(window.root, window.root_at(where)), output, linearize(where, window.node.shape))
