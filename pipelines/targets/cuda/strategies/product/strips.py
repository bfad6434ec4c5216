"""The end of a tile: sums go from registers through shared memory, strip of rows by strip of rows, so that stores are contiguous."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.product.plan import Plan
from relayc.pipelines.targets.cuda.strategies.product.problem import aligned, divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.results import Destination, Direction, Matrix, load_run
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory
from relayc.pipelines.tir.gpu.launch import barrier
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.evaluator import Evaluator


class Strips:
    """Stores the sums of a tile.

    Args:
      thread: the number of the thread in its block.
      first: row and column at which the tile begins.
    """

    def __init__(self, plan: Plan, memory: SharedMemory, thread: Var, first: tuple[Index, Index], evaluator: Evaluator) -> None:
        self.plan, self.thread, self.first, self.evaluator = plan, thread, first, evaluator
        self.buffer = memory.elements(plan.problem.sums)

    def store(self, sums: Sequence[ir.Value], matrix: Matrix, destination: Destination) -> None:
        """Stores all strips. The threads are done with shared memory after a barrier."""
        plan, direction = self.plan, destination.direction
        units = plan.sums.strip_rows * plan.tile.columns // direction.lanes
        for strip in range(plan.sums.strips):
            barrier()
            plan.sums.stage(strip, sums, self.buffer, plan.strip_pitch)
            barrier()
            self._each(units, lambda unit: self._unit(strip, *self._place(unit, direction), matrix, destination))  # noqa: B023

    def _each(self, units: int, code: Callable[[Index], None]) -> None:
        """Emits code for each unit of a strip that is the thread's."""
        threads, turns = self.plan.sums.threads, self.plan.turns
        if units == threads or (turns == 1 and units % threads == 0):
            # LLVM moves sums that are computed right before a loop to after it, and keeps their operands in registers until then.
            for i in range(units // threads):
                code(Index.of(self.thread) + i * threads)
            return
        unit = Var.below(units, name="unit")
        with emit.for_loop(self.thread.value, units, threads, unit), self.evaluator.scope():
            code(Index.of(unit))

    def _place(self, unit: Index, direction: Direction) -> tuple[Index, Index]:
        """Row and column of a strip at which a unit of elements that are stored together begins."""
        if direction.along_columns:
            row, part = divided(unit, self.plan.tile.columns // direction.lanes)
            return hoisted(row), hoisted(part * direction.lanes)
        column, part = divided(unit, self.plan.sums.strip_rows // direction.lanes)
        return hoisted(part * direction.lanes), hoisted(column)

    def _unit(self, strip: int, row: Index, column: Index, matrix: Matrix, destination: Destination) -> None:
        problem, pitch = self.plan.problem, self.plan.strip_pitch
        lanes, along = destination.direction.lanes, destination.direction.along_columns
        at_row, at_column = hoisted(self.first[0] + self.plan.sums.row_of(strip, row)), hoisted(self.first[1] + column)
        axes = [(at_row, problem.rows, self.plan.tile.rows), (at_column, problem.columns, self.plan.tile.columns)]
        with nest.if_inside(axes, self.evaluator):
            sums = load_run(self.buffer, hoisted(row * pitch + column), lanes, 1 if along else pitch)
            inside_row = aligned(at_row, problem.rows - 1, 1 if along else lanes)
            inside_column = aligned(at_column, problem.columns - 1, lanes if along else 1)
            destination.store(sums, inside_row, inside_column, matrix)
