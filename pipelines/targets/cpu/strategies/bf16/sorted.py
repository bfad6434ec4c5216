"""Exact products of bytes by pmaddubsw where the signed ones are a parameter of eight bits.

The instruction multiplies pairs of unsigned bytes by pairs of signed ones and adds each pair up to 16 bits, in which the sum may not fit:
two products by 255 fit if the signed bytes of one sign add up to 128 at most. In each block of columns, packing puts first the groups
whose pairs all fit: two thirds of the groups in a ResNet-50 of normally distributed weights. The other groups are widened and multiplied
by pmaddwd. The block says how many groups fit, and where the elements of each group are in the other operand.
"""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock
from relayc.pipelines.targets.cpu.strategies.bf16.nest import BlockKernel, PairsNest, Point, Values
from relayc.pipelines.targets.cpu.strategies.bf16.packing import head_offset
from relayc.pipelines.targets.cpu.strategies.bf16.plan import Plan
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.pipelines.tir.values import nest, vectors


class SortedNest(PairsNest):
    """Emits a contraction whose groups are sorted (see `packing.packed_shape`), in blocks of sums of one block of columns.

    Attributes:
      make_rest: makes the instructions for the groups whose pairs do not all fit.
    """

    def __init__(
        self,
        kernel: Kernel,
        plan: Plan,
        instructions: Callable[[SumBlock], BlockKernel],
        rest: Callable[[SumBlock], BlockKernel],
        target: Target,
        tuning: Tuning,
    ) -> None:
        self.make_rest = rest
        super().__init__(kernel, plan, instructions, target, tuning)

    def _reduce(self, loops: list[Var], points: Sequence[Point], sums: Values) -> Values:
        """Two loops in turn, which carry the sums."""
        layout = self.layout
        count = int(layout.depth) // layout.group
        ends = [int(stride) * int(v.high) for stride, v in zip(layout.strides, layout.outer, strict=True)]
        low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends) + int(layout.run)
        head = head_offset(self.c, layout, self.blocks, points[0], points[0][self.column_block])
        order = head + layout.start * layout.group * COLUMNS
        fit = self._word(order)
        for kernel, first, end in ((self.instructions, 0, fit), (self.make_rest(self.block), fit, count)):
            with nest.carrying(first, end, self.evaluator, sums, below=count, name="group") as (group, op):
                where = Index.of(Var(low, high, self._word(order + (group + 1) * layout.group), name="where"))
                columns = [head + (group + layout.head) * (layout.group * COLUMNS)]
                if self.prefetches:
                    self._prefetch(columns)
                rows = [layout.offset.at(p) + where for p in points]
                emit.yield_values(kernel.step(self.a, rows, self._stride(), self.b, columns, list(op.inner_iter_args)))
            sums = list(op.results)
        return sums

    def _word(self, at: Index) -> ir.Value:
        """An integer of 32 bits between the bytes of B."""
        bits = vectors.bitcast(vectors.load(self.b, at, 4), ir.IntegerType.get_signless(32))
        return emit.create("arith.index_cast", [ir.IndexType.get()], [vectors.extract(bits, 0)])
