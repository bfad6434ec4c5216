"""The schedule of bf16 contractions on AMX: tiles of 16 rows by 16 columns of f32 sums, carried by the reduction loops.

A block of sums is two by two tiles (one by four, or four by one, where there are few rows or columns). Each step loads the tiles of A and
of B once, 32 reduction steps deep, and multiplies each with each. A multiplication takes 16 cycles and a tile is 16 cache lines, so two by
two tiles need one line a cycle. Operands are laid out by `layout`.
"""

from collections.abc import Callable, Sequence
from functools import partial

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock, tile_rows
from relayc.pipelines.targets.cpu.strategies.bf16.nest import PairsNest, Values
from relayc.pipelines.targets.cpu.strategies.bf16.plan import Instructions, Lower, best_plan, column_tiles
from relayc.pipelines.te.read.contraction import is_bf16
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.tir.strategy.scheduled import Scheduled
from relayc.pipelines.tir.strategy.tuning import Tuning
from relayc.symbolic import Size, ceil_div

MAX_ROWS = 16
"""Rows of a tile register."""
MAX_STEP = 32
"""Reduction steps of a multiplication: bf16 elements in the 64 bytes of a row."""
SUMS = 4
"""Tile registers that hold sums, of eight."""
CYCLES = 16
"""From one multiplication to the next (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX)."""


def tile_block(rows: int, outer: int, columns: int) -> SumBlock:
    """The block of tiles for (rows along the innermost loop, row tiles around them, columns)."""
    height = tile_rows(rows, MAX_ROWS)
    tiles, wide = ceil_div(rows, height) * outer, column_tiles(columns)
    if wide == 1:
        return SumBlock(height, min(SUMS, tiles), 1)
    if tiles == 1:
        return SumBlock(height, 1, min(SUMS, wide))
    return SumBlock(height, 2, 2)


def tile_cycles(block: SumBlock) -> float:
    """Cycles of a block for one multiplication in depth."""
    return block.row_tiles * block.column_tiles * CYCLES


def tile_lower(block: SumBlock) -> Lower:
    """Two tiles that have the rows together, of which they may share some; or one tile of a copy."""
    two = [SumBlock(rows, min(2, SUMS // block.column_tiles), block.column_tiles) for rows in (8, 4, 2)]
    one = [SumBlock(rows, 1, block.column_tiles) for rows in (2, 1)]
    staged = [SumBlock(rows, 1, block.column_tiles) for rows in (16, 8, 4, 2)]
    return Lower([*two, *one], [4, 4, 3, 2, 2, 1, 1, 1, 1, *[0] * 8], staged, [3, 3, 3, 2, 2, 1, 1, 1, 1, *[0] * 8])


TILES = Instructions(is_bf16, 2, MAX_STEP, tile_block, tile_cycles, tile_lower)


def schedule_amx(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a bf16 contraction with an elementwise epilogue on a CPU with AMX; None for any other kernel."""
    plan = best_plan(kernel, TILES)
    if plan is None or plan.cycles >= plan.vector_cycles:
        return None
    return PairsNest(kernel, plan, lambda block: AmxSums(block, plan.layout.step), target, tuning).emit()


class AmxSums:
    """Sums in tile registers (see `nest.BlockKernel`)."""

    uses_tiles = True

    def __init__(self, block: SumBlock, step: int, element: str = "bf16", total: str = "f32") -> None:
        self.block = block
        self.group = 2 if element == "bf16" else 4
        self.a_type = ir.Type.parse(f"!x86.amx.tile<{block.rows}x{step}x{element}>")
        self.b_type = ir.Type.parse(f"!x86.amx.tile<{step // self.group}x{self.group * COLUMNS}x{element}>")
        self.sum_type = ir.Type.parse(f"!x86.amx.tile<{block.rows}x{COLUMNS}x{total}>")

    def begin(self, b: ir.Value | None = None, heads: Sequence[Index] = ()) -> Values:
        return [emit.create("x86.amx.tile_zero", [self.sum_type], []) for _ in range(self.block.row_tiles * self.block.column_tiles)]

    def step(self, a: ir.Value, rows: Sequence[Index], stride: Size, b: ir.Value, columns: Sequence[Index], sums: Values) -> Values:
        left = [partial(self.load, self.a_type, a, at, stride) for at in rows]
        right = [partial(self.load, self.b_type, b, at, self.group * COLUMNS) for at in columns]
        return self.multiply_add(left, right, sums)

    def multiply_add(self, left: Sequence[Callable[[], ir.Value]], right: Sequence[Callable[[], ir.Value]], sums: Values) -> Values:
        """The sums with the products of each tile of A with each of B, which `left` and `right` load, added.

        Each tile of the longer side is loaded where it is multiplied: there are registers for the other side and one tile of this.
        """
        found = list(sums)
        if len(left) > len(right):
            ys = [load() for load in right]
            for i, load in enumerate(left):
                x = load()
                for j, y in enumerate(ys, i * len(ys)):
                    found[j] = self.multiply(x, y, sums[j])
            return found
        xs = [load() for load in left]
        for j, load in enumerate(right):
            y = load()
            for i, x in enumerate(xs):
                number = i * len(right) + j
                found[number] = self.multiply(x, y, sums[number])
        return found

    def multiply(self, a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
        return emit.create("x86.amx.tile_mulf", [self.sum_type], [a, b, total])

    def load(self, type_: ir.Type, buffer: ir.Value, at: Index, stride: Size) -> ir.Value:
        """A tile from an element of a flat buffer on, rows apart by `stride`."""
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1])}
        return emit.create("x86.amx.tile_load", [type_], [buffer, emit.materialize(at), emit.index_constant(stride)], segments)

    def store(self, total: ir.Value, buffer: ir.Value, at: Index, stride: Size) -> None:
        """Stores a tile of sums from an element of a flat buffer on, rows apart by `stride`."""
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 1])}
        emit.create("x86.amx.tile_store", [], [buffer, emit.materialize(at), total, emit.index_constant(stride)], segments)

    def end(self, sums: Values, scratch: ir.Value, start: Index | None = None, pitch: Size = 0) -> None:
        """Stores the sums from element `start` of a buffer on, rows apart by `pitch`; by default as they are needed by `nest`."""
        block, start, pitch = self.block, start or Index(), pitch if pitch != 0 else self.block.width
        for number, total in enumerate(sums):
            i, j = divmod(number, block.column_tiles)
            self.store(total, scratch, start + (i * block.rows * pitch + j * COLUMNS), pitch)
