"""The schedule of products with weights of a few bits in blocks, which reads the weights as they are stored.

Lanes run along the columns of a strip; a task is a few strips. A number of a word becomes a float by shifting it to the top of the mantissa
of 1: that gives 1 + number / 2^bits, with neither a conversion nor a table. What that is off by, the scale and the zero are the same for a
block:

- Few rows, as in decoding, are bound by how fast weights are read and unpacked: sums of a block are of these floats, and are corrected once
  a block by the sum of the data of the block. An infinity in the data makes a NaN of its row.
- For more rows a piece of the depth becomes floats in a buffer of the thread, which tiles of rows in registers then go over.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, even_runs, linearize
from relayc.pipelines.te.read.dense_blocks import DenseBlocks, match
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, distinct, grains, part_sizes, powers_of_two
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import local_buffer
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.pipelines.tir.values.vectors import pairwise
from relayc.symbolic import Dim, Size, bounds, ceil_div, proves

PARALLEL_GRAIN = 1 << 17
"""Multiply-adds below which the kernel stays on one thread."""
FEW_ROWS = 2
"""Rows up to which weights are unpacked for each tile of rows."""
UNROLLED = 512
"""Multiply-adds of a block up to which its words are unrolled."""
STEPS = 4
"""Depths that a tile goes over at a time; they divide any block."""
MANTISSA_BITS = 23
ONE = 0x3F800000
"""The bits of 1.0."""
WORDS, SCALES, ZEROS = range(3)
"""Inputs of the weights."""


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
    task_rows: int = 192


def default_parameters(target: Target) -> BlockParameters:
    """Sums of a tile in three quarters of the registers, the buffer of weights in two thirds of the first-level cache."""
    vectors = 4
    rows = max(1, target.num_vector_registers * 3 // 4 // vectors)
    return BlockParameters(vectors, rows, max(1, target.l1_bytes * 2 // 3 // (vectors * target.vector_bytes)))


def schedule_dense_blocks(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a product with weights of a few bits and an elementwise epilogue; None for any other kernel."""
    found = match(kernel)
    if found is None or found.rows == 0:
        return None
    names = ("vectors", "rows", "depth", "task_rows")
    parameters = tuning.replace(default_parameters(target), names, values=_values(found, target))
    strips, blocks, words, numbers, lanes = found.weights.static_shape
    grain = tuning.number("grain", PARALLEL_GRAIN, lambda: grains(PARALLEL_GRAIN, found.rows * strips * blocks * words * numbers * lanes))
    with kernel_function(kernel) as body:
        _ProductKernel(found, body.evaluator, body.outputs[0], target, parameters).emit(grain)
    return Scheduled(body.function)


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


Value: TypeAlias = ir.Value
Values: TypeAlias = list[Value]
Vectors: TypeAlias = Sequence[tuple[Index, int]]
"""Strip and first lane of each vector of a tile."""
Count: TypeAlias = Size | Value
"""How many there are: known to the compiler, or to the running program."""


@dataclass(frozen=True)
class _Columns:
    """`count` strips from `first` on."""

    first: Index
    count: int


@dataclass(frozen=True)
class _RowTiles:
    """Tiles `begin` to before `end` of `rows` rows each; tile 0 begins at row `first`."""

    first: Index
    rows: int
    begin: Value | int
    end: Value | int


@dataclass(frozen=True)
class _Panel:
    """Buffers of a task, `pitch` elements a row: weights as floats, depth by depth, and sums of the rows."""

    weights: Value
    sums: Value
    pitch: int


