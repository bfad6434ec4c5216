"""The launches of a product: tiles of the result by blocks, and the sums of splits."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.product.copies import Copy, copy_of
from relayc.pipelines.targets.cuda.strategies.product.plan import Plan
from relayc.pipelines.targets.cuda.strategies.product.problem import aligned, digits, divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.results import Destination, Direction, Matrix, Results, load_run
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory
from relayc.pipelines.targets.cuda.strategies.product.splits import Partials, turns_of, workspace_bytes
from relayc.pipelines.tir.gpu.aligned import AlignedEvaluator
from relayc.pipelines.tir.gpu.copies import commit_copies, wait_for_copies
from relayc.pipelines.tir.gpu.launch import barrier, launch
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, proves

BAND = 8
"""Rows of tiles that blocks go over column by column: neighbouring blocks share rows and columns, which the cache of the device keeps."""


def emit_product(plan: Plan) -> Scheduled:
    """A product in tir, at the ambient insertion point."""
    problem, packings, workspace = plan.problem, plan.packings(), workspace_bytes(plan.problem, plan.tile.splits)
    with kernel_function(problem.kernel, packings, workspace) as body:
        evaluator = AlignedEvaluator(body.evaluator.buffers)
        results = Results(problem, evaluator, body.outputs[0])
        if problem.size != 0 and body.workspace is None:
            _launch_tiles(plan, evaluator, results)
        elif body.workspace is not None:
            partials = Partials(problem, plan.tile.splits, body.workspace)
            _launch_tiles(plan, evaluator, partials)
            partials.launch_sums(results, evaluator)
    return Scheduled(body.function, packings, workspace)


def _launch_tiles(plan: Plan, evaluator: Evaluator, destination: Destination) -> None:
    problem, tile = plan.problem, plan.tile
    rows, columns = plan.grid
    copies = [copy_of(problem, *facts, plan.sums.threads) for facts in zip(plan.ways, plan.tiles, plan.starts, strict=True)]
    shared = [(plan.shared_bytes, ir.IntegerType.get_signless(8))]
    blocks = rows * columns * problem.batches * tile.splits
    with launch([blocks], plan.sums.threads, shared) as made, evaluator.scope():
        memory = SharedMemory.of(made.shared[0])
        number, in_matrix = divided(Index.of(made.block[0]), rows * columns)
        batch, split = map(hoisted, divided(number, tile.splits))
        row, column = tile_at(in_matrix, plan.grid)
        matrix = Matrix(split, batch, digits(batch, problem.batch))
        first = hoisted(row * tile.rows), hoisted(column * tile.columns)
        for copy, line in zip(copies, first, strict=True):
            copy.prepare(made.thread, memory, line, matrix.point, evaluator)
        plan.sums.prepare(made.thread, memory, plan.tiles, plan.starts)
        sums = Pipeline(plan, copies, evaluator).sums(*turns_of(split, plan.turns, tile.splits))
        Strips(plan, memory, made.thread, first, evaluator).store(sums, matrix, destination)


def tile_at(number: Index, grid: tuple[Size, Size]) -> tuple[Index, Index]:
    """Row and column of a tile by its number in a grid of rows and columns: along the columns of a band of rows of tiles, one column of the
    band after the other."""
    rows, columns = grid
    if proves(lambda: columns == 1):
        return number, Index()
    if proves(lambda: rows <= BAND):
        column, row = divided(number, rows)
        return row, column
    band, within = divided(number, columns * BAND)
    first, value = hoisted(band * BAND), emit.materialize(within)
    height = emit.smaller(emit.arith("subi", emit.index_constant(rows), emit.materialize(first)), BAND)
    column, row = (emit.arith(name, value, height) for name in ("divui", "remui"))
    return first + Var(0, BAND - 1, row, name="row"), Index.of(Var(0, columns - 1, column, name="column"))


# The stages of a block along the depth.
#
# While the sums of one stage are computed, the copies of the next ones are on their way. Each turn waits for its own stage, meets the other
# threads at one barrier, which also says that the stage read before is free, starts the copy that goes there, and computes.


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
        turn = Var(0, plan.turns - 1, name="turn")
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
        """Starts the copies of a turn, where it is there. What goes through registers is read behind the last turn as well: something that
        nobody uses."""
        plan = self.plan
        depth = hoisted(Index.of(Var(0, plan.turns + plan.tile.stages, turn, name="turn")) * plan.tile.depth)

        def asynchronous() -> None:
            for copy in self.copies:
                if copy.way.copied:
                    copy.issue(depth, stage)

        if self.is_asynchronous:
            nest.when(emit.compare("slt", turn, last), self.evaluator, asynchronous)
            commit_copies()
        return [[] if copy.way.copied else copy.issue(depth, stage) for copy in self.copies]

    def _finish(self, values: Sequence[list[ir.Value]], stage: ir.Value) -> None:
        for copy, some in zip(self.copies, values, strict=True):
            copy.finish(some, stage)


# The end of a tile: sums go from registers through shared memory, a strip of rows after the other, to where they are stored in runs.


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
            # LLVM moves sums that are computed right before a loop behind it, and keeps the operands of all of them until there.
            for i in range(units // threads):
                code(Index.of(self.thread) + i * threads)
            return
        unit = Var(0, units - 1, name="unit")
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

        def code() -> None:
            sums = load_run(self.buffer, hoisted(row * pitch + column), lanes, 1 if along else pitch)
            inside_row = aligned(at_row, problem.rows - 1, 1 if along else lanes)
            inside_column = aligned(at_column, problem.columns - 1, lanes if along else 1)
            destination.store(sums, inside_row, inside_column, matrix)

        self._if_inside(at_row, at_column, code)

    def _if_inside(self, row: Index, column: Index, code: Callable[[], None]) -> None:
        """Emits code for where a row and a column are there."""
        problem, tile = self.plan.problem, self.plan.tile
        conditions = []
        if not proves(lambda: problem.rows % tile.rows == 0):
            conditions.append(emit.below(row, problem.rows))
        if not proves(lambda: problem.columns % tile.columns == 0):
            conditions.append(emit.below(column, problem.columns))
        if conditions:
            nest.when(emit.all_of(conditions), self.evaluator, code)
        else:
            code()
