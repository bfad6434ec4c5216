"""Sums of products with weights of a few bits on AMX tiles, for many rows and models to which bf16 is exact enough (accuracy_level).

Data and weights, these with their scales, are rounded to bf16: the error of each is that of 8 significant bits, less than that of data in
8-bit integers with one scale for a block. So sums stay in the tile registers over a whole piece of the depth, where scales of blocks of
integers would take longer than the products.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cpu.strategies.bf16.amx import MAX_ROWS, AmxSums
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock
from relayc.pipelines.targets.cpu.strategies.dense_blocks.operands import WORDS, Columns, Count, Operands, Value, Values, times
from relayc.pipelines.targets.cpu.strategies.dense_blocks.tiles import WIDTH, TilePanels
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import local_buffer, prefetch
from relayc.symbolic import Dim, ceil_div

HEIGHT = 2
"""Tiles of rows that share the weights in tile registers."""
HALF = 1 << 15
"""Half of the last place of a bf16 number, in the bits of a float."""


@dataclass(frozen=True)
class _Turn:
    """The weights that are in the buffer at a time: a piece of the depth of WIDTH strips.

    Attributes:
      block, blocks: the first block, and how many there are.
      strip: of the task, the first one.
      place: in the buffer, of two.
    """

    block: Index
    blocks: Count
    strip: Index
    place: Index


class ScaledPanels(TilePanels):
    """Many rows (see `product.RowTasks`) in bf16: vectors unpack the weights of the next turn while tiles multiply those of this one.

    Tiles of data come from the second-level cache. Longer pieces load and store sums less often.
    """

    piece = 1024

    def __init__(self, operands: Operands, threads: int, memory: Value) -> None:
        super().__init__(operands, 1, threads, memory)
        self.steps = operands.block_size // self.step
        self.each = self.blocks * operands.block_size * COLUMNS

    def task(self, first: Index, size: Count, most: int, columns: Columns, finish: Callable[[Index, Columns, Values], None]) -> None:
        """Rows from `first` on, which is the first row of a tile; sums wait in a buffer, strip by strip."""
        o, evaluator = self.o, self.evaluator
        pairs = ceil_div(columns.count, WIDTH)
        self.most = ceil_div(most, MAX_ROWS) * MAX_ROWS
        self.weights = local_buffer(2 * WIDTH * self.each, self.bf16)
        self.sums = local_buffer(pairs * WIDTH * self.most * COLUMNS, o.float)
        self._clear(self.sums, pairs * WIDTH * self.most * COLUMNS)
        rows = emit.index_constant(size) if isinstance(size, (int, Dim)) else size
        tiles = emit.arith("ceildivui", rows, emit.index_constant(MAX_ROWS))
        turns = ceil_div(o.blocks, self.blocks) * pairs
        self._unpack_words(columns, self._turn(Index(), pairs), 0, self._words(self._turn(Index(), pairs)))
        with nest.loop(0, turns, evaluator, name="turn") as at:
            following = self._turn(emit.at_most(at + 1, turns - 1), pairs, at + 1)
            more = emit.compare("ne", emit.materialize(at), emit.index_constant(turns - 1))
            words = emit.create("arith.select", [ir.IndexType.get()], [more, self._words(following), emit.index_constant(0)])
            self._add_turn(evaluator.divide(first, MAX_ROWS, "quotient"), tiles, columns, self._turn(at, pairs), following, words)
        self._finish(first, size, most, columns, finish)

    def _turn(self, number: Index, pairs: int, place: Index | None = None) -> _Turn:
        divide = self.evaluator.divide
        block = divide(number, pairs, "quotient") * self.blocks
        blocks = self.o.blocks_from(block, self.blocks)
        return _Turn(block, blocks, divide(number, pairs, "remainder") * WIDTH, divide(number if place is None else place, 2, "remainder"))

    def _words(self, turn: _Turn) -> Value:
        """Words of the weights of a turn."""
        return times(turn.blocks, self.o.words * WIDTH)

    # ---- weights

    def _unpack_words(self, columns: Columns, turn: _Turn, begin: Value | int, end: Value) -> None:
        """Some words of a turn to bf16 numbers, two neighbours of the depth together; strips take turns block by block."""
        o, divide = self.o, self.evaluator.divide
        with nest.loop(begin, end, self.evaluator, below=self.blocks * o.words * WIDTH, name="word") as number:
            word, rest = divide(number, o.words, "remainder"), divide(number, o.words, "quotient")
            here, block = divide(rest, WIDTH, "remainder"), divide(rest, WIDTH, "quotient")
            strip = columns.first + emit.at_most(turn.strip + here, columns.count - 1)
            depth = (turn.place * WIDTH + here) * self.each + (block * o.block_size + word * o.numbers) * COLUMNS
            self._unpack_word(strip, turn.block + block, word, depth)

    def _unpack_word(self, strip: Index, block: Index, word: Index, place: Index) -> None:
        o = self.o
        scale, offset = o.scale_and_offset(strip, block, 0)
        off = emit.create("arith.negf", [o.vector], [emit.arith("mulf", scale, offset)])
        o.ask_ahead(WORDS, [strip + WIDTH, block, word, Index(), Index()])
        words = o.weight_input(WORDS, strip, block, word, 0)
        for pair in range(0, o.numbers, 2):
            low, high = (self._rounded(emit.multiply_add(o.number(words, pair + i), scale, off)) for i in range(2))
            upper = emit.arith("andi", high, emit.number(-1 << 16, high.type))
            both = emit.arith("ori", emit.arith("shrui", low, emit.number(16, low.type)), upper)
            vectors.store(vectors.bitcast(both, self.bf16), self.weights, place + pair * COLUMNS)

    def _rounded(self, value: Value) -> Value:
        """Bits whose upper half is the nearest number of bf16."""
        bits = vectors.bitcast(value, self.i32)
        return emit.arith("addi", bits, emit.number(HALF, bits.type))

    # ---- products

    def _add_turn(self, row_tile: Index, tiles: Value, columns: Columns, turn: _Turn, following: _Turn, words: Value) -> None:
        """The products of all tiles of rows with the weights of a turn, while those of the following turn are unpacked."""
        evaluator, height = self.evaluator, emit.index_constant(HEIGHT)
        steps = times(turn.blocks, self.steps)
        groups = emit.arith("ceildivui", tiles, height)
        share = emit.arith("ceildivui", words, emit.arith("muli", groups, steps))
        whole = emit.arith("muli", emit.arith("divui", tiles, height), height)

        def between(tile: Index, step: Value) -> None:
            group = emit.arith("divui", emit.materialize(tile), height)
            begin = emit.arith("muli", emit.arith("addi", emit.arith("muli", group, steps), step), share)
            self._unpack_words(columns, following, begin, emit.arith("minui", emit.arith("addi", begin, share), words))

        for begin, end, count in ((0, whole, HEIGHT), (whole, tiles, 1)):
            with nest.loop(begin, end, evaluator, step=count, below=self.most // MAX_ROWS, name="tile") as tile:
                self._add(row_tile, tile, SumBlock(MAX_ROWS, count, WIDTH), turn, partial(between, tile))

    def _add(self, row_tile: Index, tile: Index, shape: SumBlock, turn: _Turn, between: Callable[[Value], None]) -> None:
        """The products of a turn, added to the sums of some tiles of rows, from `tile` of the task on; `between` follows each step."""
        tiles, rows, columns = AmxSums(shape, self.step), range(shape.row_tiles), range(shape.column_tiles)
        places = [self._sum(turn.strip + j, (tile + i) * MAX_ROWS) for i in rows for j in columns]
        sums: Values = [tiles.load(tiles.sum_type, self.sums, at, COLUMNS) for at in places]
        steps, most = times(turn.blocks, self.steps), self.blocks * self.steps
        share = ceil_div(len(rows) * MAX_ROWS, most)
        with nest.carrying(0, steps, self.evaluator, sums, below=most, name="step") as (step, loop):
            left = [self._tile_of_data(row_tile + tile + i, turn.block * self.steps + step, 0) for i in rows]
            right = [(turn.place * WIDTH + j) * self.each + step * (self.step * COLUMNS) for j in columns]
            found = tiles.step(self.data, left, self.step, self.weights, right, list(loop.inner_iter_args))
            between(emit.materialize(step))
            for j in columns:
                for line in range(share):
                    row = (tile + len(rows)) * MAX_ROWS + step * share + line
                    prefetch(self.sums, self._sum(turn.strip + j, row), level=1)
            emit.yield_values(found)
        for at, total in zip(places, loop.results, strict=True):
            tiles.store(total, self.sums, at, COLUMNS)
