"""The strategy `wgmma`: products of 16-bit floats, and of 8-bit integers, by warp groups."""

from collections.abc import Sequence
from dataclasses import replace

from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.strategies.hopper.choice import LEAST_COLUMNS, Product
from relayc.pipelines.targets.cuda.strategies.hopper.convolution import Convolution, convolution_of, operands_of
from relayc.pipelines.targets.cuda.strategies.hopper.instructions import ROWS
from relayc.pipelines.targets.cuda.strategies.hopper.nest import GroupNest
from relayc.pipelines.targets.cuda.strategies.hopper.operands import MatrixOperand, TileOperand, is_for_maps
from relayc.pipelines.targets.cuda.strategies.hopper.tile import STRIP, GroupTile
from relayc.pipelines.targets.cuda.strategies.product.choice import Sizes
from relayc.pipelines.targets.cuda.strategies.product.operands import Way, way_of
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem, can_pack, find, problem_of
from relayc.pipelines.targets.cuda.strategies.product.strategy import instruction_of
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.gpu.bulk_copies import LINE_BYTES
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.symbolic import guess

NUMBERS = ("rows", "columns", "stages", "splits")
"""The numbers of a tile that can be set."""


def schedule_wgmma(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a product of two matrices; None for any other kernel, and for few rows or columns."""
    assert isinstance(target, CudaTarget)
    for contraction in find(kernel):
        instruction = instruction_of(contraction, False)
        if instruction is None:
            continue
        problem = problem_of(kernel, contraction)
        ways = [_way(problem, operand.node.element.width == 16, i) for i, operand in enumerate((contraction.a, contraction.b))]
        if guess(problem.rows) < ROWS or guess(problem.columns) < LEAST_COLUMNS:
            continue
        are_matrices = all(is_for_maps(problem, way) for way in ways)
        convolution = None if are_matrices else convolution_of(problem, ways)
        if not are_matrices and convolution is None:
            continue
        product = _product(problem, ways, convolution)
        tile = tuning.replace(product.best(target), NUMBERS, lambda t: product.fitted(t, target), product.values())  # noqa: B023
        return GroupNest(tile, *_operands(problem, ways, convolution, tile), instruction, target.num_multiprocessors).emit()
    return None


def _operands(problem: Problem, ways: Sequence[Way], convolution: Convolution | None, tile: GroupTile) -> tuple[TileOperand, TileOperand]:
    """The operands in a stage, one after the other."""
    if convolution is not None:
        return operands_of(problem, convolution, ways, (tile.rows, tile.columns))
    a, b = ways
    return MatrixOperand(problem, a, tile.rows, 0), MatrixOperand(problem, b, tile.columns, tile.rows * LINE_BYTES)


def _way(problem: Problem, takes_lines: bool, position: int) -> Way:
    """How an operand is copied: across the depth if the product instruction accepts it; parameters are packed along the depth."""
    operand = (problem.contraction.a, problem.contraction.b)[position]
    takes_lines = takes_lines and not can_pack(problem.kernel, operand)
    return way_of(problem, operand, operand.node.element, True, takes_lines, pads=True)


def _product(problem: Problem, ways: Sequence[Way], convolution: Convolution | None) -> Product:
    """What the model has to know."""
    # A line across the depth has the columns of a block.
    element_bytes = ways[1].element_bytes
    line = LINE_BYTES // element_bytes
    sizes, taps = Sizes.of(problem), 1
    if convolution is not None:
        sizes, taps = replace(sizes, depth=convolution.turns(line) * line), convolution.taps
    return Product(sizes, element_bytes, STRIP if ways[1].along_depth else line, isinstance(problem.depth, int), taps)
