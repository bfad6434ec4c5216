"""The schedule of bf16 contractions on AVX512-BF16: register tiles of f32 sums, to which an instruction adds the products of a pair.

It multiplies as much as two f32 multiply-adds do, on operands half as large that need no conversion. A tile is a few rows by a few vectors
of 16 columns; each step broadcasts a pair of A for each row. Operands are laid out by `layout`, as they are for AMX.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock, tile_rows
from relayc.pipelines.targets.cpu.strategies.bf16.nest import PairsNest, Values
from relayc.pipelines.targets.cpu.strategies.bf16.plan import Instructions, best_plan, cheapest, column_tiles, lower_rows
from relayc.pipelines.te.read.contraction import is_bf16
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.pipelines.tir.values import vectors
from relayc.symbolic import Size

REGISTERS = 32
MAX_VECTORS = 4
"""Vectors of columns of a tile, at most: panels of more would leave room for few rows."""
LATENCY = 6
"""Cycles that a sum waits for its last value."""
GAIN = 1.3
"""How much more than its arithmetic the f32 schedule takes on bf16 operands, which it converts."""


def _cycles(block: SumBlock) -> float:
    """One product a cycle, of at most two loads, and no sum sooner than its last value."""
    return max(block.rows * block.column_tiles, LATENCY)


def _block(rows: int, outer: int, columns: int) -> SumBlock:
    wide = column_tiles(columns)
    blocks = (SumBlock(tile_rows(rows, (REGISTERS - 1 - v) // v), 1, v) for v in range(1, min(wide, MAX_VECTORS) + 1))
    return cheapest(blocks, rows, wide, _cycles)


DOTS = Instructions(is_bf16, 2, 2, _block, _cycles, lambda block: lower_rows(block, _cycles))


def schedule_dot(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a bf16 contraction with an elementwise epilogue on a CPU with AVX512-BF16; None for any other kernel."""
    plan = best_plan(kernel, DOTS)
    if plan is None or plan.cycles >= plan.vector_cycles * GAIN:
        return None
    return PairsNest(kernel, plan, Dots, target, tuning).emit()


class VectorSums(ABC):
    """Sums in vector registers (see `nest.BlockKernel`).

    Args:
      lanes, element: of a vector of sums.
      group: neighbouring elements whose products are added to one sum.
    """

    uses_tiles = False

    def __init__(self, block: SumBlock, lanes: int, element: ir.Type, group: int) -> None:
        self.block, self.lanes, self.group = block, lanes, group
        self.parts = COLUMNS // lanes
        self.sum_type = emit.vector_of(lanes, element)

    @abstractmethod
    def add(self, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """Sums with the products of the groups of A and B."""

    def _vectors(self, b: ir.Value, columns: Sequence[Index]) -> list[ir.Value]:
        """Groups of B for the columns of blocks."""
        size = self.lanes * self.group
        return [vectors.load(b, at + part * size, size) for at in columns for part in range(self.parts)]

    def begin(self, b: ir.Value | None = None, heads: Sequence[Index] = ()) -> Values:
        if not heads:
            return [emit.zero(self.sum_type)] * (self.block.rows * self.block.column_tiles * self.parts)
        return [vectors.bitcast(v, self.sum_type.element_type) for v in self._vectors(b, heads)] * self.block.rows

    def step(self, a: ir.Value, rows: Sequence[Index], stride: Size, b: ir.Value, columns: Sequence[Index], sums: Values) -> Values:
        right = self._vectors(b, columns)
        left = [self._group(a, at + row * stride) for at in rows for row in range(self.block.rows)]
        pairs = [(x, y) for x in left for y in right]
        return [self.add(total, x, y) for (x, y), total in zip(pairs, sums, strict=True)]

    def _group(self, buffer: ir.Value, at: Index) -> ir.Value:
        """A group of elements of A for all lanes."""
        i32 = ir.IntegerType.get_signless(32)
        bits = vectors.bitcast(vectors.load(buffer, at, self.group), i32)
        return vectors.bitcast(emit.create("vector.broadcast", [emit.vector_of(self.lanes, i32)], [bits]), buffer.type.element_type)

    def end(self, sums: Values, scratch: ir.Value) -> None:
        for number, total in enumerate(sums):
            vectors.store(total, scratch, Index(number * self.lanes))


class Dots(VectorSums):
    """Sums of f32, to which an instruction adds the products of a pair."""

    def __init__(self, block: SumBlock) -> None:
        super().__init__(block, COLUMNS, ir.F32Type.get(), 2)

    def add(self, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return emit.create("x86.avx512.dot", [self.sum_type], [total, a, b])
