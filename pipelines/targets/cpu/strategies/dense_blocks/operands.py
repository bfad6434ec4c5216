"""The operands of a product with weights of a few bits, as strategies read them, and the tiles of rows and columns that they go over."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, even_runs, linearize
from relayc.pipelines.te.read.dense_blocks import DenseBlocks
from relayc.pipelines.te.read.graph import memory_of
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import prefetch
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Dim, Size

MANTISSA_BITS = 23
ONE = 0x3F800000
"""The bits of 1.0."""
WORDS, SCALES, ZEROS = range(3)
"""Inputs of the weights."""

Value: TypeAlias = ir.Value
Values: TypeAlias = list[Value]
Vectors: TypeAlias = Sequence[tuple[Index, int]]
"""Strip and first lane of each vector of a tile."""
Count: TypeAlias = Size | Value
"""How many there are: known to the compiler, or to the running program."""


@dataclass(frozen=True)
class Columns:
    """`count` strips from `first` on."""

    first: Index
    count: int

    def parts(self, most: int) -> Iterator["Columns"]:
        """Runs of at most so many strips."""
        for at in range(0, self.count, most):
            yield Columns(self.first + at, min(most, self.count - at))


@dataclass(frozen=True)
class RowTiles:
    """Tiles `begin` to before `end` of `rows` rows each; tile 0 begins at row `first`."""

    first: Index
    rows: int
    begin: Value | int
    end: Value | int


def times(count: Count, each: int) -> Value:
    """A number of things that have `each` of others: how many of these."""
    if isinstance(count, ir.Value):
        return emit.arith("muli", count, emit.index_constant(each))
    return emit.index_constant(count * each)


class Operands:
    """Reads data and weights. Rows, strips and blocks are indices.

    Attributes:
      blocks, words, numbers: of the depth, of a block, of a word.
      width: lanes of a vector, of which a strip has `in_strip`.
    """

    def __init__(self, found: DenseBlocks, evaluator: Evaluator, target: Target) -> None:
        self.c, self.evaluator = found, evaluator
        self.strips, self.blocks, self.words, self.numbers, self.lanes = found.weights.static_shape
        self.block_size = self.words * self.numbers
        self.depth = self.blocks * self.block_size
        self.width = target.lanes(32)
        self.in_strip = self.lanes // self.width
        self.float = ir.F32Type.get()
        self.vector = emit.vector_of(self.width, self.float)

    def whole_blocks(self, depth: int) -> int:
        """How many blocks are so many elements of the depth: less than a block is a block, more than all of them are all."""
        return min(self.blocks, max(1, depth // self.block_size))

    def blocks_from(self, first: Index, most: int) -> Count:
        """How many of `most` blocks from `first` on there are; `first` is a multiple of that."""
        return most if self.blocks % most == 0 else emit.smaller(emit.materialize(first * -1 + self.blocks), most)

    def vectors(self, columns: Columns) -> Vectors:
        """Strip and first lane of each vector."""
        return [(columns.first + s, v * self.width) for s in range(columns.count) for v in range(self.in_strip)]

    def weight_input(self, which: int, strip: Index, block: Index, word: Index, lane: int) -> Value:
        """A vector of words, scales or zeros."""
        structured = self.c.weights.structured
        with self.evaluator.along(self.width) as lanes:
            point = self.evaluator.apply(structured.maps[which], [strip, block, word, Index(), lanes + lane])
            return emit.broadcast(self.evaluator.at(structured.inputs[which], point), self.width)

    def ask_ahead(self, which: int, point: Sequence[Index], elements: int = 0, level: int = 2) -> None:
        """Prefetches words, scales or zeros at a point of the loops, or some elements after it, into the cache of a level."""
        structured = self.c.weights.structured
        node = structured.inputs[which]
        if memory_of(node) is not None:
            at = linearize(self.evaluator.apply(structured.maps[which], point), node.shape)
            prefetch(self.evaluator.memory(node), at + elements, level)

    def zero(self, strip: Index, block: Index, lane: int) -> Value:
        """Zeros of columns as floats."""
        zero = self.weight_input(ZEROS, strip, block, Index(), lane)
        return zero if emit.element_of(zero.type) == self.float else emit.create("arith.uitofp", [self.vector], [zero])

    def number(self, word: Value, place: int) -> Value:
        """The numbers in a place of words, as 1 + number / 2^bits."""
        bits, type_ = self.c.bits, word.type
        up = MANTISSA_BITS - bits - place * bits
        if up:
            word = emit.arith("shli" if up > 0 else "shrui", word, emit.number(abs(up), type_))
        kept = emit.arith("andi", word, emit.number(((1 << bits) - 1) << (MANTISSA_BITS - bits), type_))
        return emit.create("arith.bitcast", [self.vector], [emit.arith("ori", kept, emit.number(ONE, type_))])

    def scale_and_offset(self, strip: Index, block: Index, lane: int) -> tuple[Value, Value]:
        """The factor of what `number` gives, and the zero as such a number, which is subtracted before."""
        scale, zero = self.weight_input(SCALES, strip, block, Index(), lane), self.zero(strip, block, lane)
        span = 1 << self.c.bits
        offset = emit.multiply_add(zero, emit.number(1 / span, zero.type), emit.number(1, zero.type))
        return emit.arith("mulf", scale, emit.number(span, zero.type)), offset

    def data(self, row: Index, block: Index, depth: Index) -> Value:
        """The data of a row at a depth of a block, or from that on."""
        return self.evaluator.at(self.c.data, [row, block, Index(), depth])

    def row_tiles(self, first: Index, size: Count, most: int) -> list[RowTiles]:
        """Tiles that cover `size` rows from `first` on; those of a size that is no number end in tiles of one row."""
        if isinstance(size, int):
            found, at = [], 0
            for rows, count in even_runs(size, most):
                found.append(RowTiles(first + at, rows, 0, count))
                at += rows * count
            return found
        value = emit.index_constant(size) if isinstance(size, Dim) else size
        if most == 1:
            return [RowTiles(first, 1, 0, value)]
        whole = emit.arith("divui", value, emit.index_constant(most))
        return [RowTiles(first, most, 0, whole), RowTiles(first, 1, emit.arith("muli", whole, emit.index_constant(most)), value)]

    @contextmanager
    def each_tile(self, tiles: RowTiles) -> Iterator[Index]:
        """A loop over tiles; gives the first row of one."""
        if tiles.begin == 0 and tiles.end == 1:
            with self.evaluator.scope():
                yield tiles.first
            return
        most = tiles.end if isinstance(tiles.end, int) else self.c.rows
        with nest.loop(tiles.begin, tiles.end, self.evaluator, below=most, name="tile") as tile:
            yield tiles.first + tile * tiles.rows
