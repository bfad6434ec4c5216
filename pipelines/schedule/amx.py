"""The schedule of bf16 contractions on AMX: tiles of 16 rows by 16 columns of f32 sums, carried by the reduction loops.

A block of sums is two by two tiles (one by four, or four by one, where there are few rows or columns). Each step loads the tiles of A and
of B once, 32 reduction steps deep, and multiplies each with each. A multiplication takes 16 cycles and a tile is 16 cache lines, so two by
two tiles need one line a cycle. Operands are laid out by `pairs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.schedule import emit
from relayc.pipelines.schedule.contraction import Contraction, match
from relayc.pipelines.schedule.graph import Kernel
from relayc.pipelines.schedule.index import Index
from relayc.pipelines.schedule.pairs import COLUMNS, MAX_STEP, Layout, is_bf16, layouts, memory_of
from relayc.pipelines.schedule.pairs_nest import Block, PairsNest, Values, tile_rows
from relayc.pipelines.schedule.strategy import STRATEGIES, Scheduled, is_param
from relayc.pipelines.target import Target

Value = ir.Value

MAX_ROWS = 16
"""Rows of a tile register."""
SUMS = 4
"""Tile registers that hold sums, of eight."""
MULTIPLY_CYCLES = 16
"""Cycles from one tile multiplication to the next (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX)."""


def schedule_amx(kernel: Kernel, target: Target) -> Scheduled | None:
    """Schedules a bf16 contraction with an elementwise epilogue on a CPU with AMX; None for any other kernel or CPU."""
    if not (target.has("amx-tile") and target.has("amx-bf16")):
        return None
    plans = [plan for c in match(kernel) if (plan := best_plan(kernel, c)) is not None]
    if not plans:
        return None
    plan = min(plans, key=lambda p: p.cycles)
    if plan.cycles >= plan.vector_cycles:
        return None
    tiles = Tiles(plan.block, plan.layout.step)
    return PairsNest(kernel, plan.contraction, plan.layout, plan.block, tiles, plan.cycles, target).emit()


STRATEGIES.append(schedule_amx)


@dataclass
class Plan:
    """A way to run a contraction, and about how many cycles it takes on one core."""

    contraction: Contraction
    layout: Layout
    block: Block
    cycles: float

    @property
    def vector_cycles(self) -> float:
        """Cycles of the same work on f32 vectors: two multiply-adds of 16 lanes a cycle."""
        c = self.contraction
        work = c.depth * c.column_extent
        for v in c.batch:
            work *= v.high + 1
        for _, extent in c.rows:
            work *= extent
        return work / 32


def best_plan(kernel: Kernel, contraction: Contraction) -> Plan | None:
    """The plan of fewest cycles in the roles of a contraction, None where tiles do not fit it."""
    if not is_bf16(contraction) or any(memory_of(o.node) is None for o in (contraction.a, contraction.b)):
        return None
    b = contraction.b.node
    packed = b.kind == "arg" and is_param(kernel, b.position)
    plans = [_plan(contraction, layout, packed) for layout in layouts(contraction, MAX_STEP)]
    return min((p for p in plans if p is not None), key=lambda p: p.cycles, default=None)


def _plan(contraction: Contraction, layout: Layout, packed: bool) -> Plan | None:
    c = contraction
    rows = layout.row_groups(c)
    extent = rows[-1][1] if rows else 1
    height = tile_rows(extent, MAX_ROWS)
    row_tiles, column_tiles = -(-extent // height), -(-c.column_extent // COLUMNS)
    outer = batches = 1
    for _, n in rows[:-1]:
        outer *= n
    for v in c.batch:
        batches *= v.high + 1
    block = _block(height, row_tiles * outer, column_tiles)
    covered = -(-column_tiles // block.column_tiles) * block.column_tiles
    cycles = batches * outer * row_tiles * covered * layout.steps * MULTIPLY_CYCLES
    cycles += _copy_cycles(c, layout)
    if not packed:
        if len(layout.inner) != 1:
            return None  # pairs of several loops are made at compile time only
        regular = c.b.offset.coefficient(c.column) == 1 or c.b.offset.coefficient(layout.inner[0]) == 1
        cycles += batches * layout.depth * covered * COLUMNS * (1 / 16 if regular else 1)
    results = batches * outer * extent * c.column_extent
    cycles += results * (1 / 12 if c.store_stride(c.column) == 1 else 1 / 6)
    return Plan(c, layout, block, cycles)


def _block(height: int, row_tiles: int, column_tiles: int) -> Block:
    if column_tiles == 1:
        return Block(height, min(SUMS, row_tiles), 1)
    if row_tiles == 1:
        return Block(height, 1, min(SUMS, column_tiles))
    return Block(height, 2, 2)


def _copy_cycles(contraction: Contraction, layout: Layout) -> float:
    if layout.copy is None:
        return 0
    offset = contraction.a.offset
    contiguous = offset.coefficient(layout.inner[-1]) == 1
    return layout.copied * (1 / 16 if contiguous else 1 / 4)


class Tiles:
    """Sums in tile registers (see `pairs_nest.BlockKernel`)."""

    uses_tiles = True

    def __init__(self, block: Block, step: int) -> None:
        self.block = block
        self.a_type = ir.Type.parse(f"!x86.amx.tile<{block.rows}x{step}xbf16>")
        self.b_type = ir.Type.parse(f"!x86.amx.tile<{step // 2}x{2 * COLUMNS}xbf16>")
        self.sum_type = ir.Type.parse(f"!x86.amx.tile<{block.rows}x{COLUMNS}xf32>")

    def begin(self) -> Values:
        return [emit.create("x86.amx.tile_zero", [self.sum_type], []) for _ in range(self.block.row_tiles * self.block.column_tiles)]

    def step(self, a: Sequence[tuple[Value, Index]], stride: int, b: Sequence[tuple[Value, Index]], sums: Values) -> Values:
        rows = [self._load(self.a_type, buffer, at, stride) for buffer, at in a]
        columns = [self._load(self.b_type, buffer, at, 2 * COLUMNS) for buffer, at in b]
        pairs = [(row, column) for row in rows for column in columns]
        return [
            emit.create("x86.amx.tile_mulf", [self.sum_type], [row, column, total])
            for (row, column), total in zip(pairs, sums, strict=True)
        ]

    def _load(self, type_: ir.Type, buffer: Value, at: Index, stride: int) -> Value:
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1])}
        return emit.create("x86.amx.tile_load", [type_], [buffer, emit.materialize(at), emit.index_constant(stride)], segments)

    def end(self, sums: Values, scratch: Value) -> None:
        block = self.block
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 1])}
        for number, total in enumerate(sums):
            i, j = divmod(number, block.column_tiles)
            at = emit.index_constant(i * block.rows * block.width + j * COLUMNS)
            emit.create("x86.amx.tile_store", [], [scratch, at, total, emit.index_constant(block.width)], segments)
