"""The stages of a block along the depth.

While the sums of one stage are computed, the copies of the next stages are in flight. Each turn waits for its own stage, joins the other
threads at one barrier, after which the stage of the previous turn is free, starts the copy to the free stage, and computes.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.product.copies import Copy
from relayc.pipelines.targets.cuda.strategies.product.plan import Plan
from relayc.pipelines.targets.cuda.strategies.product.problem import hoisted
from relayc.pipelines.tir.gpu.copies import commit_copies, wait_for_copies
from relayc.pipelines.tir.gpu.launch import barrier
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.evaluator import Evaluator


class Pipeline:
    """Emits the sums of a range of turns; copies and sums are prepared."""

    def __init__(self, plan: Plan, copies: Sequence[Copy], evaluator: Evaluator) -> None:
        self.plan, self.copies, self.evaluator = plan, copies, evaluator
        self.is_asynchronous = any(way.copied for way in plan.ways)

    def sums(self, first: ir.Value, last: ir.Value) -> list[ir.Value]:
        """The sums of the turns from `first` to before `last`; copies are all there after, but not read by all threads."""
        plan, ahead = self.plan, self.plan.tile.stages - 1
        ring = emit.index_constant(plan.stage_bytes * plan.tile.stages)
        for number in range(ahead):
            stage = emit.index_constant(number * plan.stage_bytes)
            values = self._issue(emit.arith("addi", first, emit.index_constant(number)), last, stage)
            self._finish(values, stage)
        begin = [emit.index_constant(0), emit.index_constant(ahead * plan.stage_bytes), *plan.sums.begin()]
        turn = Var.below(plan.turns, name="turn")
        with emit.for_loop(first, last, 1, turn, begin) as loop, self.evaluator.scope():
            stage, free, *sums = loop.inner_iter_args
            if self.is_asynchronous:
                wait_for_copies(ahead - 1)
            barrier()
            values = self._issue(emit.arith("addi", turn.value, emit.index_constant(ahead)), last, free)
            sums = plan.sums.step(stage, sums)
            self._finish(values, free)
            emit.yield_values([self._next(stage, ring), self._next(free, ring), *sums])
        if self.is_asynchronous:
            wait_for_copies(0)  # groups that brought nothing
        return list(loop.results[2:])

    def _next(self, stage: ir.Value, ring: ir.Value) -> ir.Value:
        """The stage that follows in the ring."""
        after = emit.create("arith.addi", [stage.type], [stage, emit.index_constant(self.plan.stage_bytes)], emit.no_overflow())
        return emit.select(emit.compare("eq", after, ring), emit.index_constant(0), after)

    def _issue(self, turn: ir.Value, last: ir.Value, stage: ir.Value) -> list[list[ir.Value]]:
        """Starts the copies of a turn, if the turn exists. Copies through registers also read after the last turn; nothing uses these
        elements."""
        plan = self.plan
        depth = hoisted(Index.of(Var(0, plan.turns + plan.tile.stages, turn, name="turn")) * plan.tile.depth)

        if self.is_asynchronous:
            with nest.if_all([emit.compare("slt", turn, last)], self.evaluator):
                for copy in self.copies:
                    if copy.way.copied:
                        copy.issue(depth, stage)
            commit_copies()
        return [[] if copy.way.copied else copy.issue(depth, stage) for copy in self.copies]

    def _finish(self, values: Sequence[list[ir.Value]], stage: ir.Value) -> None:
        for copy, some in zip(self.copies, values, strict=True):
            copy.finish(some, stage)
