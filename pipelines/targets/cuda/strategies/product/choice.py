"""Chooses the tile of a product: the tile with the fewest cycles by a model of a multiprocessor."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from relayc.pipelines.targets.cuda.architectures import MOST_REGISTERS, MOST_THREADS, REGISTERS, WARP
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.tir.strategy.tuning import power_of_two, powers_of_two
from relayc.symbolic import ceil_div, guess

MEMORY_BYTES = 48
"""Bytes per cycle that a multiprocessor reads from the second-level cache while all multiprocessors read."""
SHARED_BYTES = 128
"""Bytes a cycle that threads read of shared memory."""
SPLIT_BYTES = 12
"""Bytes per cycle that a multiprocessor reads from device memory, which holds the sums of splits."""
RESERVED_BYTES = 1 << 10
"""Shared memory of a block that the driver takes."""
LATENCY = 1200
"""Cycles of a block that nothing else in the block overlaps: its first copies and its last sums."""
DELAY = 800
"""Cycles from the start of a copy until its data is there."""
BARRIER = 60
"""Cycles of a turn in which a block waits for its own threads."""
BESIDE = 0.15
"""Share of the time of the other resources that adds to the time of the bottleneck."""
LAUNCH = 4000
"""Cycles of another launch."""
LEAST_LINES = 16
"""Rows or columns of a tile at least."""
MOST_LINES, MOST_UNIT_LINES, MOST_STAGES, MOST_SPLITS = 256, 64, 8, 64
"""Limits of a tile: rows or columns, rows or columns of a unit, stages, and parts of the depth."""
FEWEST_TURNS = 4
"""Of a split: fewer do not fill the stages."""
MOST_LINE_BYTES = 128
"""Bytes of a line along the depth: one element of four bytes in each bank."""


@dataclass(frozen=True)
class Model:
    """What a way to multiply takes of a multiprocessor.

    Attributes:
      multiply_adds: a cycle.
      element_bytes: of the operands in shared memory.
      unit_threads: threads of a unit of a tile.
      registers: of a thread, for a tile.
      step: steps of the depth that are the least; least: rows and columns of a unit that are.
    """

    multiply_adds: int
    element_bytes: int
    unit_threads: int
    registers: Callable[[BlockTile], int]
    step: int
    least: tuple[int, int]


def fits(tile: BlockTile, model: Model, target: CudaTarget) -> bool:
    """Whether a block can have the tile: its threads, its shared memory and its registers."""
    threads = tile.units * model.unit_threads
    shared = (tile.rows + tile.columns) * tile.depth * model.element_bytes * tile.stages
    registers = model.registers(tile)
    return (
        WARP <= threads <= MOST_THREADS
        and shared <= target.shared_bytes
        and registers <= MOST_REGISTERS
        and registers * threads <= REGISTERS
        and tile.depth % model.step == 0
    )


def fitted(tile: BlockTile, model: Model, target: CudaTarget) -> BlockTile:
    """The nearest tile that a block can have, of powers of two."""
    least_rows, least_columns = model.least
    rows, columns = (power_of_two(n, LEAST_LINES, MOST_LINES) for n in (tile.rows, tile.columns))
    found = BlockTile(
        rows,
        columns,
        power_of_two(tile.depth, model.step, MOST_LINE_BYTES // model.element_bytes),
        power_of_two(tile.unit_rows, least_rows, min(rows, MOST_UNIT_LINES)),
        power_of_two(tile.unit_columns, least_columns, min(columns, MOST_UNIT_LINES)),
        max(2, min(tile.stages, MOST_STAGES)),
        max(1, min(tile.splits, MOST_SPLITS)),
    )
    while not fits(found, model, target):
        found = _nearer(found, model)
    return found


def _nearer(tile: BlockTile, model: Model) -> BlockTile:
    """A tile that needs less of what a block has too little of."""
    threads, registers = tile.units * model.unit_threads, model.registers(tile)
    if threads < WARP or registers > MOST_REGISTERS:
        if tile.unit_rows > model.least[0] and (tile.unit_rows >= tile.unit_columns or tile.unit_columns == model.least[1]):
            return replace(tile, unit_rows=tile.unit_rows // 2)
        if tile.unit_columns > model.least[1]:
            return replace(tile, unit_columns=tile.unit_columns // 2)
        if threads >= WARP and tile.depth > model.step:
            return replace(tile, depth=tile.depth // 2)  # the registers are those of copies
        return replace(tile, columns=2 * tile.columns)
    if threads <= MOST_THREADS and registers * threads <= REGISTERS:
        if tile.stages > 2:
            return replace(tile, stages=tile.stages - 1)
        if tile.depth > model.step:
            return replace(tile, depth=tile.depth // 2)
    if tile.rows >= tile.columns:
        return replace(tile, rows=tile.rows // 2, unit_rows=min(tile.unit_rows, tile.rows // 2))
    return replace(tile, columns=tile.columns // 2, unit_columns=min(tile.unit_columns, tile.columns // 2))


@dataclass(frozen=True)
class Sizes:
    """Of a product; typical ones where only a call says them. `result_bytes` are those of an element of the result."""

    rows: int
    columns: int
    depth: int
    batches: int
    result_bytes: float

    @staticmethod
    def of(problem: Problem) -> "Sizes":
        rows, columns, depth, batches = (guess(size) for size in (problem.rows, problem.columns, problem.depth, problem.batches))
        return Sizes(rows, columns, depth, batches, problem.contraction.root.element.width / 8)


def blocks_at_once(target: CudaTarget, shared_bytes: int, threads: int, registers: int) -> int:
    """Blocks that a multiprocessor has room for, of so many threads with so many registers each."""
    most = target.architecture
    by_shared = most.multiprocessor_shared_bytes // (shared_bytes + RESERVED_BYTES)
    return min(by_shared, most.multiprocessor_threads // threads, REGISTERS // (registers * threads))


def cycles(tile: BlockTile, sizes: Sizes, model: Model, target: CudaTarget) -> float:
    """About how long the kernel takes."""
    rows, columns, depth, batches = sizes.rows, sizes.columns, sizes.depth, sizes.batches
    blocks = ceil_div(rows, tile.rows) * ceil_div(columns, tile.columns) * batches * tile.splits
    turns = ceil_div(ceil_div(depth, tile.depth), tile.splits)
    shared = (tile.rows + tile.columns) * tile.depth * model.element_bytes
    reads = tile.units * (tile.unit_rows + tile.unit_columns) * tile.depth * model.element_bytes
    # A warp whose threads each have a tile reads lines that four or eight of them share.
    reads = reads // 4 if model.unit_threads == 1 else reads
    parts = (tile.rows * tile.columns * tile.depth / model.multiply_adds, shared / MEMORY_BYTES, reads / SHARED_BYTES)
    busy = max(parts) + BESIDE * (sum(parts) - max(parts))
    results = tile.rows * tile.columns * (4 if tile.splits > 1 else 2 * sizes.result_bytes) / MEMORY_BYTES
    threads = tile.units * model.unit_threads
    resident = max(1, blocks_at_once(target, shared * tile.stages, threads, model.registers(tile)))
    each = ceil_div(blocks, target.num_multiprocessors)
    active = min(each, resident)
    # What one block waits for, others do meanwhile: copies, each other's threads, and sums, of which a warp has some on their way.
    idle = max(1.0, 8 * WARP / (active * threads))
    delay = DELAY / ((tile.stages - 1) * active)
    turn = max(busy * idle + BARRIER / active, delay) + BESIDE * delay
    total = each * (turns * turn + results) + ceil_div(each, resident) * LATENCY
    if tile.splits > 1:
        total += LAUNCH + rows * columns * batches * 4 * (tile.splits + 1) / (SPLIT_BYTES * target.num_multiprocessors)
    return total


def best(candidates: Iterable[BlockTile], problem: Problem, model: Model, target: CudaTarget) -> BlockTile | None:
    """The tile of the fewest cycles, with as many splits as are worth it; None where none fits."""
    sizes = Sizes.of(problem)
    possible = [split for tile in candidates if fits(tile, model, target) and _fills(tile, sizes) for split in _split(tile, sizes)]
    return min(possible, key=lambda tile: cycles(tile, sizes, model, target), default=None)


def _fills(tile: BlockTile, sizes: Sizes) -> bool:
    """Whether the depth is long enough for all stages."""
    return tile.stages <= max(2, 1 + ceil_div(sizes.depth, tile.depth))


def _split(tile: BlockTile, sizes: Sizes) -> Iterator[BlockTile]:
    """The tile with 1, 2, 4, ... splits of at least FEWEST_TURNS turns."""
    most = min(MOST_SPLITS, ceil_div(sizes.depth, tile.depth) // FEWEST_TURNS)
    yield tile
    yield from (replace(tile, splits=splits) for splits in powers_of_two(2, most))
