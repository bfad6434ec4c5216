"""The launches of a product: tiles of the result by blocks, and the sums of splits."""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.strategies.product.copies import copy_of
from relayc.pipelines.targets.cuda.strategies.product.pipeline import Pipeline
from relayc.pipelines.targets.cuda.strategies.product.plan import Plan
from relayc.pipelines.targets.cuda.strategies.product.problem import digits, divided, hoisted
from relayc.pipelines.targets.cuda.strategies.product.results import Destination, Matrix, Results
from relayc.pipelines.targets.cuda.strategies.product.shared import SharedMemory
from relayc.pipelines.targets.cuda.strategies.product.splits import Partials, turns_of, workspace_bytes
from relayc.pipelines.targets.cuda.strategies.product.strips import Strips
from relayc.pipelines.tir.gpu.aligned import AlignedEvaluator
from relayc.pipelines.tir.gpu.launch import launch
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
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
    return first + Var.below(BAND, row, name="row"), Index.of(Var.below(columns, column, name="column"))
