"""Products by tensor cores: each warp sums a part of a tile by mma.sync, on fragments that matrix loads bring to its registers."""

from collections.abc import Sequence
from typing import Any

from relayc.pipelines.targets.cuda.strategies.product.instructions import ROWS, Instruction
from relayc.pipelines.targets.cuda.strategies.product.operands import Way
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem
from relayc.pipelines.targets.cuda.strategies.product.schedule import ProductSchedule
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.tir.gpu.launch import WARP
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.schedule.references import BlockRV, LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.tree.layouts import map_of

PAD_BYTES = 32
"""Between rows of sums in shared memory: with them rows of pairs of sums that are stored together are in different banks."""


class MmaSchedule(ProductSchedule):
    """Schedules a product that warps sum on tensor cores."""

    scope, gathers_chunks = "warp", True

    def __init__(self, s: Schedule, problem: Problem, tile: BlockTile, ways: Sequence[Way], instruction: Instruction) -> None:
        super().__init__(s, problem, tile, ways, tile.units * WARP, instruction.depth)
        self.instruction = instruction
        self.is_split |= not problem.starts_at_zero  # the sums of tensor cores begin at 0

    def _over_threads(self, loops: Sequence[LoopRV], lanes: int) -> LoopRV:
        s = self.s
        around, warp, lane, *run = s.split(s.fuse(*loops), [None, self.tile.units, WARP, *([lanes] if lanes > 1 else [])])
        s.bind(warp, "threadIdx.y")
        s.bind(lane, "threadIdx.x")
        for loop in run:
            s.vectorize(loop)
        return around

    def _in_warps(self, rows: LoopRV, columns: LoopRV) -> tuple[LoopRV, LoopRV, LoopRV, LoopRV]:
        """Distributes a tile over warps; gives the loop of the warps, and for each the loop over its groups of 16 rows, of which it has
        every n-th for n warps, the loop over their rows, and the loop over its columns."""
        s = self.s
        group, row, rows = s.split(rows, [None, self.counts[0], ROWS])
        column, columns = s.split(columns, [self.counts[1], None])
        s.reorder(column, row, group, rows, columns)
        warp = s.fuse(column, row)
        s.bind(warp, "threadIdx.y")
        return warp, group, rows, columns

    def _units(self, rows: LoopRV, columns: LoopRV, k1: LoopRV, k2: LoopRV) -> None:
        warp, group, rows, columns = self._in_warps(rows, columns)
        self.s.reorder(warp, k1, group, rows, columns, k2)
        self.s.unroll(group)
        self.at, self.tensor = (group, k1), rows

    def _stage(self, staged: BlockRV, rows: LoopRV, columns: LoopRV) -> LoopRV:
        s, bits = self.s, 8 * self.problem.sum_bytes
        warp, group, rows, _ = self._in_warps(rows, columns)
        s.reorder(group, warp)
        s.storage_align(staged, 0, -2, PAD_BYTES, PAD_BYTES * 8 // bits)
        s.tensorize(rows, f"mma_store_{self.instruction.sums}_{ROWS}x{self.tile.unit_columns}")
        return group

    def _load(self, number: int, shared: BlockRV, dimensions: int) -> None:
        s, way, bits = self.s, self.ways[number], self.instruction.bits
        line = outer = self._line(dimensions)
        chunk_bytes = CHUNK_BYTES
        lines, name = (ROWS, self.tile.unit_columns)[number], "ab"[number]
        sizes, kind = [lines, self.step], (self.instruction.a, self.instruction.b)[number]
        if not way.along_depth:

            def layout(*i: Any) -> list[Any]:
                return [*i[:line], *i[line + 1 :], i[line]]

            s.transform_layout(self.product, str(shared), map_of(dimensions, layout))
            sizes, name, outer = sizes[::-1], f"{name}_trans", dimensions - 2
            chunk_bytes *= 2 if bits == 32 else 1  # eight words of each of four lines are read at a time
        s.storage_swizzle(shared, 0, outer, chunk_bytes)
        fragments = s.cache_read(self.product, str(shared), "warp")
        s.tensorize(s.compute_at(fragments, self.at[number])[0], f"ldmatrix_{name}_{kind}_{sizes[0]}x{sizes[1]}")

    def _sum(self) -> None:
        a, b = self.instruction.a, self.instruction.b
        self.s.tensorize(self.tensor, f"mma_{a if a == b else a + b}_{ROWS}x{self.tile.unit_columns}x{self.step}")
