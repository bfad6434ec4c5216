"""The strategy `wgmma`: products of 16-bit floats by warp groups."""

from collections.abc import Sequence
from dataclasses import replace

from relayc.pipelines.cuda.schedule.hopper.instructions import LINE_BYTES, ROWS
from relayc.pipelines.cuda.schedule.hopper.nest import STRIP, GroupNest, GroupTile
from relayc.pipelines.cuda.schedule.product.operands import Way, way_of
from relayc.pipelines.cuda.schedule.product.problem import Problem, find, problem_of
from relayc.pipelines.cuda.schedule.product.shared import CHUNK
from relayc.pipelines.cuda.schedule.product.strategy import instruction_of
from relayc.pipelines.cuda.target import CudaTarget
from relayc.pipelines.kernel.graph import Kernel
from relayc.pipelines.schedule.strategy import Scheduled
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.symbolic import ceil_div, guess, proves

COLUMNS = (64, 96, 128, 192, 256)
MOST_STAGES = 6
LEAST_TILES = 4
"""A part of the multiprocessors, one in so many, that tiles must keep busy: for fewer tiles the depth is better split (mma)."""
_RATE = 2048
"""Multiply-adds of 16-bit floats a cycle of a multiprocessor: 989 TFLOP/s of an H100 SXM, by 132 multiprocessors at 1.83 GHz."""
_TILE_CYCLES = 400
"""Of a tile, which nothing hides: the last products, and what does not overlap of the stores. An estimate, not measured."""


def schedule_wgmma(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a product of matrices that lie along the depth, or are parameters; None for any other kernel, and for few rows."""
    assert isinstance(target, CudaTarget)
    for contraction in find(kernel):
        instruction = instruction_of(contraction, False)
        if instruction is None or instruction.bits != 16:
            continue
        problem = problem_of(kernel, contraction)
        ways = [way_of(problem, o, o.node.element, True, False) for o in (contraction.a, contraction.b)]
        if not _is_for_maps(problem, ways):
            continue
        tile = _tile(problem, target, tuning)
        if tile is not None:
            return GroupNest(problem, tile, (ways[0], ways[1]), target.num_multiprocessors).emit()
    return None


def _is_for_maps(problem: Problem, ways: Sequence[Way]) -> bool:
    """Whether both operands are tensors [batch, line, depth] whose lines begin at multiples of 16 bytes."""
    if len(problem.batch) > 1 or not proves(lambda: problem.depth >= 1):
        return False
    for way in ways:
        if way.packing is not None:
            continue
        if not way.along_depth or way.copied != CHUNK or way.operand.checks or len(way.loops) > 1 or len(problem.reduction) > 1:
            return False
        offset = way.operand.offset
        strides = [offset.coefficient(loop.var) for loop in (*way.loops, *problem.batch)]
        if not all(proves(lambda s=stride: s >= 1) for stride in strides):  # type: ignore[misc]
            return False
    return True


def _tile(problem: Problem, target: CudaTarget, tuning: Tuning) -> GroupTile | None:
    """The tile of the fewest cycles, with the numbers that were set; None where too few tiles would be there."""
    rows, columns, batches = (guess(size) for size in (problem.rows, problem.columns, problem.batches))
    if rows < ROWS or columns < COLUMNS[0]:
        return None

    def tiles(tile: GroupTile) -> int:
        return ceil_div(rows, tile.rows) * ceil_div(columns, tile.columns) * batches

    def cycles(tile: GroupTile) -> float:
        each = tile.rows * tile.columns * guess(problem.depth) / _RATE
        return ceil_div(tiles(tile), target.num_multiprocessors) * (max(each, _least_cycles(tile, problem)) + _TILE_CYCLES)

    candidates = [_staged(GroupTile(r, c, MOST_STAGES), target) for r in (ROWS, 2 * ROWS) for c in COLUMNS]
    best = min(candidates, key=cycles)
    if tiles(best) * LEAST_TILES < target.num_multiprocessors and guess(problem.depth) > 1024:
        return None
    values = {"rows": lambda t: (ROWS, 2 * ROWS), "columns": lambda t: COLUMNS, "stages": lambda t: range(2, MOST_STAGES + 1)}
    return tuning.replace(best, ("rows", "columns", "stages"), lambda t: _staged(_possible(t), target), values)


def _least_cycles(tile: GroupTile, problem: Problem) -> float:
    """Of the copies of a tile: 48 bytes a cycle come of the cache of the device where all multiprocessors read."""
    return tile.stage_bytes * guess(problem.depth) / (LINE_BYTES // 2) / 48


def _possible(tile: GroupTile) -> GroupTile:
    """The nearest tile that instructions compute."""
    columns = min(256, max(STRIP, tile.columns // STRIP * STRIP))
    return replace(tile, rows=ROWS if tile.rows < 2 * ROWS else 2 * ROWS, columns=columns)


def _staged(tile: GroupTile, target: CudaTarget) -> GroupTile:
    """With as many stages as shared memory holds, of those that are wanted."""
    stages = max(2, min(tile.stages, MOST_STAGES))
    while stages > 2 and replace(tile, stages=stages).shared_bytes > target.shared_bytes:
        stages -= 1
    return replace(tile, stages=stages)