class _ProductKernel:
    """Rows, strips and blocks are indices; sums of a tile are lists, row by row."""

    def __init__(self, found: DenseBlocks, evaluator: Evaluator, output: Value, target: Target, parameters: BlockParameters) -> None:
        self.c, self.evaluator, self.output, self.p = found, evaluator, output, parameters
        self.strips, self.blocks, self.words, self.numbers, self.lanes = found.weights.static_shape
        self.block_size = self.words * self.numbers
        self.width = min(target.lanes(32), self.lanes)
        self.in_strip = self.lanes // self.width
        self.float = ir.F32Type.get()
        self.vector = emit.vector_of(self.width, self.float)

    # ---- tasks

    def emit(self, grain: int) -> None:
        def many() -> None:
            self._tasks(self._many, ceil_div(self.c.rows, self.p.task_rows), grain)

        def few() -> None:
            self._tasks(self._few, 1, grain)

        nest.at_least([(self.c.rows, FEW_ROWS + 1)], self.evaluator, many, few)

    def _tasks(self, task: Callable[[Index, Count, _Columns], None], parts: Size, grain: int) -> None:
        """`task(first row, rows, columns)` for all strips and parts of the rows."""
        together = max(1, self.p.vectors // self.in_strip)
        groups, left = divmod(self.strips, together)
        if groups:
            self._groups(task, parts, Index(), groups, together, grain)
        if left:
            self._groups(task, parts, Index(groups * together), 1, left, grain)

    def _groups(
        self, task: Callable[[Index, Count, _Columns], None], parts: Size, first: Index, groups: int, count: int, grain: int
    ) -> None:
        """The tasks of `groups` times `count` strips from `first` on."""
        rows = self.c.rows
        each = ceil_div(rows, parts) if isinstance(parts, int) else self.p.task_rows
        work = rows * groups * count * self.lanes * self.blocks * self.block_size
        part, group = Var(0, parts - 1, name="part"), Var(0, groups - 1, name="group")
        variables = [v for v, n in ((part, parts), (group, groups)) if n != 1]

        def body() -> None:
            row = Index.of(part) * each if parts != 1 else Index()
            strip = first + (Index.of(group) * count if groups != 1 else 0)
            size: Count = each
            if not proves(lambda: parts * each == rows):
                size = emit.smaller(emit.materialize(row * -1 + rows), each)
            task(row, size, _Columns(strip, count))

        nest.tasks(variables, self.evaluator, bool(variables) and bounds(work)[1] >= grain, body, work=work, grain=grain)

    def _few(self, first: Index, size: Count, columns: _Columns) -> None:
        """Tiles that read the weights where they lie."""
        for tiles in self._row_tiles(first, size, FEW_ROWS if isinstance(size, int) else 1):
            with self._each_tile(tiles) as row:
                rows = [row + i for i in range(tiles.rows)]
                self._finish(rows, columns, self._direct(rows, columns))

    def _many(self, first: Index, size: Count, columns: _Columns) -> None:
        """Pieces of the depth one after the other; sums wait in a buffer between them."""
        most = size if isinstance(size, int) else self.p.task_rows
        pitch = columns.count * self.lanes
        step = min(self.blocks, max(1, self.p.depth // self.block_size))
        panel = _Panel(local_buffer(step * self.block_size * pitch, self.float), local_buffer(most * pitch, self.float), pitch)
        piece = Var(0, ceil_div(self.blocks, step) - 1, name="piece")
        with emit.for_loop(0, piece.extent, 1, piece), self.evaluator.scope():
            block = Index.of(piece) * step
            blocks: Value | int = step
            if self.blocks % step:
                blocks = emit.smaller(emit.materialize(block * -1 + self.blocks), step)
            self._unpack(block, blocks, columns, panel)
            for tiles in self._row_tiles(Index(), size, self.p.rows):
                with self._each_tile(tiles) as row:
                    self._add_piece([first + row + i for i in range(tiles.rows)], row, block, blocks, panel, piece)
        for tiles in self._row_tiles(Index(), size, 1):
            with self._each_tile(tiles) as row:
                self._finish([first + row], columns, self._waiting(panel, row, 1))

    def _row_tiles(self, first: Index, size: Count, most: int) -> list[_RowTiles]:
        """Tiles that cover `size` rows from `first` on; those of a size that is no number end in tiles of one row."""
        if isinstance(size, int):
            found, at = [], 0
            for rows, count in even_runs(size, most):
                found.append(_RowTiles(first + at, rows, 0, count))
                at += rows * count
            return found
        value = emit.index_constant(size) if isinstance(size, Dim) else size
        if most == 1:
            return [_RowTiles(first, 1, 0, value)]
        whole = emit.arith("divui", value, emit.index_constant(most))
        return [_RowTiles(first, most, 0, whole), _RowTiles(first, 1, emit.arith("muli", whole, emit.index_constant(most)), value)]

    @contextmanager
    def _each_tile(self, tiles: _RowTiles) -> Iterator[Index]:
        """A loop over tiles; gives the first row of one."""
        if tiles.begin == 0 and tiles.end == 1:
            with self.evaluator.scope():
                yield tiles.first
            return
        tile = Var(0, tiles.end - 1 if isinstance(tiles.end, int) else self.c.rows - 1, name="tile")
        with emit.for_loop(tiles.begin, tiles.end, 1, tile), self.evaluator.scope():
            yield tiles.first + Index.of(tile) * tiles.rows

    # ---- operands

    def _vectors(self, columns: _Columns) -> Vectors:
        """Strip and first lane of each vector."""
        return [(columns.first + s, v * self.width) for s in range(columns.count) for v in range(self.in_strip)]

    def _weight_input(self, which: int, strip: Index, block: Index, word: Index, lane: int) -> Value:
        """A vector of words, scales or zeros."""
        structured = self.c.weights.structured
        with self.evaluator.along(self.width) as lanes:
            point = self.evaluator.apply(structured.maps[which], [strip, block, word, Index(), lanes + lane])
            return emit.broadcast(self.evaluator.at(structured.inputs[which], point), self.width)

    def _scale(self, strip: Index, block: Index, lane: int) -> tuple[Value, Value]:
        """The factor of floats in [1, 2), and what to take off them before."""
        scale = self._weight_input(SCALES, strip, block, Index(), lane)
        zero = self._weight_input(ZEROS, strip, block, Index(), lane)
        if emit.element_of(zero.type) != self.float:
            zero = emit.create("arith.uitofp", [self.vector], [zero])
        span = 1 << self.c.bits
        offset = emit.multiply_add(zero, emit.number(1 / span, self.vector), emit.number(1, self.vector))
        return emit.arith("mulf", scale, emit.number(span, self.vector)), offset

    def _numbers(self, word: Value, place: int) -> Value:
        """The numbers in a place of words, as 1 + number / 2^bits."""
        bits, type_ = self.c.bits, word.type
        up = MANTISSA_BITS - bits - place * bits
        if up:
            word = emit.arith("shli" if up > 0 else "shrui", word, emit.number(abs(up), type_))
        kept = emit.arith("andi", word, emit.number(((1 << bits) - 1) << (MANTISSA_BITS - bits), type_))
        return emit.create("arith.bitcast", [self.vector], [emit.arith("ori", kept, emit.number(ONE, type_))])

    def _data(self, row: Index, block: Index, depth: Index) -> Value:
        """The data of a row at a depth of a block, or from that on."""
        return self.evaluator.at(self.c.data, [row, block, Index(), depth])

    # ---- few rows

    def _direct(self, rows: Sequence[Index], columns: _Columns) -> list[Value]:
        """Sums over the depth."""
        vectors, zero = self._vectors(columns), emit.zero(self.vector)
        count = len(rows) * len(vectors)
        var = Var(0, self.blocks - 1, name="block")
        with emit.for_loop(0, self.blocks, 1, var, [zero] * count) as blocks, self.evaluator.scope():
            block = Index.of(var)
            parts = self._block_sums(rows, vectors, block, [zero] * count)
            emit.yield_values(self._corrected(rows, vectors, block, parts, list(blocks.inner_iter_args)))
        return list(blocks.results)

    def _corrected(self, rows: Sequence[Index], vectors: Vectors, block: Index, parts: Values, sums: Values) -> Values:
        """Sums with those of a block added, which are of numbers as `_numbers` gives them."""
        found, totals = list(sums), [self._total(row, block) for row in rows]
        for v, (strip, lane) in enumerate(vectors):
            scale, offset = self._scale(strip, block, lane)
            off = emit.create("arith.negf", [self.vector], [offset])
            for i in range(len(rows)):
                at = i * len(vectors) + v
                found[at] = emit.multiply_add(emit.multiply_add(off, totals[i], parts[at]), scale, found[at])
        return found

    def _block_sums(self, rows: Sequence[Index], vectors: Vectors, block: Index, sums: Values) -> Values:
        """Sums with the products with the numbers of a block added."""
        if self.block_size * len(sums) <= UNROLLED:
            for word in range(self.words):
                sums = self._word_sums(rows, vectors, block, Index(word), sums)
            return sums
        var = Var(0, self.words - 1, name="word")
        with emit.for_loop(0, self.words, 1, var, sums) as words, self.evaluator.scope():
            emit.yield_values(self._word_sums(rows, vectors, block, Index.of(var), list(words.inner_iter_args)))
        return list(words.results)

    def _word_sums(self, rows: Sequence[Index], vectors: Vectors, block: Index, word: Index, sums: Values) -> Values:
        found = list(sums)
        words = [self._weight_input(WORDS, strip, block, word, lane) for strip, lane in vectors]
        for place in range(self.numbers):
            numbers = [self._numbers(w, place) for w in words]
            for i, row in enumerate(rows):
                data = emit.broadcast(self._data(row, block, word * self.numbers + place), self.width)
                for v, number in enumerate(numbers):
                    at = i * len(vectors) + v
                    found[at] = emit.multiply_add(data, number, found[at])
        return found

    def _total(self, row: Index, block: Index) -> Value:
        """The sum of the data of a row and block, in all lanes."""
        with self.evaluator.along(self.width) as lane:
            parts = [self._data(row, block, lane + at) for at in range(0, self.block_size, self.width)]
        total = pairwise(parts, lambda a, b: emit.arith("addf", a, b))
        if self.width == 1:
            return total
        attributes = {"kind": ir.Attribute.parse("#vector.kind<add>"), "fastmath": ir.Attribute.parse("#arith.fastmath<reassoc>")}
        return emit.broadcast(emit.create("vector.reduction", [self.float], [total], attributes), self.width)

    # ---- many rows

    def _unpack(self, first: Index, blocks: Value | int, columns: _Columns, panel: _Panel) -> None:
        """Weights of blocks from `first` on as floats."""
        vectors = self._vectors(columns)
        var, word = Var(0, self.blocks - 1, name="block"), Var(0, self.words - 1, name="word")
        with emit.for_loop(0, blocks, 1, var), self.evaluator.scope():
            block = first + Index.of(var)
            lines = []
            for strip, lane in vectors:
                scale, offset = self._scale(strip, block, lane)
                lines.append((scale, emit.create("arith.negf", [self.vector], [emit.arith("mulf", scale, offset)])))
            with emit.for_loop(0, self.words, 1, word), self.evaluator.scope():
                depth = Index.of(var) * self.block_size + Index.of(word) * self.numbers
                for v, (strip, lane) in enumerate(vectors):
                    words = self._weight_input(WORDS, strip, block, Index.of(word), lane)
                    for place in range(self.numbers):
                        value = emit.multiply_add(self._numbers(words, place), *lines[v])
                        with self.evaluator.along(self.width) as lanes:
                            self.evaluator.store(value, panel.weights, (depth + place) * panel.pitch + v * self.width + lanes)

    def _add_piece(self, rows: Sequence[Index], place: Index, block: Index, blocks: Value | int, panel: _Panel, piece: Var) -> None:
        """Adds the products with the weights in the buffer to the sums of a tile, whose first row is row `place` of the sums."""
        vectors = panel.pitch // self.width
        follows = emit.compare("ne", piece.value, emit.index_constant(0))
        zeros = [emit.zero(self.vector)] * (len(rows) * vectors)
        inits = nest.either(follows, self.evaluator, lambda: self._waiting(panel, place, len(rows)), zeros)
        depth = blocks * self.block_size if isinstance(blocks, int) else emit.arith("muli", blocks, emit.index_constant(self.block_size))
        var = Var(0, self.blocks * self.block_size - STEPS, step=STEPS, name="depth")
        with emit.for_loop(0, depth, STEPS, var, inits) as loop, self.evaluator.scope():
            found = list(loop.inner_iter_args)
            for k in range(STEPS):
                with self.evaluator.along(self.width) as lanes:
                    at = (Index.of(var) + k) * panel.pitch + lanes
                    weights = [self.evaluator.load_from(panel.weights, self.float, at + v * self.width) for v in range(vectors)]
                for i, row in enumerate(rows):
                    data = emit.broadcast(self._data(row, block, Index.of(var) + k), self.width)
                    for v in range(vectors):
                        found[i * vectors + v] = emit.multiply_add(data, weights[v], found[i * vectors + v])
            emit.yield_values(found)
        with self.evaluator.along(self.width) as lanes:
            for number, value in enumerate(loop.results):
                i, v = divmod(number, vectors)
                self.evaluator.store(value, panel.sums, (place + i) * panel.pitch + v * self.width + lanes)

    def _waiting(self, panel: _Panel, place: Index, rows: int) -> list[Value]:
        """Sums of a tile from their buffer."""
        with self.evaluator.along(self.width) as lanes:
            return [
                self.evaluator.load_from(panel.sums, self.float, (place + i) * panel.pitch + v * self.width + lanes)
                for i in range(rows)
                for v in range(panel.pitch // self.width)
            ]

    # ---- results

    def _finish(self, rows: Sequence[Index], columns: _Columns, sums: Sequence[Value]) -> None:
        """Evaluates the epilogue on the sums of a tile and stores the results."""
        vectors = self._vectors(columns)
        for v, (strip, lane) in enumerate(vectors):
            start = strip * self.lanes + lane
            mask = None
            if self.c.columns != self.strips * self.lanes:
                mask = emit.first_lanes(emit.larger(emit.materialize(start * -1 + self.c.columns), 0), self.width)
            for i, row in enumerate(rows):
                with self.evaluator.along(self.width, mask) as lanes:
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
