"""The loops around the tiles of a contraction whose rows a padding bounds: convolutions with borders."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.contraction.across import AcrossRows, finishes_across
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import Columns, Microkernel, Panel, Point, Sums, Sweep, rows_from
from relayc.pipelines.targets.cpu.strategies.contraction.nest import ContractionNest
from relayc.pipelines.targets.cpu.strategies.contraction.plan import OperandSource, Plan
from relayc.pipelines.targets.cpu.strategies.contraction.strips import FIRST, RowCover, Strip, StripCopy
from relayc.pipelines.targets.cpu.strategies.contraction.tile import PARALLEL_TASKS
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.tir.strategy.scheduled import KernelFunction
from relayc.pipelines.tir.strategy.tuning import distinct
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import local_buffer, prefetch
from relayc.symbolic import ceil_div, guess


def _sure_iterations(loops: Sequence[MergedLoop]) -> int:
    """Known iterations of all loops together; a loop whose extent depends on the call counts as one."""
    return prod(loop.extent for loop in loops if isinstance(loop.extent, int))


def fewest_tasks(plan: Plan) -> list[int]:
    """Numbers of tasks that there should be at least for which different loops over rows are among the parallel ones."""
    if plan.b is OperandSource.COPY:
        return [PARALLEL_TASKS]
    iterations = prod(v.extent for v in plan.contraction.batch if isinstance(v.extent, int)) * (
        plan.panels if isinstance(plan.panels, int) else 1
    )
    reached = []
    for row in plan.contraction.rows[:-1]:
        reached.append(iterations)
        iterations *= row.extent if isinstance(row.extent, int) else 1
    return distinct((1, *(n + 1 for n in reached)), PARALLEL_TASKS, lambda tasks: sum(tasks > n for n in reached))


class PaddedNest(ContractionNest):
    """Parallel loops over batch, panels and, if these are few, outer rows; then the tiles of a row, with tiles at its ends separately.

    Attributes:
      row_cover, strip, sums, across: if the length of rows depends on the call: the tiles that cover a row, the copy of its ends, the kept
        sums, and the epilogue if results are stored across rows.
    """

    row_cover: RowCover
    strip: StripCopy
    sums: Sums
    across: AcrossRows

    def __init__(self, plan: Plan, fewest_tasks: int) -> None:
        super().__init__(plan, plan.packed_bytes if plan.b is OperandSource.COPY else 0)
        self.fewest_tasks = fewest_tasks
        self.finishes_across = finishes_across(plan)

    def _loops(self, body: KernelFunction, packed: ir.Value | None) -> None:
        c, plan = self.c, self.plan
        if plan.b is OperandSource.COPY:
            packed = self._copies(body, c.b.node.element)
        micro = Microkernel(c, self.tile, self.evaluator, body.outputs[0])
        begin = lambda: None  # noqa: E731
        if not isinstance(plan.rows, int):
            self.row_cover = RowCover(c, self.tile.rows, self.tile.vectors)
            self.strip = StripCopy(c, self.row_cover.most_rows, self.tile.lanes, plan.has_masks(c.a.node), self.evaluator)
            begin = lambda: self._allocate(micro)  # noqa: E731
        panel = Var.below(plan.panels, name="panel")
        loops = [*(MergedLoop([v], v.extent) for v in c.batch), MergedLoop([panel], plan.panels)]
        rows = list(c.rows)
        # If a task packs its own panel, its rows stay in the task.
        while plan.b is not OperandSource.COPY and _sure_iterations(loops) < self.fewest_tasks and len(rows) > 1:
            loops.append(rows.pop(0))
        outer, last = [loop for loop in rows[:-1] if loop.extent != 1], rows[-1] if rows else None

        def code(at: Index, columns: Columns, point: Point) -> None:
            start, ahead = self._panel_start(at, point), self._panel_start(at + 1, point)
            if packed is not None and plan.b is OperandSource.COPY:
                self._pack_panel(columns, point, packed, start)
            sweep = Sweep(columns, None if packed is None else Panel(packed, start))
            variables = [Var.below(loop.extent, name="s") for loop in outer]
            with nest.serial(variables, self.evaluator):
                inner = {**point, **{loop.var: Index.of(v) for loop, v in zip(outer, variables, strict=True)}}
                self._row(micro, last, sweep, ahead if plan.prefetches else None, inner)

        with self._tasks(loops, begin) as point:
            self._panel_code(point[panel], point, code)

    def _row(self, micro: Microkernel, rows: MergedLoop | None, sweep: Sweep, ahead: Index | None, point: Point) -> None:
        """The tiles of the innermost row loop: equal tiles in loops, tiles that touch padding one by one.

        `ahead` is the start of the next panel, of which each tile prefetches its share.
        """
        var, extent = (rows.var, rows.extent) if rows is not None else (None, 1)
        if rows is not None and not isinstance(extent, int):
            self._row_of_call(micro, rows.var, sweep, ahead, point)
            return
        for run in nest.tile_runs(int(extent), self.tile.rows, partial(self._inside, var)):
            with nest.run_of_tiles(run, self.evaluator) as start:
                own = self._prefetching(sweep, ahead, start, run.size, point)
                micro.tile_code(var, rows_from(var, start, run.size, point), own, edge=not run.is_inside)

    def _allocate(self, micro: Microkernel) -> None:
        """The buffers of a thread, if the length of rows depends on the call."""
        self.strip.allocate()
        if not self.keeps_sums:
            return
        width = self.tile.width
        self.sums = Sums(local_buffer(self.row_cover.most_rows * width, self.c.node.element), width, self.c.node.element)
        if self.finishes_across:
            self.across = AcrossRows(micro, self.sums, self.plan.has_costly_epilogue)

    @property
    def keeps_sums(self) -> bool:
        """Whether the sums of a strip wait in memory for the epilogue: one code for tiles of all heights."""
        return self.finishes_across or self.c.store_stride(self.c.column) == 1

    @property
    def keeps_all_sums(self) -> bool:
        """Whether the sums of full tiles are kept in memory, too: if they are stored across rows, or it takes a small part of their
        time."""
        return self.finishes_across or (self.keeps_sums and self.plan.may_keep_sums)

    def _row_of_call(self, micro: Microkernel, var: Var, sweep: Sweep, ahead: Index | None, point: Point) -> None:
        """The tiles of a row whose length depends on the call: strips at its ends, and tiles between."""
        cover, height, columns = self.row_cover, self.tile.rows, sweep.columns

        def sweep_of(start: Index, rows: int) -> Sweep:
            return self._prefetching(sweep, ahead, start, rows, point)

        def whole_sums(start: Index) -> None:
            points = rows_from(var, start, height, point)
            found = micro.reduce(points, sweep_of(start, height), micro.initial(points, columns))
            self.sums.store(found, columns, Index(), self.evaluator)

        def strip_sums(strip: Strip) -> None:
            self._strip(micro, strip, columns, var, sweep_of, point)

        if self.keeps_all_sums:
            with cover.parts(self.evaluator) as (strip, is_strip, first, rows):
                nest.when(is_strip, self.evaluator, lambda: strip_sums(strip), lambda: whole_sums(first))
                self._finish(micro, first, rows, columns, var, point)
            return
        with cover.strips(self.evaluator) as strip:
            strip_sums(strip)
            if self.keeps_sums:
                self._finish(micro, strip.first, strip.rows, columns, var, point)
        with nest.loop(0, cover.count, self.evaluator, below=self.plan.rows, name="tile") as whole:
            start = cover.first + whole * height
            micro.tile_code(var, rows_from(var, start, height, point), sweep_of(start, height))

    def _strip(
        self, micro: Microkernel, strip: Strip, columns: Columns, var: Var, sweep_of: Callable[[Index, int], Sweep], point: Point
    ) -> None:
        """The tiles of a strip, of each height in turn; their sums are kept, or they are finished at once."""
        code = Microkernel(self.strip.contraction, self.tile, self.evaluator, micro.output)
        most, point = self.row_cover.most_rows, {**point, FIRST: strip.first}
        self.strip.fill(strip, point)
        done = Index()
        for tiles in strip.tiles:
            with nest.loop(0, tiles.count, self.evaluator, below=most, name="low") as number:
                last = emit.arith("subi", strip.rows, emit.index_constant(tiles.height))
                place = emit.arith("minsi", emit.materialize(done + number * tiles.height), last)
                row = Index.of(Var.below(most, place, name="row"))
                sweep, points = sweep_of(strip.first + row, tiles.height), rows_from(var, strip.first + row, tiles.height, point)
                found = code.reduce(points, sweep, code.initial(points, columns))
                if self.keeps_sums:
                    self.sums.store(found, columns, row * self.tile.width, self.evaluator)
                else:
                    code.finish(points, columns, found, var)
            done += Index(0, {Var(0, most, tiles.count, name="count"): tiles.height})

    def _finish(self, micro: Microkernel, first: Index, rows: ir.Value, columns: Columns, var: Var, point: Point) -> None:
        """The epilogue of rows from `first` on, whose sums are kept: row by row, or across several rows."""
        width = self.tile.width
        if self.finishes_across:
            low = emit.materialize(first)
            self.across.finish(low, emit.arith("addi", low, rows), lambda row: (row - first) * width, point)
            return
        with nest.loop(0, rows, self.evaluator, below=self.plan.rows, name="row") as row:
            found = self.sums.load(1, columns, row * width, self.evaluator)
            micro.finish(rows_from(var, first + row, 1, point), columns, found, var)

    def _prefetching(self, sweep: Sweep, ahead: Index | None, start: Index, size: int, point: Point) -> Sweep:
        """With each step of the reduction's last loop but one a tile asks for its share of the next panel, if there is one, which the first
        tile to need it would have to wait for."""
        if ahead is None:
            return sweep
        assert sweep.panel is not None
        buffer, outer = sweep.panel.buffer, self.c.rows[:-1]
        share = ceil_div(self.plan.panel_size, guess(prod(loop.extent for loop in self.c.rows)))
        row = linearize([point.get(loop.var, Index()) for loop in outer], [loop.extent for loop in outer])
        first = ahead + (row * self.plan.rows + start) * share
        inner = self.c.reduction[-1].extent
        each = ceil_div(share * size * inner, self.c.depth)

        def visit(at: Point) -> None:
            line = self.c.step(at).split(inner)
            assert line is not None
            for k in range(0, each, self.line):
                prefetch(buffer, first + line[0] * each + k)

        return replace(sweep, on_inner_loop=visit)

    def _inside(self, var: Var | None, start: int, size: int, count: int) -> tuple[int, int]:
        """Of `count` tiles of `size` rows from `start` on, those in which no index that moves along the row loop leaves its dimension."""
        first, end = 0, count
        for index, extent in self.c.a.checks:
            c = int(index.coefficient(var))
            if var is not None and c:
                low, high = (index + Index(start * c, {var: -c})).bounds()
                reach = (size - 1) * c
                ends = int(low) + min(reach, 0), int(high) + max(reach, 0)
                found = nest.tiles_inside(*ends, size * c, int(extent), count)
                first, end = max(first, found[0]), min(end, found[1])
        return (first, end) if first < end else (count, count)
