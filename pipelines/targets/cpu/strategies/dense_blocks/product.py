"""The schedule of products with weights of a few bits in blocks, which reads the weights as they are stored.

Lanes run along the columns of a strip; a task is a few strips. Few rows, as in decoding, are bound by how fast weights are read and
unpacked: each tile of rows does so anew. For more rows a task unpacks a piece of the depth to a buffer of the thread.

| instructions | few rows | many rows |
|---|---|---|
| AMX (bf16) with VNNI | `digits` | `tiles`; `scaled_tiles` where bf16 is exact enough |
| VNNI | `digits` | `digits` where data are one digit, else `floats` |
| others | `floats` | `floats` |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.bf16.integers import dots_of
from relayc.pipelines.targets.cpu.strategies.dense_blocks import digits, tiles
from relayc.pipelines.targets.cpu.strategies.dense_blocks.floats import FloatPanels, FloatSums
from relayc.pipelines.targets.cpu.strategies.dense_blocks.operands import Columns, Count, Operands, Value, Values, Vectors
from relayc.pipelines.targets.cpu.strategies.dense_blocks.scaled_tiles import ScaledPanels
from relayc.pipelines.te.read.dense_blocks import DenseBlocks, match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, distinct, grains, part_sizes, powers_of_two
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Dim, Size, ceil_div, maximum, minimum, proves

PARALLEL_GRAIN = 1 << 17
"""Multiply-adds below which the kernel stays on one thread."""
FEW_ROWS = 16
"""Rows up to which integers are faster than floats in a buffer."""
FEW_BESIDE_TILES = 12
"""Rows up to which integers are faster than tiles."""

DIGITS = (3, 3, 2, 2, 1)
"""Digits of 8 bits, or numbers of bf16, of a datum for each level of accuracy."""
BF16_LEVEL = 3
"""The level from which bf16 numbers are exact enough, for weights too."""

Task: TypeAlias = Callable[[Index, Count, int, Columns], None]


@dataclass(frozen=True)
class BlockParameters:
    """Tunable numbers.

    Attributes:
      vectors: of columns of a tile.
      rows: of a tile where weights lie in a buffer as floats.
      depth: of the weights in the buffer, as whole blocks.
      task_rows: for which weights become floats once.
    """

    vectors: int
    rows: int
    depth: int
    task_rows: int


def default_parameters(target: Target, is_scaled: bool) -> BlockParameters:
    """Sums of a tile in three quarters of the registers, the buffer of weights in two thirds of the first-level cache. `is_scaled`: for
    `ScaledPanels`."""
    vectors = 4
    rows = target.num_vector_registers * 3 // 4 // vectors
    depth = target.l1_bytes * 2 // 3 // (vectors * target.vector_bytes)
    return BlockParameters(vectors, rows, depth, task_rows=256 if is_scaled else 192)


def schedule_dense_blocks(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a product with weights of a few bits and an elementwise epilogue; None for any other kernel."""
    found = match(kernel)
    if found is None or found.rows == 0:
        return None
    names = ("vectors", "rows", "depth", "task_rows")
    on_tiles = tiles.takes(found, target)
    is_scaled = on_tiles and found.level >= BF16_LEVEL
    p = tuning.replace(default_parameters(target, is_scaled), names, values=_values(found, target))
    strips, blocks, words, numbers, lanes = found.weights.static_shape
    depth, block_size = blocks * words * numbers, words * numbers
    grain = tuning.number("grain", PARALLEL_GRAIN, lambda: grains(PARALLEL_GRAIN, found.rows * strips * depth * lanes))
    dots = dots_of(target)
    if dots is not None and (not dots.fused or block_size >= digits.MOST_DEPTH):
        dots = None
    count = DIGITS[found.level]
    few_rows: Size = FloatSums.most_rows if dots is None else FEW_BESIDE_TILES if on_tiles else FEW_ROWS
    if dots is not None and not on_tiles and count == 1:
        few_rows = found.rows
    elif isinstance(found.rows, int):
        few_rows = minimum(few_rows, found.rows)
    workspace: Size = digits.bytes_of(depth, blocks, count, few_rows) if dots is not None else 0
    if on_tiles and not proves(lambda: found.rows <= few_rows):
        parts = 1 if is_scaled else count
        workspace = maximum(workspace, tiles.bytes_of(found.rows, depth, parts))
    with kernel_function(kernel, workspace_bytes=workspace) as body:
        operands, memory = Operands(found, body.evaluator, target), body.workspace
        few: RowSums = FloatSums(operands)
        if dots is not None:
            few = digits.DigitSums(operands, dots, count, few_rows, memory)
        many: RowTasks = FloatPanels(operands, p.vectors, p.rows, p.depth)
        if is_scaled:
            many = ScaledPanels(operands, target.num_threads, memory)
        elif on_tiles:
            many = tiles.TilePanels(operands, count, target.num_threads, memory)
        _Product(operands, few, many, body.outputs[0], p).emit(grain)
    return Scheduled(body.function, workspace_bytes=workspace, uses_tiles=on_tiles)


