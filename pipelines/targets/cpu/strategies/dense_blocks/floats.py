"""Sums of products with weights of a few bits that become floats: for few rows where they are read, for many in a buffer of the thread.

The middle of their range is subtracted from the numbers of a word, which makes them two's complements; two shifts and a conversion then
make a float of each. The zero and the scale are the same for a block, and are applied once a block: the zero as its distance from the
middle times the sum of the data. Symmetric quantization has distance 0; a large distance would cost data of one sign bits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cpu.strategies.dense_blocks.operands import (
    SCALES,
    WORDS,
    Columns,
    Count,
    Operands,
    Value,
    Values,
    Vectors,
    times,
)
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import local_buffer
from relayc.pipelines.tir.values.vectors import pairwise
from relayc.symbolic import Size, ceil_div

UNROLLED = 512
"""Multiply-adds of a block up to which its words are unrolled."""
WORD_BITS = 32
STEPS = 4
"""Depths that a tile goes over at a time; they divide any block."""


def number(operands: Operands, word: Value, place: int) -> Value:
    """The numbers in a place of words, which are two's complements, as floats."""
    bits = operands.c.bits
    up = WORD_BITS - bits * (place + 1)
    if up:
        word = emit.arith("shli", word, emit.number(up, word.type))
    return emit.create("arith.sitofp", [operands.vector], [emit.arith("shrsi", word, emit.number(WORD_BITS - bits, word.type))])


def words(operands: Operands, strip: Index, block: Index, word: Index, lane: int) -> Value:
    """Words with the middle of their range subtracted from all numbers, which are two's complements then."""
    found, bits = operands.weight_input(WORDS, strip, block, word, lane), operands.c.bits
    middles = sum(1 << (bits * place + bits - 1) for place in range(operands.numbers))
    return emit.arith("xori", found, emit.number(middles - (1 << WORD_BITS), found.type))


def scale_and_zero(operands: Operands, strip: Index, block: Index, lane: int) -> tuple[Value, Value]:
    """The scale of a block, and the distance of its zero from the middle of the numbers: 0 for symmetric quantization."""
    scale, zero = operands.weight_input(SCALES, strip, block, Index(), lane), operands.zero(strip, block, lane)
    return scale, emit.arith("subf", zero, emit.number(1 << (operands.c.bits - 1), zero.type))


class FloatSums:
    """Sums of a few rows (see `product.RowSums`). An infinity in the data makes a NaN of its row."""

    most_rows: Size = 2
    tile_rows = 2

    def __init__(self, operands: Operands) -> None:
        self.o, self.evaluator = operands, operands.evaluator

    def prepare(self, work: Size, grain: int) -> None:
        """Data are read where they lie."""

    def strips(self, rows: int) -> int:
        return self.o.strips

    def sums(self, rows: Sequence[Index], vectors: Vectors) -> Values:
        zeros = [emit.zero(self.o.vector)] * (len(rows) * len(vectors))

        def add(block: Index, sums: Values) -> Values:
            return self._corrected(rows, vectors, block, self._block_sums(rows, vectors, block, zeros), sums)

        return nest.carried(self.o.blocks, "block", self.evaluator, zeros, add)

    def _corrected(self, rows: Sequence[Index], vectors: Vectors, block: Index, parts: Values, sums: Values) -> Values:
        """Sums with those of a block added, after its zero and scale are applied."""
        found, totals = list(sums), [self._total(row, block) for row in rows]
        for v, (strip, lane) in enumerate(vectors):
            scale, zero = scale_and_zero(self.o, strip, block, lane)
            off = emit.create("arith.negf", [self.o.vector], [zero])
            for i in range(len(rows)):
                at = i * len(vectors) + v
                found[at] = emit.multiply_add(emit.multiply_add(off, totals[i], parts[at]), scale, found[at])
        return found

    def _block_sums(self, rows: Sequence[Index], vectors: Vectors, block: Index, sums: Values) -> Values:
        """Sums with the products with the numbers of a block added."""
        add = partial(self._word_sums, rows, vectors, block)
        return nest.carried(self.o.words, "word", self.evaluator, sums, add, unrolled=self.o.block_size * len(sums) <= UNROLLED)

    def _word_sums(self, rows: Sequence[Index], vectors: Vectors, block: Index, word: Index, sums: Values) -> Values:
        o, found = self.o, list(sums)
        read = [words(o, strip, block, word, lane) for strip, lane in vectors]
        for place in range(o.numbers):
            numbers = [number(o, w, place) for w in read]
            for i, row in enumerate(rows):
                data = emit.broadcast(o.data(row, block, word * o.numbers + place), o.width)
                for v, weight in enumerate(numbers):
                    at = i * len(vectors) + v
                    found[at] = emit.multiply_add(data, weight, found[at])
        return found

    def _total(self, row: Index, block: Index) -> Value:
        """The sum of the data of a row and block, in all lanes."""
        o = self.o
        with self.evaluator.along(o.width) as lane:
            parts = [o.data(row, block, lane + at) for at in range(0, o.block_size, o.width)]
        total = pairwise(parts, lambda a, b: emit.arith("addf", a, b))
        if o.width == 1:
            return total
        attributes = {"kind": ir.Attribute.parse("#vector.kind<add>"), "fastmath": ir.Attribute.parse("#arith.fastmath<reassoc>")}
        return emit.broadcast(emit.create("vector.reduction", [o.float], [total], attributes), o.width)


