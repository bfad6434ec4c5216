"""The strategies of products: on tensor cores, and by multiply-adds of f32."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.strategies.product.choice import (
    MOST_LINE_BYTES,
    MOST_LINES,
    MOST_SPLITS,
    MOST_UNIT_LINES,
    Model,
    best,
    fitted,
)
from relayc.pipelines.targets.cuda.strategies.product.fma import RUN, FmaSchedule
from relayc.pipelines.targets.cuda.strategies.product.instructions import COLUMNS, ROWS, STEP_BYTES, Instruction
from relayc.pipelines.targets.cuda.strategies.product.mma import MmaSchedule
from relayc.pipelines.targets.cuda.strategies.product.operands import Way, way_of
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem, find, problem_of
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.gpu.launch import WARP
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.schedule.written_strategy import schedule_built_in
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning, powers_of_two
from relayc.symbolic import ceil_div, guess

NUMBERS = ("rows", "columns", "depth", "unit_rows", "unit_columns", "stages", "splits")
"""The numbers of a tile that can be set."""

_EXTENSIONS = {"arith.extsi": "s8", "arith.extui": "u8"}

MMA_CYCLE = {(8, 0): 1024, (8, 6): 512, (8, 9): 512, (9, 0): 1400, (10, 0): 1024, (12, 0): 512}
"""Multiply-adds of f16 per cycle of a multiprocessor by mma.sync: the rates of the CUDA C++ Programming Guide; for (9, 0) the rate of
mma.sync, below the 2048 of wgmma."""


def schedule_mma(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a product whose operands tensor cores multiply; None for any other kernel."""
    assert isinstance(target, CudaTarget)
    is_tf32 = bool(tuning.number("tf32", 0))
    for contraction in find(kernel, fills=True):
        instruction = instruction_of(contraction, is_tf32)
        if instruction is not None:
            return _on_tensor_cores(problem_of(kernel, contraction), instruction, target, tuning)
    return None


def instruction_of(contraction: Contraction, is_tf32: bool) -> Instruction | None:
    """The instruction that multiplies the operands of a contraction with its element types; None if there is none.

    Args:
      is_tf32: whether f32 may be rounded to tf32.
    """
    types = [str(o.node.element) for o in (contraction.a, contraction.b)]
    casts = [o.casts for o in (contraction.a, contraction.b)]
    sums = str(contraction.node.element)
    if sums == "f32" and types == ["f32", "f32"]:
        return Instruction("tf32", "tf32", 32, "f32") if is_tf32 else None
    if any(len(chain) != 1 or str(chain[0][1]) != sums for chain in casts):
        return None
    if sums == "f32" and types[0] == types[1] and types[0] in ("f16", "bf16"):
        return Instruction(types[0], types[1], 16, sums)
    if sums == "i32" and types == ["i8", "i8"]:
        return Instruction(_EXTENSIONS[casts[0][0][0]], _EXTENSIONS[casts[1][0][0]], 8, sums)
    return None


