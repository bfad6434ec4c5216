"""Sums of products with weights of a few bits on AMX tiles, for many rows and models to which bf16 is exact enough (accuracy_level).

Data and weights, these with their scales, are rounded to bf16: the error of each is that of 8 significant bits, less than that of data in
8-bit integers with one scale for a block. So sums stay in the tile registers over a whole piece of the depth, where scales of blocks of
integers would take longer than the products.
"""

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.bf16.amx import MAX_ROWS, AmxSums
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock
from relayc.pipelines.targets.cpu.strategies.dense_blocks.floats import scale_and_offset
from relayc.pipelines.targets.cpu.strategies.dense_blocks.operands import WORDS, Count, Operands, Value, Values
from relayc.pipelines.targets.cpu.strategies.dense_blocks.tiles import WIDTH, TilePanels
from relayc.pipelines.tir.values import vectors

HEIGHT = 2
"""Tiles of rows that share the weights in tile registers."""
HALF = 1 << 15
"""Half of the last place of a bf16 number, in the bits of a float."""


class ScaledPanels(TilePanels):
    """Many rows (see `product.RowTasks`) in bf16."""

    def __init__(self, operands: Operands, threads: int, memory: Value) -> None:
        super().__init__(operands, 1, threads, memory)

    def _unpack(self, strip: Index, place: Index, first: Index, blocks: Count) -> None:
        """Weights of blocks from `first` on in bf16, two neighbours of the depth together."""
        o = self.o
        var, word = Var(0, self.blocks - 1, name="block"), Var(0, o.words - 1, name="word")
        with emit.for_loop(0, blocks, 1, var), self.evaluator.scope():
            block = first + Index.of(var)
            here = place * self.blocks + Index.of(var)
            scale, offset = scale_and_offset(o, strip, block, 0)
            off = emit.create("arith.negf", [o.vector], [emit.arith("mulf", scale, offset)])
            with emit.for_loop(0, o.words, 1, word), self.evaluator.scope():
                o.ask_ahead(WORDS, [strip + WIDTH, block, Index.of(word), Index(), Index()])
                words = o.weight_input(WORDS, strip, block, Index.of(word), 0)
                for pair in range(0, o.numbers, 2):
                    low, high = (self._rounded(emit.multiply_add(o.number(words, pair + i), scale, off)) for i in range(2))
                    both = emit.arith("ori", emit.arith("shrui", low, emit.number(16, low.type)), self._top(high))
                    depth = here * o.block_size + Index.of(word) * o.numbers + pair
                    vectors.store(vectors.bitcast(both, self.bf16), self.weights, depth * COLUMNS)

    def _rounded(self, value: Value) -> Value:
        """Bits whose upper half is the nearest number of bf16."""
        bits = vectors.bitcast(value, self.i32)
        return emit.arith("addi", bits, emit.number(HALF, bits.type))

    def _top(self, bits: Value) -> Value:
        return emit.arith("andi", bits, emit.number(-1 << 16, bits.type))

    def _add_tiles(self, first: Index, tiles: Count, strip: Index, width: int, block: Index, blocks: Count) -> None:
        evaluator = self.evaluator
        count = tiles if isinstance(tiles, ir.Value) else emit.index_constant(tiles)
        whole = emit.arith("muli", emit.arith("divui", count, emit.index_constant(HEIGHT)), emit.index_constant(HEIGHT))
        tile = Var(0, self.most // MAX_ROWS - 1, name="tile")
        for begin, end, height in ((0, whole, HEIGHT), (whole, count, 1)):
            with emit.for_loop(begin, end, height, tile), evaluator.scope():
                row_tile = evaluator.divide(first, MAX_ROWS, "quotient") + Index.of(tile)
                self._add(row_tile, Index.of(tile), strip, SumBlock(MAX_ROWS, height, width), block, blocks)

    def _add(self, row_tile: Index, tile: Index, strip: Index, shape: SumBlock, first: Index, blocks: Count) -> None:
        """The products of a piece, added to the sums of some tiles of rows, from `tile` of the task on, and some strips."""
        o, tiles = self.o, AmxSums(shape, self.step)
        rows, columns = range(shape.row_tiles), range(shape.column_tiles)
        steps = o.block_size // self.step
        places = [self._sum(strip + j, (tile + i) * MAX_ROWS) for i in rows for j in columns]
        sums: Values = [tiles.load(tiles.sum_type, self.sums, at, COLUMNS) for at in places]
        end = blocks * steps if isinstance(blocks, int) else emit.arith("muli", blocks, emit.index_constant(steps))
        var = Var(0, self.blocks * steps - 1, name="step")
        with emit.for_loop(0, end, 1, var, sums) as loop, self.evaluator.scope():
            step = Index.of(var)
            left = [self._tile_of_data(row_tile + i, first * steps + step, 0) for i in rows]
            right = [(step + j * (self.blocks * steps)) * (self.step * COLUMNS) for j in columns]
            emit.yield_values(tiles.step(self.data, left, self.step, self.weights, right, list(loop.inner_iter_args)))
        for at, total in zip(places, loop.results, strict=True):
            tiles.store(total, self.sums, at, COLUMNS)
