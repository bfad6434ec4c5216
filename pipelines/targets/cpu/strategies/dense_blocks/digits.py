"""Sums of products with weights of a few bits in integers. Few rows are bound by how fast weights are read and unpacked.

The data of a block become fixed-point numbers of a few digits of 8 bits, signed, with one scale for the block: three digits lose as little
as an addition of floats does. A vector of words then is, after a shift and a mask, an operand of vpdpbusd (VNNI), which multiplies it by
four neighbouring digits and adds: 64 products an instruction. Depths are in the order in which bytes of words have them: the first number
of each byte of a word, the second of each, and so on. Sums are scaled, and zeros taken off, once a block.

An infinity in the data, or a NaN, makes a NaN of its row.
"""

from collections.abc import Sequence
from functools import partial

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.bf16.integers import GROUP, Dots
from relayc.pipelines.targets.cpu.strategies.dense_blocks.floats import UNROLLED
from relayc.pipelines.targets.cpu.strategies.dense_blocks.operands import SCALES, WORDS, Operands, Value, Values, Vectors
from relayc.pipelines.tir.memory import align
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import view
from relayc.symbolic import Size

DIGIT_BITS = 8
LANES = 16
"""Data that are split at a time: they divide any block, and hold whole words."""
MOST_DEPTH = 1 << 16
"""Of a block: so many products of bytes have a sum of 32 bits."""
LEAST = 1e-30
"""The largest magnitude of a block, at least: scales stay normal numbers."""
AHEAD_BYTES = 2048
"""How far ahead words are asked for, of each strip."""
AHEAD_BLOCKS = 8
"""How far ahead scales are."""


def bytes_of(depth: int, blocks: int, digits: int, rows: Size) -> Size:
    """Bytes of the digits, scales and totals of so many rows."""
    return align(rows * depth * digits) + 2 * align(4 * rows * blocks)


def largest(digits: int) -> int:
    """What the largest number of a block becomes: 127 in the first digit, and room in the others for its rounding."""
    return 127 << DIGIT_BITS * (digits - 1)