@dataclass(frozen=True)
class _Panel:
    """Buffers of a task, `pitch` elements a row: weights as floats, depth by depth, and sums of the rows."""

    weights: Value
    sums: Value
    pitch: int


class FloatPanels:
    """Many rows (see `product.RowTasks`): a piece of the depth becomes floats, which tiles of rows in registers then go over.

    Args:
      vectors, rows: of columns, and of rows, of a tile.
      depth: of the weights in the buffer, as whole blocks.
    """

    tile_rows = 1

    def __init__(self, operands: Operands, vectors: int, rows: int, depth: int) -> None:
        self.o, self.evaluator, self.rows = operands, operands.evaluator, rows
        self.strips = max(1, vectors // operands.in_strip)
        self.step = operands.whole_blocks(depth)

    def prepare(self, work: Size, grain: int) -> None:
        """Data are read where they lie."""

    def task(self, first: Index, size: Count, most: int, columns: Columns, finish: Callable[[Index, Columns, Values], None]) -> None:
        """Pieces of the depth one after the other; sums wait in a buffer between them."""
        o, step = self.o, self.step
        pitch = columns.count * o.lanes
        panel = _Panel(local_buffer(step * o.block_size * pitch, o.float), local_buffer(most * pitch, o.float), pitch)
        with nest.loop(0, ceil_div(o.blocks, step), self.evaluator, name="piece") as piece:
            block = piece * step
            blocks = o.blocks_from(block, step)
            self._unpack(block, blocks, columns, panel)
            for tiles in o.row_tiles(Index(), size, self.rows):
                with o.each_tile(tiles) as row:
                    self._add_piece([first + row + i for i in range(tiles.rows)], row, block, blocks, panel, piece)
        for tiles in o.row_tiles(Index(), size, 1):
            with o.each_tile(tiles) as row:
                finish(first + row, columns, self._waiting(panel, row, 1))

    def _unpack(self, first: Index, blocks: Value | int, columns: Columns, panel: _Panel) -> None:
        """Weights of blocks from `first` on as floats."""
        o = self.o
        vectors = o.vectors(columns)
        with nest.loop(0, blocks, self.evaluator, below=o.blocks, name="block") as at:
            block = first + at
            factors = [scale_and_zero(o, strip, block, lane) for strip, lane in vectors]
            with nest.loop(0, o.words, self.evaluator, name="word") as word:
                depth = at * o.block_size + word * o.numbers
                for v, (strip, lane) in enumerate(vectors):
                    read, (scale, zero) = words(o, strip, block, word, lane), factors[v]
                    for place in range(o.numbers):
                        value = emit.arith("mulf", emit.arith("subf", number(o, read, place), zero), scale)
                        with self.evaluator.along(o.width) as lanes:
                            self.evaluator.store(value, panel.weights, (depth + place) * panel.pitch + v * o.width + lanes)

    def _add_piece(self, rows: Sequence[Index], place: Index, block: Index, blocks: Value | int, panel: _Panel, piece: Index) -> None:
        """Adds the products with the weights in the buffer to the sums of a tile, whose first row is row `place` of the sums."""
        o = self.o
        vectors = panel.pitch // o.width
        follows = emit.compare("ne", emit.materialize(piece), emit.index_constant(0))
        zeros = [emit.zero(o.vector)] * (len(rows) * vectors)
        inits = nest.either(follows, self.evaluator, lambda: self._waiting(panel, place, len(rows)), zeros)
        depth = times(blocks, o.block_size)
        with nest.carrying(0, depth, self.evaluator, inits, step=STEPS, below=o.blocks * o.block_size, name="depth") as (var, loop):
            found = list(loop.inner_iter_args)
            for k in range(STEPS):
                with self.evaluator.along(o.width) as lanes:
                    at = (var + k) * panel.pitch + lanes
                    weights = [self.evaluator.load_from(panel.weights, o.float, at + v * o.width) for v in range(vectors)]
                for i, row in enumerate(rows):
                    data = emit.broadcast(o.data(row, block, var + k), o.width)
                    for v in range(vectors):
                        found[i * vectors + v] = emit.multiply_add(data, weights[v], found[i * vectors + v])
            emit.yield_values(found)
        with self.evaluator.along(o.width) as lanes:
            for number, value in enumerate(loop.results):
                i, v = divmod(number, vectors)
                self.evaluator.store(value, panel.sums, (place + i) * panel.pitch + v * o.width + lanes)

    def _waiting(self, panel: _Panel, place: Index, rows: int) -> Values:
        """Sums of a tile from their buffer."""
        with self.evaluator.along(self.o.width) as lanes:
            return [
                self.evaluator.load_from(panel.sums, self.o.float, (place + i) * panel.pitch + v * self.o.width + lanes)
                for i in range(rows)
                for v in range(panel.pitch // self.o.width)
            ]
