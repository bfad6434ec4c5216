"""What the schedules of attention have in common: rows of a block, the keys that they see, scores and their softmax.

The queries that share keys and values are rows: heads of the query of one head of the key, and the queries of each. The blocks of a launch
go over batches, heads of the key, and blocks of rows.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.te.read.attention import BATCH, KEY, KEY_HEAD, QUERY, QUERY_HEAD, Attention
from relayc.pipelines.tir.gpu.aligned import AlignedEvaluator
from relayc.pipelines.tir.strategy.scheduled import KernelFunction
from relayc.pipelines.tir.values.attention import ContextCode

LOG2E = 1.4426950408889634


def exp(x: ir.Value) -> ir.Value:
    """e**x of a scalar; of an f32 by the power of two that the hardware has: within 2e-7 + 9e-8 * |x| of itself."""
    if not isinstance(x.type, ir.F32Type):
        return emit.create("math.exp", [x.type], [x])
    return exp2(emit.arith("mulf", x, emit.number(LOG2E, x.type)))


def exp2(x: ir.Value) -> ir.Value:
    """2**x of an f32, by the instruction that the hardware has."""
    return emit.create("math.exp2", [x.type], [x], {"fastmath": emit.parsed("#arith.fastmath<afn>")})


class GpuAttention(ContextCode):
    """An attention while code for it is emitted into launches.

    Attributes:
      wide: element type of the scores.
      keys, depth, width: keys, elements of a head of query and key, elements of a head of value.
      rows: that share keys.
      heads: batches times heads of the key.
    """

    def __init__(self, attention: Attention) -> None:
        super().__init__(attention)
        shape = attention.shape
        self.wide = attention.product.element
        self.keys, self.depth, self.width = shape[KEY], attention.depth, attention.width
        self.rows, self.heads = attention.rows_of_key, attention.heads_of_key

    def begin(self, body: KernelFunction) -> None:
        """What is emitted from now on reads and writes the buffers of a function."""
        self.evaluator, self.output = AlignedEvaluator(body.evaluator.buffers), body.outputs[0]

    def row_point(self, head: Index, row: Index) -> list[Index]:
        """Indices BATCH to QUERY of a row of a head, which is a number below `heads`."""
        shape, split = self.a.shape, self.evaluator.quotient_and_rest
        found: list[Index] = []
        for index, outer, inner in ((head, BATCH, KEY_HEAD), (row, QUERY_HEAD, QUERY)):
            if shape[outer] == 1:
                found += [Index(), index]
            elif shape[inner] == 1:
                found += [index, Index()]
            else:
                found += split(index, shape[inner])
        return [Index() if extent == 1 else index for extent, index in zip(shape, found, strict=False)]

    def seen(self, first: Index, count: int) -> ir.Value:
        """How many of the keys, from the first one on, some of `count` rows from a row on may see (index)."""
        return self._seen(first, count, True)

    def seen_by_all(self, first: Index, count: int) -> ir.Value:
        """How many of the keys, from the first one on, each of `count` rows from a row on may see (index)."""
        return self._seen(first, count, False)

    def _seen(self, first: Index, count: int, by_some: bool) -> ir.Value:
        if self.a.causal is None:
            return emit.index_constant(self.keys)
        shape, last = self.a.shape, emit.at_most(first + (count - 1), self.rows - 1)
        query = last if by_some else first
        if shape[QUERY] == 1:
            query = Index()
        elif shape[QUERY_HEAD] != 1:
            (first_head, first_place), (last_head, last_place) = (self.evaluator.quotient_and_rest(i, shape[QUERY]) for i in (first, last))
            same = emit.compare("eq", emit.materialize(first_head), emit.materialize(last_head))
            end = shape[QUERY] - 1
            place, other = (last_place, Index(end)) if by_some else (first_place, Index())
            query = self.evaluator.opaque(emit.select(same, emit.materialize(place), emit.materialize(other)), 0, end)
        return emit.smaller(emit.larger(emit.materialize(query + self.a.causal + 1), 0), self.keys)

    def score(self, row: Sequence[Index], key: Index, product: ir.Value, end: ir.Value | None) -> ir.Value:
        """The score of a product, -inf for keys from `end` on (None where there are none); what those read belongs to the last key."""
        inside = None if end is None else emit.compare("slt", emit.materialize(key), end)
        if end is not None:
            key = emit.at_most(key, self.keys - 1)
        point = [*row, key]
        with self.evaluator.scope():
            self.evaluator.remember(self.a.product, point, product)
            score = self.evaluator.at(self.a.scores, point)
        return score if inside is None else emit.select(inside, score, emit.number(float("-inf"), self.wide))

    def weight(self, score: ir.Value, largest: ir.Value) -> ir.Value:
        return exp(emit.arith("subf", score, largest))

    def store_result(self, row: Sequence[Index], element: Index, context: ir.Value, total: ir.Value) -> None:
        """Writes what the kernel gives for an element of the context and the total of its row."""
        with self.evaluator.scope():
            self.evaluator.store(self._result(row, element, context, total), self.output, self._place(row, element))