class DigitSums:
    """Sums of rows (see `product.RowSums`).

    Args:
      memory: workspace of `bytes_of` bytes.
    """

    def __init__(self, operands: Operands, dots: Dots, digits: int, most_rows: Size, memory: Value) -> None:
        self.o, self.evaluator, self.dots, self.digits, self.most_rows = operands, operands.evaluator, dots, digits, most_rows
        self.tile_rows = 4 if dots.registers >= 32 else 2
        self.i8, self.i32 = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(32)
        self.sum_type = emit.vector_of(dots.lanes, self.i32)
        count, blocks = most_rows * operands.depth * digits, most_rows * operands.blocks
        self.numbers = view(memory, 0, count, self.i8)
        self.scales = view(memory, align(count), blocks, operands.float)
        self.totals = view(memory, align(count) + align(4 * blocks), blocks, operands.float)

    def strips(self, rows: int) -> int:
        """Sums of a block and of all blocks in three quarters of the registers."""
        return max(1, self.dots.registers * 3 // 4 // (rows * (self.digits + 1) * self.o.in_strip))

    # ---- data

    def prepare(self, work: Size, grain: int) -> None:
        """Splits the data of all rows."""
        row = Var.below(self.o.c.rows, name="row")
        with nest.tasks([row], self.evaluator, work, grain), nest.loop(0, self.o.blocks, self.evaluator, name="block") as block:
            self._split(Index.of(row), block)

    def _split(self, row: Index, block: Index) -> None:
        """Digits, the scale, and the sum of a block of a row."""
        o, real = self.o, emit.vector_of(LANES, self.o.float)

        def data(at: Index) -> Value:
            with self.evaluator.along(LANES) as lane:
                return emit.broadcast(o.data(row, block, at + lane), LANES)

        with nest.carrying(0, o.block_size, self.evaluator, [emit.zero(real)], step=LANES, name="depth") as (at, sizes):
            emit.yield_values([emit.arith("maximumf", emit.create("math.absf", [real], [data(at)]), sizes.inner_iter_args[0])])
        most = self._across("maximumf", sizes.results[0])
        limit, size = emit.number(largest(self.digits), o.float), emit.arith("maximumf", most, emit.number(LEAST, o.float))
        inverse = emit.broadcast(emit.arith("divf", limit, size), LANES)
        scale = emit.multiply_add(most, emit.number(0.0, o.float), emit.arith("divf", size, limit))  # NaN where a number is not finite
        with nest.carrying(0, o.block_size, self.evaluator, [emit.zero(real)], step=LANES, name="depth") as (at, sums):
            rounded = emit.create("math.roundeven", [real], [emit.arith("mulf", data(at), inverse)])
            number = emit.create("arith.fptosi", [emit.vector_of(LANES, self.i32)], [rounded])
            for digit in range(self.digits):
                byte = emit.create("arith.trunci", [emit.vector_of(LANES, self.i8)], [number])
                vectors.store(vectors.shuffle(byte, byte, self._order()), self.numbers, self._place(row, block, digit) + at)
                if digit < self.digits - 1:
                    carried = emit.arith("addi", number, emit.number(1 << DIGIT_BITS - 1, number.type))
                    number = emit.arith("shrsi", carried, emit.number(DIGIT_BITS, number.type))
            emit.yield_values([emit.arith("addf", sums.inner_iter_args[0], rounded)])
        here = row * o.blocks + block
        self.evaluator.store(scale, self.scales, here)
        self.evaluator.store(emit.arith("mulf", self._across("add", sums.results[0]), scale), self.totals, here)

    def _across(self, kind: str, vector: Value) -> Value:
        attributes = {"kind": emit.parsed(f"#vector.kind<{kind}>"), "fastmath": emit.parsed("#arith.fastmath<reassoc>")}
        return emit.create("vector.reduction", [self.o.float], [vector], attributes)

    def _order(self) -> list[int]:
        """Depths of LANES in the order in which words have them: byte by byte."""
        of_byte = DIGIT_BITS // self.o.c.bits
        word = [byte * of_byte + place for place in range(of_byte) for byte in range(GROUP)]
        return [first + i for first in range(0, LANES, len(word)) for i in word]

    def _place(self, row: Index, block: Index, digit: int) -> Index:
        return ((row * self.o.blocks + block) * self.digits + digit) * self.o.block_size

    # ---- sums

    def sums(self, rows: Sequence[Index], vectors: Vectors) -> Values:
        def add(block: Index, sums: Values) -> Values:
            return self._scaled(rows, vectors, block, self._block_sums(rows, vectors, block), sums)

        zeros = [emit.zero(self.o.vector)] * (len(rows) * len(vectors))
        return nest.carried(self.o.blocks, "block", self.evaluator, zeros, add)

    def _scaled(self, rows: Sequence[Index], vectors: Vectors, block: Index, parts: Values, sums: Values) -> Values:
        """Sums with those of a block added."""
        o, found = self.o, list(sums)
        places = [row * o.blocks + block for row in rows]
        scales, totals = (
            [emit.broadcast(self.evaluator.load_from(buffer, o.float, at), o.width) for at in places]
            for buffer in (self.scales, self.totals)
        )
        base = emit.number(float(1 << DIGIT_BITS), o.vector)
        for v, (strip, lane) in enumerate(vectors):
            scale = o.weight_input(SCALES, strip, block, Index(), lane)
            off = emit.create("arith.negf", [o.vector], [o.zero(strip, block, lane)])
            o.ask_ahead(SCALES, [strip, block + AHEAD_BLOCKS, Index(), Index(), Index(lane)], level=1)
            for i in range(len(rows)):
                at = i * len(vectors) + v
                *lower, value = (
                    emit.create("arith.sitofp", [o.vector], [part]) for part in parts[at * self.digits : (at + 1) * self.digits]
                )
                for digit in reversed(lower):
                    value = emit.multiply_add(value, base, digit)
                centred = emit.multiply_add(off, totals[i], emit.arith("mulf", value, scales[i]))
                found[at] = emit.multiply_add(centred, scale, found[at])
        return found

    def _block_sums(self, rows: Sequence[Index], vectors: Vectors, block: Index) -> Values:
        """Sums of the products of a block: of each row and vector those of each digit."""
        o, zeros = self.o, [emit.zero(self.sum_type)] * (len(rows) * len(vectors) * self.digits)
        add = partial(self._word_sums, rows, vectors, block)
        return nest.carried(o.words, "word", self.evaluator, zeros, add, unrolled=o.words * len(zeros) <= UNROLLED)

    def _word_sums(self, rows: Sequence[Index], vectors: Vectors, block: Index, word: Index, sums: Values) -> Values:
        o, found = self.o, list(sums)
        words = []
        for strip, lane in vectors:
            o.ask_ahead(WORDS, [strip, block, word, Index(), Index(lane)], AHEAD_BYTES // 4, level=1)
            words.append(o.weight_input(WORDS, strip, block, word, lane))
        for place in range(DIGIT_BITS // o.c.bits):
            numbers = [self._bytes(w, place) for w in words]
            for i, row in enumerate(rows):
                for digit in range(self.digits):
                    data = self._four(self._place(row, block, digit) + word * o.numbers + place * GROUP)
                    for v, number in enumerate(numbers):
                        at = (i * len(vectors) + v) * self.digits + digit
                        found[at] = self.dots.add(found[at], number, data)
        return found

    def _bytes(self, word: Value, place: int) -> Value:
        """The numbers in a place of each byte of words."""
        bits = self.o.c.bits
        if place:
            word = emit.arith("shrui", word, emit.number(place * bits, word.type))
        if bits < DIGIT_BITS:
            word = emit.arith("andi", word, emit.number(0x01010101 * ((1 << bits) - 1), word.type))
        return vectors.bitcast(word, self.i8)

    def _four(self, at: Index) -> Value:
        """Four digits for all lanes."""
        bits = vectors.bitcast(vectors.load(self.numbers, at, GROUP), self.i32)
        return vectors.bitcast(emit.create("vector.broadcast", [self.sum_type], [bits]), self.i8)
