"""What strategies of windows share: the padding of a window, and the epilogue on its sums."""

from collections.abc import Mapping

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.te.read.window import Window
from relayc.pipelines.tir.values.evaluator import Evaluator


def padding_vector(window: Window, lanes: int) -> ir.Value:
    """A vector of what surrounds the input; of zeros where nothing does."""
    element, value = window.data.element, window.pad_value
    return emit.broadcast(emit.zero(element) if value is None else emit.constant(value.attributes["value"], element), lanes)


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
