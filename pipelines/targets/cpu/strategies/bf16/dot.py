"""The schedule of bf16 contractions on AVX512-BF16: register tiles of f32 sums, to which an instruction adds the products of a pair.

It multiplies as much as two f32 multiply-adds do, on operands half as large that need no conversion. A tile is a few rows by a few vectors
of 16 columns; each step broadcasts a pair of A for each row. Operands are laid out by `layout`, as they are for AMX.
"""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock, tile_rows
from relayc.pipelines.targets.cpu.strategies.bf16.nest import PairsNest, Values
from relayc.pipelines.targets.cpu.strategies.bf16.plan import Instructions, best_plan, column_tiles, lower_rows
from relayc.pipelines.te.read.contraction import is_bf16
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.pipelines.tir.values import vectors
from relayc.symbolic import Size, ceil_div

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

    def cost(block: SumBlock) -> tuple[float, float]:
        """Cycles of a step, and loads."""
        count = ceil_div(rows, block.rows) * ceil_div(wide, block.column_tiles)
        return count * _cycles(block), count * (block.rows + block.column_tiles)

    return min((SumBlock(tile_rows(rows, (REGISTERS - 1 - v) // v), 1, v) for v in range(1, min(wide, MAX_VECTORS) + 1)), key=cost)


DOTS = Instructions(is_bf16, 2, 2, _block, _cycles, lambda block: lower_rows(block, _cycles))


def schedule_dot(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a bf16 contraction with an elementwise epilogue on a CPU with AVX512-BF16; None for any other kernel."""
    plan = best_plan(kernel, DOTS)
    if plan is None or plan.cycles >= plan.vector_cycles * GAIN:
        return None
    return PairsNest(kernel, plan, Dots, target, tuning).emit()


class Dots:
    """Sums in vector registers (see `nest.BlockKernel`)."""

    uses_tiles = False

    def __init__(self, block: SumBlock) -> None:
        self.block = block
        self.sum_type = emit.vector_of(COLUMNS, ir.F32Type.get())

    def begin(self, b: ir.Value | None = None, heads: Sequence[Index] = ()) -> Values:
        return [emit.zero(self.sum_type)] * (self.block.rows * self.block.column_tiles)

    def step(self, a: ir.Value, rows: Sequence[Index], stride: Size, b: ir.Value, columns: Sequence[Index], sums: Values) -> Values:
        right = [vectors.load(b, at, 2 * COLUMNS) for at in columns]
        left = [self._pair(a, at + row * stride) for at in rows for row in range(self.block.rows)]
        pairs = [(x, y) for x in left for y in right]
        return [emit.create("x86.avx512.dot", [self.sum_type], [total, x, y]) for (x, y), total in zip(pairs, sums, strict=True)]

    def _pair(self, buffer: ir.Value, at: Index) -> ir.Value:
        """Two elements of A in all lanes."""
        i32, bf16 = ir.IntegerType.get_signless(32), ir.BF16Type.get()
        bits = vectors.bitcast(vectors.load(buffer, at, 2), i32)
        return vectors.bitcast(emit.create("vector.broadcast", [emit.vector_of(COLUMNS, i32)], [bits]), bf16)

    def end(self, sums: Values, scratch: ir.Value) -> None:
        for number, total in enumerate(sums):
            vectors.store(total, scratch, Index(number * COLUMNS))
