"""Columns of taps of bytes: depthwise convolutions of unsigned bytes by signed ones, beside contiguous channels.

VNNI adds the products of four bytes to each sum. A group of four rows of taps is one product: the bytes of a column of the input are put
side by side, those of four rows for each channel, which all output columns that see the column share. Weights come packed in the same
order, with zeros where a group has fewer rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cpu.strategies.bf16.integers import GROUP, Dots, dots_of
from relayc.pipelines.targets.cpu.strategies.windows.weights import Weights
from relayc.pipelines.te.read.reduction import multiply_add_casts
from relayc.pipelines.te.read.window import number
from relayc.pipelines.te.read.window_channels import ChannelWindow
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.values import vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import ceil_div

MAX_TAPS = 49
"""Windows with more taps are left to products of single taps: all of these are unrolled."""


@dataclass(frozen=True)
class ByteColumns:
    """The products of a window, a column of taps at a time.

    Attributes:
      weights: the parameter, whose `lanes` are the channels of a vector of sums.
      rows, columns: taps.
    """

    weights: Weights
    dots: Dots
    rows: int
    columns: int

    @property
    def groups(self) -> int:
        """Products of a column."""
        return ceil_div(self.rows, GROUP)

    def packing(self) -> Packing:
        """[vector of channels, column of taps, group, channel, row of the group]."""
        w = self.weights
        row, column = w.taps
        loops = [(v, number(v.extent)) for v in (w.channel, column, row)]
        shape = (w.vectors, self.columns * self.groups, w.lanes, GROUP)
        return Packing.reading("groups", w.node.static_shape, w.indices, loops, shape, batch=0, inner=1, pitch=self.groups * GROUP, shift=0)

    def fours(self, load: Callable[[int], ir.Value]) -> list[ir.Value]:
        """The groups of a column of the input; `load` returns the bytes of the channels at a row of taps."""
        rows = [load(row) for row in range(self.rows)]
        return [self._group(rows[first : first + GROUP]) for first in range(0, self.rows, GROUP)]

    def _group(self, rows: list[ir.Value]) -> ir.Value:
        """Bytes of up to four rows, side by side for each channel: those of fewer are followed by any, as their weights are zeros."""
        lanes, byte, wide = self.weights.lanes, ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(32)
        if len(rows) <= 2:
            joined = rows[0] if len(rows) == 1 else vectors.bitcast(vectors.interleave(*rows), ir.IntegerType.get_signless(16))
            return vectors.bitcast(emit.create("arith.extui", [emit.vector_of(lanes, wide)], [joined]), byte)
        first, last = (vectors.shuffle(a, b, range(2 * lanes)) for a, b in (rows[:2], (rows[2], rows[-1])))
        joined = vectors.bitcast(vectors.shuffle(first, last, range(4 * lanes)), wide)
        # Four channels of each row side by side, then their bytes by turns: both stay within what one instruction moves.
        count = lanes // GROUP
        by_turns = [part + count * row for part in range(count) for row in range(GROUP)]
        parts = vectors.bitcast(vectors.shuffle(joined, joined, by_turns), byte)
        order = [16 * part + GROUP * row + channel for part in range(count) for channel in range(GROUP) for row in range(GROUP)]
        return vectors.shuffle(parts, parts, order)

    def add(self, evaluator: Evaluator, total: ir.Value, fours: list[ir.Value], column: int, vector: Index) -> ir.Value:
        """A vector of sums with the products of a column of taps."""
        width = self.weights.lanes * GROUP
        for group, bytes_ in enumerate(fours):
            at = (vector * (self.columns * self.groups) + (column * self.groups + group)) * width
            weights = vectors.load(evaluator.buffers[self.weights.node], at, width)
            total = self.dots.add(total, bytes_, weights)
        return total


def byte_columns(window: ChannelWindow, weights: dict[int, Weights], target: Target, lanes: int) -> ByteColumns | None:
    """How a window is computed by columns of bytes; None for one that is not, or on a CPU without VNNI."""
    w, dots, wide = window, dots_of(target), ir.IntegerType.get_signless(32)
    if dots is None or not dots.fused or dots.lanes != lanes or w.channels % lanes or len(w.structured.inputs) != 2 or len(weights) != 1:
        return None
    position, found = next(iter(weights.items()))
    casts = multiply_add_casts(w.structured)
    if casts is None or casts[w.position] != [("arith.extui", wide)] or casts[position] != [("arith.extsi", wide)]:
        return None
    if any(node.element != ir.IntegerType.get_signless(8) for node in (w.data, found.node)):
        return None
    if found.planes or found.taps != [w.rows.tap, w.columns.tap] or not 2 <= w.rows.taps <= MAX_TAPS // w.columns.taps:
        return None
    return ByteColumns(found, dots, w.rows.taps, w.columns.taps)