def _on_tensor_cores(problem: Problem, instruction: Instruction, target: CudaTarget, tuning: Tuning) -> Scheduled | None:
    c = problem.contraction
    takes_lines = instruction.bits >= 16
    ways = [way_of(problem, o, o.node.element, target.has("cp-async"), takes_lines) for o in (c.a, c.b)]
    rate = MMA_CYCLE.get(target.architecture.capability, 512) * 16 // instruction.bits

    def registers(tile: BlockTile) -> int:
        sums = tile.unit_rows * tile.unit_columns // WARP
        fragments = (tile.unit_rows + tile.unit_columns) * STEP_BYTES // (4 * WARP)
        return sums + 2 * fragments + 48 + _of_copies(problem, ways, tile, WARP)

    model = Model(rate, instruction.bits // 8, WARP, registers, instruction.depth, (ROWS, COLUMNS))
    most_rows, most_columns = (2 * max(ROWS, guess(size)) for size in (problem.rows, problem.columns))
    candidates = [
        BlockTile(rows, columns, depth, unit_rows, unit_columns, stages)
        for rows in powers_of_two(ROWS, min(MOST_LINES, most_rows - 1))
        for columns in powers_of_two(ROWS, min(MOST_LINES, most_columns - 1))
        for unit_rows in powers_of_two(ROWS, MOST_UNIT_LINES)
        for unit_columns in powers_of_two(COLUMNS, MOST_UNIT_LINES)
        if _is_sensible(rows, columns, unit_rows, unit_columns)
        for depth in (2 * instruction.depth, 4 * instruction.depth)
        for stages in (2, 3, 4)
    ]
    tile = _tuned(candidates, problem, model, target, tuning)
    if tile is None:
        return None
    return schedule_built_in(lambda s: MmaSchedule(s, problem, tile, ways, instruction).write(), problem.kernel, target, tuning)


def _of_copies(problem: Problem, ways: Sequence[Way], tile: BlockTile, unit_threads: int) -> int:
    """Registers of a thread for its copies. Copies through registers hold all elements of a stage at the same time, and for elements that
    are not contiguous an address for each, with the indices that the steps of a chunk share. Copies narrower than a chunk are many, each
    with an address and the indices that are compared with the bounds of padding."""
    found = 0
    for way, lines in zip(ways, (tile.rows, tile.columns), strict=True):
        elements = ceil_div(lines * tile.depth, tile.units * unit_threads)
        if way.copied:
            found += elements // way.run * (1 + len(way.operand.checks)) if way.copied < CHUNK_BYTES else 0
        elif way.lies_in_runs(problem):
            found += ceil_div(elements * way.element_bytes, 4)
        else:
            found += 2 * elements + CHUNK_BYTES // way.element_bytes * len(way.operand.indices)
    return found


def _is_sensible(rows: int, columns: int, unit_rows: int, unit_columns: int) -> bool:
    """Whether a tile is of one to eight warps, none long and thin."""
    warps = (rows // unit_rows) * (columns // unit_columns)
    return 1 <= warps <= 8 and max(unit_rows // unit_columns, unit_columns // unit_rows) <= 4


def schedule_fma(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a product that is summed in f32; None for any other kernel."""
    assert isinstance(target, CudaTarget)
    f32 = ir.F32Type.get()
    for contraction in find(kernel):
        if contraction.node.element != f32 or any(o.node.element.width > 32 for o in (contraction.a, contraction.b)):
            continue
        return _by_threads(problem_of(kernel, contraction), target, tuning)
    return None


FMA_CYCLE = 128
"""Multiply-adds of f32 per cycle of a multiprocessor; half as many for compute capability 7.5 and 8.0."""


def _by_threads(problem: Problem, target: CudaTarget, tuning: Tuning) -> Scheduled | None:
    c, f32 = problem.contraction, ir.F32Type.get()
    ways = [way_of(problem, o, f32, target.has("cp-async"), True) for o in (c.a, c.b)]
    rate = FMA_CYCLE // 2 if target.architecture.capability in ((7, 5), (8, 0)) else FMA_CYCLE

    def registers(tile: BlockTile) -> int:
        operands = (RUN + 1) * (tile.unit_rows + tile.unit_columns)
        return tile.unit_rows * tile.unit_columns + operands + 40 + _of_copies(problem, ways, tile, 1)

    model = Model(rate, f32.width // 8, 1, registers, RUN, (RUN, RUN))
    candidates = [
        BlockTile(rows, columns, depth, unit_rows, unit_columns, stages)
        for rows in powers_of_two(16, 128)
        for columns in powers_of_two(16, 128)
        for unit_rows, unit_columns in ((4, 4), (8, 4), (4, 8), (8, 8))
        for depth in (8, 16, 32)
        for stages in (2, 3, 4)
        if rows < 2 * max(16, guess(problem.rows)) and columns < 2 * max(64, guess(problem.columns))
    ]
    tile = _tuned(candidates, problem, model, target, tuning)
    if tile is None:
        return None
    return schedule_built_in(lambda s: FmaSchedule(s, problem, tile, ways).write(), problem.kernel, target, tuning)


def _tuned(candidates: Sequence[BlockTile], problem: Problem, model: Model, target: CudaTarget, tuning: Tuning) -> BlockTile | None:
    """The best of some tiles with the numbers that were set; None where none fits."""
    found = best(candidates, problem, model, target)
    if found is None:
        return None

    def fit(tile: BlockTile) -> BlockTile:
        return fitted(tile, model, target)

    def values(field: str, options: Sequence[int]) -> Callable[[BlockTile], list[int]]:
        return lambda tile: [v for v in options if (t := replace(tile, **{field: v})) == fit(t)]

    rows, columns = model.least
    options: dict[str, Sequence[int]] = {
        "rows": powers_of_two(rows, MOST_LINES),
        "columns": powers_of_two(columns, MOST_LINES),
        "depth": powers_of_two(model.step, MOST_LINE_BYTES // model.element_bytes),
        "unit_rows": powers_of_two(rows, MOST_UNIT_LINES),
        "unit_columns": powers_of_two(columns, MOST_UNIT_LINES),
        "stages": (2, 3, 4),
        "splits": powers_of_two(1, MOST_SPLITS),
    }
    return tuning.replace(found, NUMBERS, fit, {name: values(name, some) for name, some in options.items()})