def _values(found: DenseBlocks, target: Target) -> dict[str, Callable[[BlockParameters], list[int]]]:
    """The sensible numbers: sums and a vector of weights in registers, whole blocks of weights in the second-level cache."""
    _, blocks, words, numbers, _ = found.weights.static_shape
    size, registers, rows = words * numbers, target.num_vector_registers, found.rows

    def depths(p: BlockParameters) -> list[int]:
        most = target.l2_bytes // (p.vectors * target.vector_bytes)
        # Less than a block is a block, more than all of them are all.
        candidates = (n * size for n in part_sizes(blocks) if n * size <= min(most, 1 << 10))
        return distinct(candidates, p.depth, lambda depth: min(blocks, max(1, depth // size)))

    def task_rows(p: BlockParameters) -> list[int]:
        if isinstance(rows, Dim):
            return powers_of_two(16, 1 << 10)
        return distinct((n for n in part_sizes(rows) if n <= 1 << 10), p.task_rows, lambda n: ceil_div(rows, ceil_div(rows, n)))

    return {
        "vectors": lambda p: powers_of_two(1, 8),
        "rows": lambda p: list(range(1, min(16, max(1, (registers - 1 - p.vectors) // p.vectors)) + 1)),
        "depth": depths,
        "task_rows": task_rows,
    }


class RowSums(Protocol):
    """Sums of few rows, of weights that are read where they lie.

    Attributes:
      most_rows, tile_rows: how many rows there may be, and how many a tile has at most.
    """

    most_rows: Size
    tile_rows: int

    def prepare(self, work: Size, grain: int) -> None:
        """What is done with the data before the first task."""

    def strips(self, rows: int) -> int:
        """How many a tile of so many rows has at most."""

    def sums(self, rows: Sequence[Index], vectors: Vectors) -> Values:
        """Sums over the depth, row by row."""


class RowTasks(Protocol):
    """Tasks of many rows, for which weights are unpacked once.

    Attributes:
      tile_rows: of which tasks have whole numbers, but for the last.
      strips: of a task.
    """

    tile_rows: int
    strips: int

    def prepare(self, work: Size, grain: int) -> None:
        """What is done with the data before the first task."""

    def task(self, first: Index, size: Count, most: int, columns: Columns, finish: Callable[[Index, Columns, Values], None]) -> None:
        """Calls `finish` with each of `size` rows from `first` on, at most `most`, with strips and with their sums."""


class _Product:
    """The tasks of a kernel, and its results."""

    def __init__(self, operands: Operands, few: RowSums, many: RowTasks, output: Value, parameters: BlockParameters) -> None:
        self.o, self.c, self.evaluator = operands, operands.c, operands.evaluator
        self.few, self.many, self.output, self.p = few, many, output, parameters

    # ---- tasks

    def emit(self, grain: int) -> None:
        rows = self.c.rows
        most = self.p.task_rows // self.many.tile_rows * self.many.tile_rows

        def many() -> None:
            self.many.prepare(rows * self.o.depth, grain)
            self._tasks(self._many, ceil_div(rows, max(most, self.many.tile_rows)), self.many.tile_rows, self.many.strips, grain)

        def few() -> None:
            self.few.prepare(rows * self.o.depth, grain)
            self._tasks(self._few, 1, 1, max(1, self.p.vectors // self.o.in_strip), grain)

        most_of_few = self.few.most_rows
        if isinstance(most_of_few, Dim) or most_of_few == rows:  # all of them
            few()
        else:
            nest.at_least([(rows, most_of_few + 1)], self.evaluator, many, few)

    def _tasks(self, task: Task, parts: Size, tile: int, together: int, grain: int) -> None:
        """`task(first row, rows, at most, columns)` for all strips and parts of the rows, of whole tiles."""
        groups, left = divmod(self.o.strips, together)
        if groups:
            self._groups(task, parts, tile, Index(), groups, together, grain)
        if left:
            self._groups(task, parts, tile, Index(groups * together), 1, left, grain)

    def _groups(self, task: Task, parts: Size, tile: int, first: Index, groups: int, count: int, grain: int) -> None:
        """The tasks of `groups` times `count` strips from `first` on."""
        rows = self.c.rows
        each = ceil_div(ceil_div(rows, parts), tile) * tile if isinstance(parts, int) else max(self.p.task_rows // tile, 1) * tile
        work = rows * groups * count * self.o.lanes * self.o.depth
        part, group = Var.below(parts, name="part"), Var.below(groups, name="group")
        variables = [v for v, n in ((part, parts), (group, groups)) if n != 1]
        with nest.tasks(variables, self.evaluator, work, grain):
            row = Index.of(part) * each if parts != 1 else Index()
            strip = first + (Index.of(group) * count if groups != 1 else 0)
            size: Count = each
            if parts == 1 and isinstance(rows, int):
                size = rows
            elif not proves(lambda: parts * each == rows):
                size = emit.smaller(emit.materialize(row * -1 + rows), each)
            most = each if isinstance(each, int) else self.p.task_rows
            task(row, size, most, Columns(strip, count))

    def _few(self, first: Index, size: Count, most: int, columns: Columns) -> None:
        """Tiles that read the weights where they lie."""
        for some in self.o.row_tiles(first, size, self.few.tile_rows):
            with self.o.each_tile(some) as row:
                rows = [row + i for i in range(some.rows)]
                for part in columns.parts(self.few.strips(some.rows)):
                    self._finish(rows, part, self.few.sums(rows, self.o.vectors(part)))

    def _many(self, first: Index, size: Count, most: int, columns: Columns) -> None:
        self.many.task(first, size, most, columns, lambda row, part, sums: self._finish([row], part, sums))

    # ---- results

    def _finish(self, rows: Sequence[Index], columns: Columns, sums: Sequence[Value]) -> None:
        """Evaluates the epilogue on the sums of a tile and stores the results."""
        vectors = self.o.vectors(columns)
        for v, (counted, lane) in enumerate(vectors):
            # The result reads the only strip as number 0, also where a loop has counted it.
            strip = counted if self.o.strips > 1 else Index()
            start = strip * self.o.lanes + lane
            mask = None
            if self.c.columns != self.o.strips * self.o.lanes:
                mask = emit.first_lanes(emit.larger(emit.materialize(start * -1 + self.c.columns), 0), self.o.width)
            for i, row in enumerate(rows):
                with self.evaluator.along(self.o.width, mask) as lanes:
                    leading = self._row_point(row)
                    number = linearize(leading, self.c.root.shape[:-1])
                    self.evaluator.remember(self.c.product, [number, strip, lanes + lane], sums[i * len(vectors) + v])
                    point = [*leading, start + lanes]
                    self.evaluator.store(self.evaluator.at(self.c.root, point), self.output, linearize(point, self.c.root.shape))

    def _row_point(self, row: Index) -> list[Index]:
        """Indices of a row in the leading dimensions of the result."""
        shape = self.c.root.shape[:-1]
        point, rest = [Index()] * len(shape), row
        others = [d for d, n in enumerate(shape) if n != 1]
        for d in others[:0:-1]:
            quotient = self.evaluator.divide(rest, shape[d], "quotient")
            point[d] = self.evaluator.divide(rest, shape[d], "remainder")
            rest = quotient
        if others:
            point[others[0]] = rest
        return point
