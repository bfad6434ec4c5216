"""The loops around the tiles of a contraction whose rows a padding bounds: convolutions with borders."""

from collections.abc import Callable, Iterator
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.contraction.microkernel import Columns, Microkernel, Panel, Point, Sweep
from relayc.pipelines.cpu.schedule.contraction.nest import ContractionNest
from relayc.pipelines.cpu.schedule.contraction.plan import Plan, Source
from relayc.pipelines.kernel.access import MergedLoop
from relayc.pipelines.kernel.graph import NotStructured
from relayc.pipelines.kernel.index import Index, Var, ceil_div, even_runs, linearize
from relayc.pipelines.schedule.strategy import Body
from relayc.pipelines.tir import nest
from relayc.pipelines.tir.buffers import prefetch

MOST_EDGES = 1 << 10
"""Tiles that a padding touches, each of which has code of its own."""


class PaddedNest(ContractionNest):
    """Parallel loops over batch, panels and, where these are few, outer rows; then the tiles of a row, those at its ends by themselves."""

    def __init__(self, plan: Plan, fewest_tasks: int) -> None:
        super().__init__(plan, plan.packed_bytes if plan.b is Source.COPY else 0)
        self.fewest_tasks = fewest_tasks

    def _loops(self, body: Body, packed: ir.Value | None) -> None:
        c, plan = self.c, self.plan
        if plan.b is Source.COPY:
            packed = self._copies(body, c.b.node.element)
        micro = Microkernel(c, self.tile, self.evaluator, body.outputs[0], None)
        panel = Var(0, plan.panels - 1, name="panel")
        loops = [*(MergedLoop([v], v.extent) for v in c.batch), MergedLoop([panel], plan.panels)]
        rows = list(c.rows)
        # Where a task packs the panel that it works on, its rows stay with it.
        while plan.b is not Source.COPY and prod(loop.extent for loop in loops) < self.fewest_tasks and len(rows) > 1:
            loops.append(rows.pop(0))
        outer, last = [loop for loop in rows[:-1] if loop.extent > 1], rows[-1] if rows else None

        def code(at: Index, columns: Columns, point: Point) -> None:
            start, ahead = self._panel_start(at, point), self._panel_start(at + 1, point)
            if packed is not None and plan.b is Source.COPY:
                self._each_step(point, lambda p: self._pack_columns(columns, p, packed, start + c.step(p) * self.tile.width))
            sweep = Sweep(columns, None if packed is None else Panel(packed, start))
            variables = [Var(0, loop.extent - 1, name="s") for loop in outer]
            with nest.serial(variables, self.evaluator):
                inner = {**point, **{loop.var: Index.of(v) for loop, v in zip(outer, variables, strict=True)}}
                self._row(micro, last, sweep, ahead if plan.prefetches else None, inner)

        self._tasks(loops, lambda point: self._panel_code(point[panel], point, code))

    def _row(self, micro: Microkernel, rows: MergedLoop | None, sweep: Sweep, ahead: Index | None, point: Point) -> None:
        """The tiles of the innermost row loop: equal ones in loops, those that a padding touches one by one.

        `ahead` is where the next panel begins, of which each tile asks for its share.
        """
        var, extent = (rows.var, rows.extent) if rows is not None else (None, 1)

        for first, size, count, inside in self._runs(var, extent):
            with nest.run_of_tiles(first, size, count, self.evaluator) as start:
                visit = self._prefetching(sweep, ahead, start, size, point) if ahead is not None else None
                micro.tile_code(var, start, size, Sweep(sweep.columns, sweep.panel, on_inner_loop=visit), point, not inside)

    def _runs(self, var: Var | None, extent: int) -> Iterator[tuple[int, int, int, bool]]:
        """Runs of equal tiles of a row loop: their first row, the rows of a tile, how many they are, and whether no padding touches them.

        Raises NotStructured where more than MOST_EDGES tiles are touched.
        """
        start = 0
        for size, count in even_runs(extent, self.tile.rows):
            first, end = self._inside_padding(var, start, size, count)
            if count - (end - first) > MOST_EDGES:
                raise NotStructured(f"{count - (end - first)} tiles that a padding touches")
            position = 0
            while position < count:
                inside = first <= position < end
                equal = end - position if position == first and inside else 1
                yield start + position * size, size, equal, inside
                position += equal
            start += count * size

    def _prefetching(self, sweep: Sweep, ahead: Index, start: Index, size: int, point: Point) -> Callable[[Point], None]:
        """With each step of the reduction's last loop but one a tile asks for its share of the next panel, which the first tile to need it
        would have to wait for."""
        assert sweep.panel is not None
        buffer, outer = sweep.panel.buffer, self.c.rows[:-1]
        share = ceil_div(self.plan.panel_size, prod(loop.extent for loop in self.c.rows))
        row = linearize([point.get(loop.var, Index()) for loop in outer], [loop.extent for loop in outer])
        first = ahead + (row * self.plan.rows + start) * share
        inner = self.c.reduction[-1].extent
        each = ceil_div(share * size * inner, self.c.depth)

        def visit(at: Point) -> None:
            line = self.c.step(at).split(inner)
            assert line is not None
            for k in range(0, each, self.line):
                prefetch(buffer, first + line[0] * each + k)

        return visit

    def _inside_padding(self, var: Var | None, start: int, size: int, count: int) -> tuple[int, int]:
        """Of `count` tiles of `size` rows from `start` on, the first one in which no index that moves along the row loop leaves its
        dimension, and the one behind the last of them. Both are `count` where there is none."""
        first, end = 0, count
        for index, extent in self.c.a.checks:
            c = index.coefficient(var) if var is not None else 0
            if var is not None and c:
                low, high = (index + Index(start * c, {var: -c})).bounds()
                reach, step = (size - 1) * c, size * c
                below, above = low + min(reach, 0), extent - 1 - (high + max(reach, 0))  # of tile 0: both have to be 0 or more
                # Tile k has below + k * step and above - k * step.
                if step > 0:
                    first, end = max(first, -(below // step)), min(end, above // step + 1)
                else:
                    first, end = max(first, -(above // -step)), min(end, below // -step + 1)
        return (first, end) if first < end else (count, count)
