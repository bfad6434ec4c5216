"""Sums of splits: blocks that sum parts of the depth leave them in a workspace, and a second launch adds them in their order."""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.hopper.results import Direction, Matrix, Results, load_run
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem, aligned, digits, divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.shared import store
from relayc.pipelines.tir.gpu.launch import launch
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import view
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div, proves

THREADS = 256
"""Of a block that adds splits."""


def workspace_bytes(problem: Problem, splits: int) -> Size:
    """Bytes for the sums of all splits; 0 for a single split."""
    return 0 if splits == 1 else splits * problem.size * problem.sum_bytes


def turns_of(split: Index, turns: Size, splits: int) -> tuple[ir.Value, ir.Value]:
    """The range of turns of a split: its first turn, and the turn after its last."""
    if splits == 1:
        return emit.index_constant(0), emit.index_constant(turns)
    each = ceil_div(turns, splits)
    first = emit.smaller(emit.materialize(split * each), turns)
    return first, emit.smaller(emit.arith("addi", first, emit.index_constant(each)), turns)


class Partials:
    """The sums of splits in a workspace: [split, batch, row, column]. As a destination it takes sums as they come."""

    def __init__(self, problem: Problem, splits: int, workspace: ir.Value) -> None:
        self.problem, self.splits = problem, splits
        self.buffer = view(workspace, 0, splits * problem.size, problem.sums)
        lanes, columns = CHUNK_BYTES // problem.sum_bytes, problem.columns
        while not proves(lambda: columns % lanes == 0):  # noqa: B023 (asked at once)
            lanes //= 2
        self.direction = Direction(True, lanes)

    def store(self, sums: ir.Value, row: Index, column: Index, matrix: Matrix) -> None:
        number = matrix.split * self.problem.batches + matrix.batch
        store(sums, self.buffer, emit.materialize((number * self.problem.rows + row) * self.problem.columns + column))

    def launch_sums(self, results: Results, evaluator: Evaluator) -> None:
        """Adds the sums of each element over the splits, computes the epilogue and stores the result."""
        problem, direction = self.problem, results.direction
        lanes = min(direction.lanes, CHUNK_BYTES // self.problem.sum_bytes)
        along, units = direction.along_columns, problem.size // lanes
        with launch([ceil_div(units, THREADS)], THREADS) as made, evaluator.scope():
            unit = hoisted(Index.of(made.block[0]) * THREADS + made.thread)
            with nest.if_all([emit.below(unit, units)], evaluator):
                number = Index.of(Var.below(units, emit.materialize(unit), name="unit"))
                across, line = (problem.columns, problem.rows) if along else (problem.rows, problem.columns)
                outer, part = divided(number, across // lanes)
                batch, at_line = divided(outer, line)
                run = aligned(part * lanes, across - 1, lanes)
                row, column = (at_line, run) if along else (run, at_line)
                total = self._total(row, column, hoisted(batch), lanes, along)
                results.store(total, row, column, Matrix(Index(), batch, digits(hoisted(batch), problem.batch)))

    def _total(self, row: Index, column: Index, batch: Index, lanes: int, along: bool) -> ir.Value:
        problem = self.problem
        first = hoisted((batch * problem.rows + row) * problem.columns + column)
        name = "addf" if isinstance(problem.sums, ir.FloatType) else "addi"
        total: ir.Value | None = None
        for split in range(self.splits):
            value = load_run(self.buffer, first + split * problem.size, lanes, 1 if along else problem.columns)
            total = value if total is None else emit.arith(name, total, value)
        assert total is not None  # there are splits
        return total
