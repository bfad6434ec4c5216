"""Products by multiply-adds: each thread sums a part of a tile."""

from collections.abc import Sequence
from typing import Any

from relayc.pipelines.targets.cuda.architectures import WARP
from relayc.pipelines.targets.cuda.strategies.product.operands import Way
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem
from relayc.pipelines.targets.cuda.strategies.product.schedule import ProductSchedule
from relayc.pipelines.targets.cuda.strategies.product.shared import BANK_CHUNKS
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.schedule.references import BlockRV, LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.tree.layouts import map_of

RUN = 4
"""Elements that a thread reads of shared memory at once."""


class FmaSchedule(ProductSchedule):
    """Schedules a product that threads sum by multiply-adds."""

    scope, gathers_chunks = "local", False

    def __init__(self, s: Schedule, problem: Problem, tile: BlockTile, ways: Sequence[Way]) -> None:
        super().__init__(s, problem, tile, ways, tile.units, RUN)
        across = min(self.counts[1], BANK_CHUNKS)
        self.near = (min(self.counts[0], WARP // across), across)
        """Threads of a warp along rows and columns: a warp reads few lines of either operand, in different banks."""

    def _units(self, rows: LoopRV, columns: LoopRV, k1: LoopRV, k2: LoopRV) -> None:
        thread, own = self._in_threads(rows, columns)
        self.s.reorder(thread, k1, k2, *own)
        self.at, self.own = k1, [k2, *own]

    def _in_threads(self, rows: LoopRV, columns: LoopRV) -> tuple[LoopRV, list[LoopRV]]:
        """Distributes a tile over threads; gives the loop of the threads and the loops over what each has."""
        parts = [self._parts(number, loop) for number, loop in enumerate((rows, columns))]
        (outer_row, row, own_rows), (outer_column, column, own_columns) = parts
        self.s.reorder(outer_row, outer_column, row, column, *own_rows, *own_columns)
        thread = self.s.fuse(outer_row, outer_column, row, column)
        self.s.bind(thread, "threadIdx.x")
        return thread, [*own_rows, *own_columns]

    def _parts(self, number: int, loop: LoopRV) -> tuple[LoopRV, LoopRV, list[LoopRV]]:
        """Splits the lines of an operand: into outer and inner threads, and the loops over a thread's lines. A thread has every n-th line
        for n threads if lines run along the depth, otherwise runs of lines."""
        unit, count, near = (self.tile.unit_rows, self.tile.unit_columns)[number], self.counts[number], self.near[number]
        if self.ways[number].along_depth:
            own, outer, inner = self.s.split(loop, [unit, count // near, near])
            return outer, inner, [own]
        own, outer, inner, run = self.s.split(loop, [unit // RUN, count // near, near, RUN])
        return outer, inner, [own, run]

    def _stage(self, staged: BlockRV, rows: LoopRV, columns: LoopRV) -> LoopRV:
        s = self.s
        thread, (strip, *own, last) = self._in_threads(rows, columns)
        s.reorder(strip, thread)
        for loop in own:
            s.unroll(loop)
        if self.ways[1].along_depth:
            s.unroll(last)
        else:
            s.vectorize(last)
        return strip

    def _load(self, number: int, shared: BlockRV, dimensions: int) -> None:
        s, way, count, line = self.s, self.ways[number], self.counts[number], self._line(dimensions)
        if self.has_lines[number]:

            def layout(*i: Any) -> list[Any]:
                if way.along_depth:
                    return [*i[:line], i[line] // count, i[line] % count, *i[line + 1 :]]
                return [*i[:line], *i[line + 1 :], i[line] // (RUN * count), i[line] // RUN % count, i[line] % RUN]

            s.transform_layout(self.product, str(shared), map_of(dimensions, layout))
            if way.along_depth and self.tile.depth * way.operand.node.element.width > CHUNK_BYTES * 8:
                s.storage_swizzle(shared, 0, line + 1)
        registers = s.cache_read(self.product, str(shared), "local")
        *loops, last = s.compute_at(registers, self.at, preserve_unit_loops=True)
        for loop in loops:
            s.unroll(loop)
        s.vectorize(last)

    def _sum(self) -> None:
        *loops, last = self.own
        for loop in loops:
            self.s.unroll(loop)
        self.s.vectorize(last)
