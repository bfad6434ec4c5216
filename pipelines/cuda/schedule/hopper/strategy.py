"""The strategy `wgmma`: products of 16-bit floats, and of 8-bit integers, by warp groups."""

from collections.abc import Sequence

from relayc.pipelines.cuda.schedule.hopper.choice import LEAST_COLUMNS, Product
from relayc.pipelines.cuda.schedule.hopper.instructions import LINE_BYTES, ROWS
from relayc.pipelines.cuda.schedule.hopper.nest import GroupNest
from relayc.pipelines.cuda.schedule.hopper.operands import is_for_maps
from relayc.pipelines.cuda.schedule.hopper.tile import STRIP
from relayc.pipelines.cuda.schedule.product.choice import Sizes
from relayc.pipelines.cuda.schedule.product.operands import Way, way_of
from relayc.pipelines.cuda.schedule.product.problem import Problem, can_pack, find, problem_of
from relayc.pipelines.cuda.schedule.product.strategy import instruction_of
from relayc.pipelines.cuda.target import CudaTarget
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
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
        if guess(problem.rows) < ROWS or guess(problem.columns) < LEAST_COLUMNS or not all(is_for_maps(problem, way) for way in ways):
            continue
        product = _product(problem, ways)
        tile = tuning.replace(product.best(target), NUMBERS, lambda t: product.fitted(t, target), product.values())  # noqa: B023
        return GroupNest(problem, tile, (ways[0], ways[1]), instruction, target.num_multiprocessors).emit()
    return None


def _way(problem: Problem, takes_lines: bool, position: int) -> Way:
    """How an operand is copied: across the depth where products take that, but for parameters, which may lie along it."""
    operand = (problem.contraction.a, problem.contraction.b)[position]
    return way_of(problem, operand, operand.node.element, True, takes_lines and not can_pack(problem.kernel, operand))


def _product(problem: Problem, ways: Sequence[Way]) -> Product:
    """What the model has to know."""
    # A line across the depth has the columns of a block.
    element_bytes = ways[1].element_bytes
    unit = STRIP if ways[1].along_depth else LINE_BYTES // element_bytes
    return Product(Sizes.of(problem), element_bytes, unit, isinstance(problem.depth, int))
