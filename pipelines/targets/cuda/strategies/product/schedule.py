"""Products by primitives: a contraction becomes a product of matrices, whose tiles blocks of threads compute from shared memory.

Whatever the loops of the contraction are, its block gets the iterators [batch,] row, column, depth; copies of the operands do the index
arithmetic (an implicit product of a convolution), and so does the copy of the sums, which computes the epilogue. Then a block of threads
computes a tile: it copies tiles of the operands to shared memory, ahead of their use, each thread sums its part in registers, and the
results go through shared memory, so that neighbouring threads store neighbouring elements.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from relayc.pipelines.emission.index import Var
from relayc.pipelines.targets.cuda.architectures import WARP
from relayc.pipelines.targets.cuda.strategies.general import split_threads
from relayc.pipelines.targets.cuda.strategies.product.operands import Way
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem
from relayc.pipelines.targets.cuda.strategies.product.results import direction_of
from relayc.pipelines.targets.cuda.strategies.product.shared import BANK_CHUNKS
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.te.read.contraction import ProductOperand
from relayc.pipelines.tir.schedule.references import LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.tree.indices import variables
from relayc.pipelines.tir.tree.layouts import map_of
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.symbolic import ceil_div, exact

RUN = 4
"""Elements that a thread reads of shared memory at once."""
BAND = 8
"""Rows of tiles, at most, that blocks go over column by column: neighbouring blocks share rows and columns, which the cache of the device
keeps. There are whole bands."""
SUM_THREADS = 256
"""Of a block that adds splits."""


class ProductSchedule:
    """Schedules a product that threads sum by multiply-adds.

    Args:
      ways: how A and B are copied.
    """

    def __init__(self, s: Schedule, problem: Problem, tile: BlockTile, ways: Sequence[Way]) -> None:
        self.s, self.problem, self.tile, self.ways = s, problem, tile, ways
        self.threads = tile.units
        self.counts = (tile.rows // tile.unit_rows, tile.columns // tile.unit_columns)
        across = min(self.counts[1], BANK_CHUNKS)
        self.near = (min(self.counts[0], WARP // across), across)
        """Threads of a warp along rows and columns: a warp reads few lines of either operand, in different banks."""
        self.direction = direction_of(problem)

    def write(self) -> None:
        """Schedules the kernel."""
        s, tile = self.s, self.tile
        self._as_matrices()
        if tile.splits > 1:
            self._split_depth()
        parts = [1] if tile.splits > 1 else []
        stored = self._padded(tile.rows, tile.columns, *parts, tile.depth)
        if tile.splits > 1:
            self.result = stored or str(s.cache_write(self.product, 0, "shared"))
        elif stored is not None:
            s.compute_inline(stored)
        s.set_scope(self.product, 0, "shared")
        self._tile()

    def _padded(self, *padding: int) -> str | None:
        """Pads the iterators of the product that follow the batch; returns the block that copies its result, if there is one."""
        s = self.s
        batch = [1] * bool(self.problem.contraction.batch)
        made = map(str, s.pad_einsum(self.product, [*batch, *padding]))
        return next((name for name in made if self.product in map(str, s.get_producers(name))), None)

    # ---- a product of matrices

    def _as_matrices(self) -> None:
        """The block of the product gets the iterators [batch,] row, column, depth."""
        s, c = self.s, self.problem.contraction
        for operand, way in zip((c.a, c.b), self.ways, strict=True):
            if way.packing is not None:
                self._pack(operand)
        extents = [v.extent for v in c.variables]
        self.product = next(b.name for b in s.nest.blocks().values() if b.is_reduction and list(b.extents) == extents)
        groups = [[c.variables.index(v) for v in members] for members in self._lines()]
        s.fuse_iterators(self.product, groups)
        block = s.nest.blocks()[self.product]
        made = block.outputs()
        reads = [a for a in block.loads() if a.buffer not in made and not a.is_init]
        along = [[any(v in variables(i) for i in a.indices) for v in block.vars[-3:-1]] for a in reads]
        reads = reads if along[0][0] or along[1][1] else reads[::-1]
        self.has_lines = [along[0][0] or along[1][0], along[0][1] or along[1][1]]
        names = [s.nest.buffer_name(a.buffer) for a in reads]
        self.copies = [str(s.reindex(self.product, ("read", name), 0)) for name in names]
        self.result = str(s.reindex(self.product, ("write", 0)))
        own = {self.product, self.result, *self.copies}
        for name in s.nest.blocks():
            if name not in own:
                with suppress(ScheduleError):
                    s.compute_inline(name)
        for name in s.nest.blocks():
            if name not in own:
                s.reverse_compute_inline(name)

    def _lines(self) -> list[list[Var]]:
        """The loops of the contraction along [batches,] rows, columns and the depth. A loop of one iteration that is in none of these is
        added to the rows, or to the depth if it is a loop of the reduction."""
        c = self.problem.contraction
        found = [list(c.batch), *([v for loop in loops for v in loop.members] for loops in (c.rows, c.columns, self.problem.reduction))]
        known = {v for members in found for v in members}
        steps = c.variables[len(c.node.shape) :]
        for v in c.variables:
            if v not in known:
                found[3 if v in steps else 1].insert(0, v)
        return found if c.batch else found[1:]

    def _pack(self, operand: ProductOperand) -> None:
        """Changes the layout of a parameter: its lines, and in each the depth in the order in which it is summed."""
        s, steps = self.s, self._lines()[-1]
        places = [next((steps.index(v) for v in index.terms if v in steps), -1) for index in operand.indices]
        order = sorted(range(len(places)), key=lambda d: places[d])
        buffer = s.nest.entry.arguments[operand.node.position]
        reader = next(b.name for b in s.nest.blocks().values() if any(a.buffer == buffer for a in b.loads()))
        s.transform_layout(reader, s.nest.buffer_name(buffer), map_of(len(order), lambda *i: [i[d] for d in order]))

    def _run(self, way: Way) -> int:
        """Elements that a thread copies at once."""
        lanes, depth = max(1, way.run), self.problem.depth
        if way.packing is None:
            return lanes
        while exact(depth, lanes) is None:
            lanes //= 2
        return lanes

    def _split_depth(self) -> None:
        """Sums of parts of the depth in a workspace, which a second launch adds."""
        s, lanes, splits = self.s, self.direction.lanes, self.tile.splits
        stored = self._padded(1, 1, self.tile.depth * splits)
        assert stored is None  # the result has no depth
        total = self.product
        *_, k = s.get_loops(total)
        parts, _ = s.split(k, [splits, None])
        self.product = str(s.rfactor(parts, 0))
        block, thread = split_threads(s, self._contiguous(s.get_loops(self.result)), SUM_THREADS, lanes)
        s.bind(block, "blockIdx.x")
        s.set_scope(total, 0, "local")
        *elements, parts = s.compute_at(total, thread)
        s.reorder(parts, *elements)
        s.unroll(parts)
        if elements:
            s.vectorize(elements[-1])
        *elements, parts, _ = s.get_loops(self.product)
        s.reorder(parts, *elements)
        for number in (0, 1):
            s.reindex(self.product, ("read", self._operand(number)), 0)

    # ---- tiles

    def _tile(self) -> None:
        s, tile = self.s, self.tile
        *around, i, j, k = s.get_loops(self.product)
        tiles = ceil_div(self.problem.rows, tile.rows)
        band = next(n for n in range(BAND, 0, -1) if exact(tiles, n) is not None)
        i0, within, rows = s.split(i, [None, band, tile.rows])
        j0, columns = s.split(j, [None, tile.columns])
        k0, k1, k2 = s.split(k, [None, tile.depth // RUN, RUN])
        s.reorder(*around, i0, j0, within, k0, rows, columns, k1, k2)
        block = s.fuse(*around, i0, j0, within)
        s.bind(block, "blockIdx.x")
        thread, (*own, last) = self._in_threads(rows, columns)
        s.reorder(thread, k1, k2, *own, last)
        for loop in (k1, k2, *own):
            s.unroll(loop)
        s.vectorize(last)
        staged = s.cache_write(self.product, 0, "local")
        *_, rows, columns = s.reverse_compute_at(staged, block, preserve_unit_loops=True)
        self._store(rows, columns)
        for number in (0, 1):
            self._copy(number, k0, k1)
        s.annotate(k0, "software_pipeline_stage", [0, 0, tile.stages - 1])
        if any(way.copied for way in self.ways):
            s.annotate(k0, "software_pipeline_async_stages", [0])

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

    def _copy(self, number: int, k0: LoopRV, k1: LoopRV) -> None:
        """Copies an operand to shared memory, and from there to registers."""
        s, way, count = self.s, self.ways[number], self.counts[number]
        shared = s.cache_read(self.product, self._operand(number), "shared")
        *_, depth = loops = s.compute_at(shared, k0, preserve_unit_loops=True)
        while producers := s.get_producers(shared):
            for producer in producers:
                s.compute_inline(producer)
        at = len(loops) - (2 if self.tile.splits == 1 else 3)
        lines = [loops[at], depth] if self.has_lines[number] else [depth]
        if not way.along_depth or way.is_read_by_lines(self.problem):
            lines.reverse()  # neighbouring threads copy neighbouring elements
        s.reorder(*(loop for loop in loops if loop not in lines), *lines)
        units, _ = split_threads(s, lines, self.threads, self._run(way))
        if not way.copied:
            s.annotate(shared, "software_pipeline_registers", True)
            s.unroll(units)
        if self.has_lines[number]:

            def layout(*i: Any) -> list[Any]:
                if way.along_depth:
                    return [*i[:at], i[at] // count, i[at] % count, *i[at + 1 :]]
                return [*i[:at], *i[at + 1 :], i[at] // (RUN * count), i[at] // RUN % count, i[at] % RUN]

            s.transform_layout(self.product, str(shared), map_of(len(loops), layout))
            if way.along_depth and self.tile.depth > RUN:
                s.storage_swizzle(shared, 0, at + 1)
        registers = s.cache_read(self.product, str(shared), "local")
        *loops, last = s.compute_at(registers, k1, preserve_unit_loops=True)
        for loop in loops:
            s.unroll(loop)
        s.vectorize(last)

    def _operand(self, number: int) -> str:
        """The buffer of A or B that the product reads: the result of the copies that index and pad the operand."""
        copy = self.copies[number]
        while (reader := str(self.s.get_consumers(copy)[0])) != self.product:
            copy = reader
        return self.s.nest.buffer_name(self.s.nest.blocks()[copy].outputs()[0])

    def _reordered(self, *loops: LoopRV) -> Sequence[LoopRV]:
        self.s.reorder(*loops)
        return loops

    def _store(self, rows: LoopRV, columns: LoopRV) -> None:
        """Stores the sums of a tile through shared memory, strip by strip: first the first row, or run of rows, of all threads."""
        s = self.s
        thread, (strip, *own, last) = self._in_threads(rows, columns)
        s.reorder(strip, thread)
        for loop in (strip, *own):
            s.unroll(loop)
        if self.ways[1].along_depth:
            s.unroll(last)
        else:
            s.vectorize(last)
        loops = s.reverse_compute_at(self.result, strip, preserve_unit_loops=True)
        split_threads(s, self._contiguous(loops)[-2:], self.threads, self.direction.lanes)

    def _contiguous(self, loops: Sequence[LoopRV]) -> Sequence[LoopRV]:
        """Loops over [batch,] rows and columns of the result, in the order in which it is contiguous."""
        if self.direction.along_columns or len(loops) < 2:
            return loops
        return [*loops[:-2], *self._reordered(*loops[:-3:-1])]
