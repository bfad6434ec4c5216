"""The loops around the tiles of a contraction whose rows a padding bounds: convolutions with borders."""

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.contraction.microkernel import Columns, Point
from relayc.pipelines.cpu.schedule.contraction.nest import Nest
from relayc.pipelines.cpu.schedule.contraction.tile import PARALLEL_TASKS, Tile
from relayc.pipelines.kernel.contraction import Contraction
from relayc.pipelines.kernel.graph import Kernel, NotStructured
from relayc.pipelines.kernel.index import Index, Var, even_runs, linearize
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit

Value = ir.Value


MOST_EDGES = 1 << 10
"""Tiles that a padding touches, each of which has code of its own."""


class PaddedNest(Nest):
    """Parallel loops over batch, panels and, where these are few, outer rows; then the tiles of a row, those at its ends by themselves."""

    def __init__(self, kernel: Kernel, contraction: Contraction, tile: Tile, reads_in_place: bool, target: Target, tuning: Tuning) -> None:
        super().__init__(kernel, contraction, tile, tuning)
        self.reads_in_place = reads_in_place
        if not self.packs_param and not reads_in_place:
            self.workspace_bytes = self.packed_bytes
        self.fewest_tasks = tuning.number("tasks", PARALLEL_TASKS)
        self.prefetches = self.packs_param and self.packed_bytes > target.l2_bytes

    def body(self, arguments: Sequence[Value]) -> None:
        c = self.c
        if self.workspace_bytes:
            type_ = ir.MemRefType.get([self.workspace_bytes * 8 // c.b.node.element.width], c.b.node.element)
            self.packed = emit.create("memref.view", [type_], [arguments[-1], emit.index_constant(0)])
        panel = Var(0, self.panels - 1, name="panel")
        loops = [([v], v.high + 1) for v in c.batch] + [([panel], self.panels)]
        rows = list(c.rows)
        # Where a task packs the panel that it works on, its rows stay with it.
        while not self.workspace_bytes and prod(extent for _, extent in loops) < self.fewest_tasks and len(rows) > 1:
            loops.append(rows.pop(0))
        *outer, last = rows or [([], 1)]

        def code(at: Index, columns: Columns, point: Point) -> None:
            if not self.reads_in_place:
                self.micro.panel = self.packed, self.panel_start(at, point)
            if self.workspace_bytes:
                first = self.panel_start(at, point)
                width = self.tile.width
                self.each_step(point, lambda p: self.pack_columns(columns, p, self.packed, first + c.step(p) * width))
            self.ahead = self.panel_start(at + 1, point)
            self.serial([g for g in outer if g[1] > 1], point, lambda inner: self.row(last, columns, inner))

        self.tasks(loops, lambda point: self.panel_code(point[panel], point, code))

    def row(self, last: tuple[list[Var], int], columns: Columns, point: Point) -> None:
        """The tiles of the innermost row loop: equal ones in loops, those that a padding touches one by one."""
        members, extent = last
        var = members[-1] if members else None
        start = 0
        for size, count in even_runs(extent, self.tile.rows):
            first, end = self.inside_padding(var, start, size, count)
            if count - (end - first) > MOST_EDGES:
                raise NotStructured(f"{count - (end - first)} tiles that a padding touches")
            position = 0
            while position < count:
                at = start + position * size
                equal = end - position if position == first else 1
                with ExitStack() as scopes:
                    place = Index(at)
                    if equal > 1:
                        loop = Var(at, at + (equal - 1) * size, step=size if at % size == 0 else 1, name="t")
                        scopes.enter_context(emit.for_loop(at, at + equal * size, size, loop))
                        place = Index.of(loop)
                    scopes.enter_context(self.evaluator.scope())
                    self.tile_code(var, place, size, columns, point, edge=not first <= position < end)
                position += max(equal, 1)
            start += count * size

    def tile_code(self, var: Var | None, start: Index, size: int, columns: Columns, point: Point, edge: bool) -> None:
        """One tile. With each step of the reduction's last loop but one it asks for its share of the next panel, which the first tile to
        need it would have to wait for."""
        if self.prefetches:
            rows = prod(extent for _, extent in self.c.rows)
            share = -(-self.panel_size // rows)
            row = linearize([point.get(m[-1], Index()) for m, _ in self.c.rows[:-1]], [e for _, e in self.c.rows[:-1]])
            first = self.ahead + (row * self.c.rows[-1][1] + start) * share
            inner = self.c.reduction[-1].high + 1
            each = -(-share * size * inner // self.c.depth)

            def visit(at: Point) -> None:
                line = self.c.step(at).split(inner)
                assert line is not None
                for k in range(0, each, self.line):
                    emit.prefetch(self.packed, first + line[0] * each + k)

            self.micro.on_inner_loop = visit
        self.micro.tile_code(var, start, size, columns, point, edge)
        self.micro.on_inner_loop = None

    def inside_padding(self, var: Var | None, start: int, size: int, count: int) -> tuple[int, int]:
        """Of `count` tiles of `size` rows from `start` on, the first one in which no index that moves along the row loop leaves its
        dimension, and the one behind the last of them. Both are `count` where there is none."""
        first, end = 0, count
        for index, extent in self.c.a.checks:
            c = index.coefficient(var) if var is not None else 0
            if c:
                low, high = (index + Index(start * c, {var: -c})).bounds()  # type: ignore[dict-item]
                reach, step = (size - 1) * c, size * c
                below, above = low + min(reach, 0), extent - 1 - (high + max(reach, 0))  # of tile 0: both have to be 0 or more
                # Tile k has below + k * step and above - k * step.
                if step > 0:
                    first, end = max(first, -(below // step)), min(end, above // step + 1)
                else:
                    first, end = max(first, -(above // -step)), min(end, below // -step + 1)
        return (first, end) if first < end else (count, count)
