"""Sums of products with weights of a few bits on AMX tiles of bf16, for many rows.

Numbers without their zeros are exact in bf16, and a float is the sum of three of them (of two where the model asks for less): the
products of all parts of the data with the numbers of a block are added up in one tile, which is scaled when it leaves the tile registers.
The scale of a block is that of its columns, a vector, for all rows of the tile.

A task is some rows by some strips. It goes over pieces of the depth: the numbers of a piece become bf16 in a buffer of the thread, and each
tile of rows meets all of its strips before the next one. An infinity in the data makes a NaN of its row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.bf16.amx import MAX_ROWS, MAX_STEP, AmxSums
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock
from relayc.pipelines.targets.cpu.strategies.dense_blocks.operands import SCALES, WORDS, ZEROS, Columns, Count, Operands, Value, Values
from relayc.pipelines.te.read.dense_blocks import DenseBlocks
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import local_buffer, view
from relayc.symbolic import Size, ceil_div

TASK_STRIPS = 32
"""Strips of a task, at most: so many meet the data of a piece once these have come from memory."""
WIDTH = 2
"""Strips that share the data in tile registers; with two blocks each, as many sums are under way as hide their latency."""
UNROLLED_STEPS = 4
"""Multiplications in depth of a block up to which these are unrolled."""


@dataclass(frozen=True)
class _Place:
    """Tile `row_tile` of rows, which is tile `tile` of the task; `width` strips of the task from `strip` on."""

    row_tile: Index
    tile: Index
    strip: Index
    width: int


class TilePanels:
    """Many rows (see `product.RowTasks`).

    Attributes:
      piece: depth of a piece, in whole blocks: a tile of rows of it stays in the first-level cache.

    Args:
      parts: bf16 numbers that a datum is the sum of.
      memory: workspace of `bytes_of` bytes.
    """

    tile_rows = MAX_ROWS
    piece = 512

    def __init__(self, operands: Operands, parts: int, threads: int, memory: Value) -> None:
        self.o, self.evaluator, self.parts = operands, operands.evaluator, parts
        self.strips = min(TASK_STRIPS, ceil_div(operands.strips, 2 * threads))
        self.bf16, self.i32 = ir.BF16Type.get(), ir.IntegerType.get_signless(32)
        self.step = MAX_STEP if operands.block_size % MAX_STEP == 0 else MAX_STEP // 2
        self.blocks = operands.whole_blocks(self.piece)
        self.data = view(memory, 0, bytes_of(operands.c.rows, operands.depth, parts) // 2, self.bf16)
        self.together = 2 if self.blocks % 2 == operands.blocks % 2 == 0 else 1
        self.tiles = AmxSums(SumBlock(MAX_ROWS, 1, 1), self.step)

    # ---- data

    def prepare(self, work: Size, grain: int) -> None:
        """The parts of all data, tile by tile of rows and of depths."""
        o = self.o
        row = Var.below(o.c.rows, name="row")
        with (
            nest.tasks([row], self.evaluator, work, grain),
            nest.loop(0, o.blocks, self.evaluator, name="block") as block,
            nest.loop(0, o.block_size, self.evaluator, step=COLUMNS, name="depth") as at,
        ):
            self._split(Index.of(row), block, at)

    def _split(self, row: Index, block: Index, depth: Index) -> None:
        """The parts of as many neighbours as there are lanes."""
        o, evaluator = self.o, self.evaluator
        with evaluator.along(COLUMNS) as lane:
            rest = emit.broadcast(o.data(row, block, depth + lane), COLUMNS)
        tile, line = evaluator.divide(row, MAX_ROWS, "quotient"), evaluator.divide(row, MAX_ROWS, "remainder")
        step, inside = evaluator.divide(depth, self.step, "quotient"), evaluator.divide(depth, self.step, "remainder")
        words = emit.vector_of(COLUMNS, self.i32)
        for part in range(self.parts):
            top = rest
            if part < self.parts - 1:
                kept = emit.arith("andi", vectors.bitcast(rest, self.i32), emit.number(-1 << 16, words))
                top = vectors.bitcast(kept, o.float)
                rest = emit.arith("subf", rest, top)
            at = self._tile_of_data(tile, block * (o.block_size // self.step) + step, part) + line * self.step + inside
            vectors.store(emit.convert(top, [("arith.truncf", self.bf16)]), self.data, at)

    def _tile_of_data(self, tile: Index, step: Index, part: int) -> Index:
        return ((tile * (self.o.depth // self.step) + step) * self.parts + part) * (MAX_ROWS * self.step)

    # ---- a task

    def task(self, first: Index, size: Count, most: int, columns: Columns, finish: Callable[[Index, Columns, Values], None]) -> None:
        """Rows from `first` on, which is the first row of a tile; sums wait in a buffer, strip by strip."""
        o, evaluator, strips = self.o, self.evaluator, columns.count
        self.most = ceil_div(most, MAX_ROWS) * MAX_ROWS
        self.weights = local_buffer(WIDTH * self.blocks * o.block_size * COLUMNS, self.bf16)
        self.scales = local_buffer(WIDTH * self.blocks * COLUMNS, o.float)
        self.sums = local_buffer(strips * self.most * COLUMNS, o.float)
        self.scratch = local_buffer(WIDTH * self.together * MAX_ROWS * COLUMNS, o.float)
        tiles: Count = ceil_div(size, MAX_ROWS) if isinstance(size, int) else emit.arith("ceildivui", size, emit.index_constant(MAX_ROWS))
        self._clear(self.sums, strips * self.most * COLUMNS)
        whole = strips // WIDTH * WIDTH
        with nest.loop(0, ceil_div(o.blocks, self.blocks), evaluator, name="piece") as piece:
            block = piece * self.blocks
            blocks = o.blocks_from(block, self.blocks)
            for begin, end, width in ((0, whole, WIDTH), (whole, strips, 1)):
                if begin == end:
                    continue
                with nest.loop(begin, end, evaluator, step=width, below=strips, name="strip") as strip:
                    for i in range(width):
                        self._unpack(columns.first + strip + i, Index(i), block, blocks)
                    with nest.loop(0, tiles, evaluator, below=ceil_div(most, MAX_ROWS), name="tile") as tile:
                        row_tile = evaluator.divide(first, MAX_ROWS, "quotient") + tile
                        self._add_piece(_Place(row_tile, tile, strip, width), block, blocks)
        self._finish(first, size, most, columns, finish)

    def _clear(self, buffer: Value, count: int) -> None:
        """Sets the first `count` elements of a buffer to 0."""
        with nest.loop(0, count, self.evaluator, step=COLUMNS, name="zero") as at:
            vectors.store(emit.zero(self.o.vector), buffer, at)

    def _finish(self, first: Index, size: Count, most: int, columns: Columns, finish: Callable[[Index, Columns, Values], None]) -> None:
        """Calls `finish` with the sums of each row and strip."""
        with (
            nest.loop(0, size, self.evaluator, below=most, name="row") as row,
            nest.loop(0, columns.count, self.evaluator, name="strip") as strip,
        ):
            found = vectors.load(self.sums, self._sum(strip, row), COLUMNS)
            finish(first + row, Columns(columns.first + strip, 1), [found])

    def _sum(self, strip: Index, row: Index) -> Index:
        return (strip * self.most + row) * COLUMNS

    def _unpack(self, strip: Index, place: Index, first: Index, blocks: Count) -> None:
        """Numbers of blocks from `first` on in bf16, two neighbours of the depth together, and their scales."""
        o = self.o
        span = float(1 << o.c.bits)
        with nest.loop(0, blocks, self.evaluator, below=self.blocks, name="block") as number:
            block = first + number
            here = place * self.blocks + number
            vectors.store(o.weight_input(SCALES, strip, block, Index(), 0), self.scales, here * COLUMNS)
            off = emit.arith("subf", emit.number(-span, o.vector), o.zero(strip, block, 0))
            with nest.loop(0, o.words, self.evaluator, name="word") as word:
                o.ask_ahead(WORDS, [strip + WIDTH, block, word, Index(), Index()])
                words = o.weight_input(WORDS, strip, block, word, 0)
                for pair in range(0, o.numbers, 2):
                    low, high = (
                        vectors.bitcast(emit.multiply_add(o.number(words, pair + i), emit.number(span, o.vector), off), self.i32)
                        for i in range(2)
                    )
                    both = emit.arith("ori", emit.arith("shrui", low, emit.number(16, low.type)), high)
                    depth = here * o.block_size + word * o.numbers + pair
                    vectors.store(vectors.bitcast(both, self.bf16), self.weights, depth * COLUMNS)

    def _add_piece(self, place: _Place, first: Index, blocks: Count) -> None:
        """The products of a tile of rows and some strips, added to their sums: those of some blocks leave the tile registers together, and
        are scaled while those of the next blocks are under way."""
        self._clear(self.scratch, place.width * self.together * MAX_ROWS * COLUMNS)
        with nest.loop(0, blocks, self.evaluator, step=self.together, below=self.blocks, name="block") as number:
            before = self.evaluator.opaque(emit.larger(emit.materialize(number - self.together), 0), 0, self.blocks)
            self._multiply(place, first, number, self._scaled(place, before))
        end = Index(blocks) if isinstance(blocks, int) else self.evaluator.opaque(blocks, 0, self.blocks)
        for step in self._scaled(place, end - self.together):
            step()

    def _multiply(self, place: _Place, first: Index, block: Index, between: list[Callable[[], None]]) -> None:
        """Sums of blocks from `block` of the piece on go to the scratch buffer, which `between` reads, piecemeal, before."""
        o, tiles, width = self.o, self.tiles, range(place.width)
        steps = o.block_size // self.step
        left = self.together * min(steps, UNROLLED_STEPS) * self.parts

        def multiply(u: int, step: Index, totals: Values) -> Values:
            nonlocal left
            found = list(totals)
            at = [((block + u + i * self.blocks) * o.block_size + step * self.step) * COLUMNS for i in width]
            weights = [tiles.load(tiles.b_type, self.weights, b, tiles.group * COLUMNS) for b in at]
            for part in range(self.parts):
                a = self._tile_of_data(place.row_tile, (first + block + u) * steps + step, part)
                data = tiles.load(tiles.a_type, self.data, a, self.step)
                found = [tiles.multiply(data, w, total) for w, total in zip(weights, found, strict=True)]
                for _ in range(ceil_div(len(between), max(left, 1))):
                    between.pop()()
                left -= 1
            return found

        sums = []
        for u in range(self.together):
            totals = [tiles.begin()[0] for _ in width]
            if steps <= UNROLLED_STEPS:
                for step in range(steps):
                    totals = multiply(u, Index(step), totals)
            else:
                while between:
                    between.pop()()
                with nest.carrying(0, steps, self.evaluator, totals, name="step") as (var, loop):
                    emit.yield_values(multiply(u, var, list(loop.inner_iter_args)))
                totals = list(loop.results)
            sums.append(totals)
        for u, totals in enumerate(sums):
            for i, total in enumerate(totals):
                tiles.store(total, self.scratch, self._scratch(i, u, 0), COLUMNS)

    def _scratch(self, strip: int, block: int, row: int) -> Index:
        return Index(((strip * self.together + block) * MAX_ROWS + row) * COLUMNS)

    def _scaled(self, place: _Place, block: Index) -> list[Callable[[], None]]:
        """What adds the scratch buffer, which has the sums of blocks from `block` of the piece on, scaled to the sums, row by row."""

        def add(scales: Values, strip: int, row: int) -> None:
            if not scales:
                at = [(block + u + strip * self.blocks) * COLUMNS for u in range(self.together)]
                scales.extend(vectors.load(self.scales, a, COLUMNS) for a in at)
            here = self._sum(place.strip + strip, place.tile * MAX_ROWS + row)
            found = vectors.load(self.sums, here, COLUMNS)
            for u, scale in enumerate(scales):
                found = emit.multiply_add(vectors.load(self.scratch, self._scratch(strip, u, row), COLUMNS), scale, found)
            vectors.store(found, self.sums, here)

        found: list[Callable[[], None]] = []
        for strip in range(place.width):
            scales: Values = []
            found += [partial(add, scales, strip, row) for row in range(MAX_ROWS)]
        return found[::-1]


def takes(found: DenseBlocks, target: Target) -> bool:
    """Whether there are tiles, and they take the operands: zeros are whole numbers, vectors have all columns of a strip."""
    zeros = found.weights.structured.inputs[ZEROS]
    return target.has("amx-bf16") and target.lanes(32) == COLUMNS and not isinstance(zeros.element, ir.FloatType)


def bytes_of(rows: Size, depth: int, parts: int) -> Size:
    """Bytes of the parts of the data of whole tiles of rows."""
    return ceil_div(rows, MAX_ROWS) * MAX_ROWS * depth * parts * 2
