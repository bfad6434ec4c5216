"""Products by primitives: a contraction becomes a product of matrices, whose tiles blocks of threads compute from shared memory.

Whatever the loops of the contraction are, its block gets the iterators [batch,] row, column, depth; copies of the operands do the index
arithmetic (an implicit product of a convolution), and so does the copy of the sums, which computes the epilogue. Then a block of threads
computes a tile: it copies tiles of the operands to shared memory, ahead of their use, each thread or warp sums its part in registers, and
the results go through shared memory, so that neighbouring threads store neighbouring elements.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

from relayc.pipelines.emission.index import Var
from relayc.pipelines.targets.cuda.strategies.general import split_threads
from relayc.pipelines.targets.cuda.strategies.product.operands import Way
from relayc.pipelines.targets.cuda.strategies.product.problem import Problem, direction_of
from relayc.pipelines.targets.cuda.strategies.product.tile import BlockTile
from relayc.pipelines.tir.gpu.swizzle import CHUNK_BYTES
from relayc.pipelines.tir.schedule.references import BlockRV, LoopRV
from relayc.pipelines.tir.schedule.schedule import Schedule
from relayc.pipelines.tir.tree.indices import variables
from relayc.pipelines.tir.tree.layouts import map_of
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.symbolic import ceil_div, exact

BAND = 8
"""Rows of tiles, at most, that blocks go over column by column: neighbouring blocks share rows and columns, which the cache of the device
keeps. There are whole bands."""
SUM_THREADS = 256
"""Of a block that adds splits."""


class ProductSchedule(ABC):
    """Schedules a product: what threads and tensor cores have in common.

    Attributes:
      scope: of the sums in registers.
      gathers_chunks: whether a thread copies chunks of elements that go through registers, and not single elements.

    Args:
      ways: how A and B are copied.
      threads: of a block.
      step: the steps of the depth whose operands are in registers at once.
    """

    scope: ClassVar[str]
    gathers_chunks: ClassVar[bool]

    def __init__(self, s: Schedule, problem: Problem, tile: BlockTile, ways: Sequence[Way], threads: int, step: int) -> None:
        self.s, self.problem, self.tile, self.ways = s, problem, tile, ways
        self.threads, self.step = threads, step
        self.counts = (tile.rows // tile.unit_rows, tile.columns // tile.unit_columns)
        """Units of a tile along rows and columns."""
        self.is_split = tile.splits > 1
        """Whether the sums of parts of the depth are added, and to what they begin with, by a second launch."""
        self.direction = direction_of(problem)

    def write(self) -> None:
        """Schedules the kernel."""
        s, tile = self.s, self.tile
        self._as_matrices()
        if self.is_split:
            self._split_depth()
        parts = [1] if self.is_split else []
        stored = self._padded(tile.rows, tile.columns, *parts, tile.depth)
        if self.is_split:
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
        for way in self.ways:
            if way.is_packed:
                self._pack(way)
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

    def _pack(self, way: Way) -> None:
        """Changes the layout of a parameter: its lines along the depth, in the order in which it is summed, or across it."""
        s, steps, indices = self.s, self._lines()[-1], way.operand.indices
        lines = [] if way.along_depth else [v for loop in way.loops for v in loop.members]
        ranks = {v: rank for rank, v in enumerate((*steps, *lines))}
        order = sorted(range(len(indices)), key=lambda d: next((ranks[v] for v in indices[d].terms if v in ranks), -1))
        buffer = s.nest.entry.arguments[way.operand.node.position]
        reader = next(b.name for b in s.nest.blocks().values() if any(a.buffer == buffer for a in b.loads()))
        s.transform_layout(reader, s.nest.buffer_name(buffer), map_of(len(order), lambda *i: [i[d] for d in order]))

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
        k0, k1, k2 = s.split(k, [None, tile.depth // self.step, self.step])
        s.reorder(*around, i0, j0, within, k0, rows, columns, k1, k2)
        block = s.fuse(*around, i0, j0, within)
        s.bind(block, "blockIdx.x")
        s.unroll(k1)
        self._units(rows, columns, k1, k2)
        staged = s.cache_write(self.product, 0, self.scope)
        *_, rows, columns = s.reverse_compute_at(staged, block, preserve_unit_loops=True)
        strip = self._stage(staged, rows, columns)
        s.unroll(strip)
        loops = s.reverse_compute_at(self.result, strip, preserve_unit_loops=True)
        self._over_threads(self._contiguous(loops)[-2:], self.direction.lanes)
        for number in (0, 1):
            shared, dimensions = self._copy(number, k0)
            self._load(number, shared, dimensions)
        self._sum()
        s.annotate(k0, "software_pipeline_stage", [0, 0, tile.stages - 1])
        if any(way.copied for way in self.ways):
            s.annotate(k0, "software_pipeline_async_stages", [0])

    @abstractmethod
    def _units(self, rows: LoopRV, columns: LoopRV, k1: LoopRV, k2: LoopRV) -> None:
        """Distributes the sums of a tile over threads: its rows, columns, and the steps of the depth of a stage."""

    @abstractmethod
    def _stage(self, staged: BlockRV, rows: LoopRV, columns: LoopRV) -> LoopRV:
        """Schedules the stores of the sums of a tile to shared memory, strip by strip; gives the loop over the strips."""

    @abstractmethod
    def _load(self, number: int, shared: BlockRV, dimensions: int) -> None:
        """Arranges an operand in shared memory, which has some dimensions there, and loads it to registers."""

    @abstractmethod
    def _sum(self) -> None:
        """Schedules the sums of a unit, whose operands are in registers."""

    def _over_threads(self, loops: Sequence[LoopRV], lanes: int) -> LoopRV:
        """Distributes nested loops over the threads of a block, each of which has some lanes; gives the loop around."""
        return split_threads(self.s, loops, self.threads, lanes)[0]

    def _line(self, dimensions: int) -> int:
        """Which of the dimensions of an operand is that of its lines: [batch,] line, [split,] depth."""
        return dimensions - (3 if self.is_split else 2)

    def _copy(self, number: int, k0: LoopRV) -> tuple[BlockRV, int]:
        """Copies an operand to shared memory; gives the copy, and its dimensions."""
        s, way = self.s, self.ways[number]
        shared = s.cache_read(self.product, self._operand(number), "shared")
        *_, depth = loops = s.compute_at(shared, k0, preserve_unit_loops=True)
        while producers := s.get_producers(shared):
            for producer in producers:
                s.compute_inline(producer)
        lines = [loops[self._line(len(loops))], depth] if self.has_lines[number] else [depth]
        if not way.along_depth:
            lines.reverse()
        *slow, fast = lines
        gathered = CHUNK_BYTES // way.element_bytes if self.gathers_chunks else 1
        lanes = way.run if way.copied else gathered
        fast, run = s.split(fast, [None, lanes])
        threads = [*slow, fast]
        if way.is_read_by_lines(self.problem):
            threads.reverse()  # neighbouring threads copy neighbouring elements
        s.reorder(*(loop for loop in loops if loop not in lines), *threads, run)
        units = self._over_threads([*threads, run], lanes)
        if not way.copied:
            s.annotate(shared, "software_pipeline_registers", True)
            s.unroll(units)
        return shared, len(loops)

    def _operand(self, number: int) -> str:
        """The buffer of A or B that the product reads: the result of the copies that index and pad the operand."""
        copy = self.copies[number]
        while (reader := str(self.s.get_consumers(copy)[0])) != self.product:
            copy = reader
        return self.s.nest.buffer_name(self.s.nest.blocks()[copy].outputs()[0])

    def _reordered(self, *loops: LoopRV) -> Sequence[LoopRV]:
        self.s.reorder(*loops)
        return loops

    def _contiguous(self, loops: Sequence[LoopRV]) -> Sequence[LoopRV]:
        """Loops over [batch,] rows and columns of the result, in the order in which it is contiguous."""
        if self.direction.along_columns or len(loops) < 2:
            return loops
        return [*loops[:-2], *self._reordered(*loops[:-3:-1])]
