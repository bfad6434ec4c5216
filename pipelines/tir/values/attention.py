"""Operands and results of attention kernels, independent of the order of computation."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, linearize, reshape
from relayc.pipelines.te.read.access import split_exactly
from relayc.pipelines.te.read.attention import QUERY, Attention, Scores
from relayc.pipelines.te.read.graph import Node
from relayc.pipelines.te.read.reduction import multiply_add_casts
from relayc.pipelines.tir.values.evaluator import Evaluator


class AttentionCode:
    """Reads the operands of an attention.

    Attributes:
      a: the attention.
      casts: conversions of an element of key, and of value, before their products.
      evaluator: reads the kernel's tensors; set before anything is emitted.
    """

    a: Scores
    evaluator: Evaluator

    def __init__(self, attention: Scores) -> None:
        self.a = attention
        casts = [multiply_add_casts(n.structured) for n in (attention.product, attention.by_value)]
        self.casts = [c[1] if c is not None else [] for c in casts]

    def _is_read_in_place(self, node: Node) -> bool:
        """Whether the second operand of a product is loaded from memory without computation."""
        source = node.structured.inputs[1]
        while source.kind in ("view", "slice"):
            source = source.inputs[0]
        return source.kind == "arg" and not self.casts[node is self.a.by_value]

    def _operand(self, node: Node, position: int, point: Sequence[Index]) -> ir.Value:
        """An operand of a product at a point of its loops, with its conversions."""
        structured = node.structured
        value = self.evaluator.at(structured.inputs[position], self.evaluator.apply(structured.maps[position], point))
        return emit.convert(value, self.casts[node is self.a.by_value] if position else [])

    def _initial(self, node: Node) -> ir.Value:
        """The initial value of a reduction."""
        return emit.broadcast(self.evaluator.at(node.structured.inits[0], []), self.evaluator.width)


class ContextCode(AttentionCode):
    """Computes the results of an attention from context, largest score and total."""

    a: Attention

    def _result(self, row: Sequence[Index], element: Index, context: ir.Value, total: ir.Value) -> ir.Value:
        """The result of the kernel for an element of the context and the total of its row."""
        row = [Index() if extent == 1 else index for index, extent in zip(row, self.a.shape, strict=False)]
        point = self.a.context_point(row, element)
        self.evaluator.remember(self.a.total, row, total)
        self.evaluator.remember(self.a.context, point, context)
        return self.evaluator.at(self.a.result, self.a.result_point(point))

    def _log_sum_exp(self, row: Sequence[Index], largest: ir.Value, total: ir.Value) -> tuple[ir.Value, Index]:
        """The kernel's second result for a row, and its place there."""
        row, shape = list(row[: QUERY + 1]), self.a.shape[: QUERY + 1]
        row = [Index() if extent == 1 else index for index, extent in zip(row, shape, strict=True)]
        assert self.a.lse is not None
        for node, value in ((self.a.largest, largest), (self.a.total, total)):
            self.evaluator.remember(node, row, value)
        return self.evaluator.at(self.a.lse, reshape(row, shape, self.a.lse.shape, split_exactly)), linearize(row, shape)

    def _place(self, row: Sequence[Index], element: Index) -> Index:
        """The flat index of the result for an element of the context."""
        return linearize(self.a.context_point(row, element), self.a.context.shape)


def larger(score: ir.Value, largest: ir.Value) -> ir.Value:
    """The larger of two scores; the second if the first is NaN, whose weight then becomes NaN too."""
    return emit.select(emit.compare("ogt", score, largest), score, largest)
