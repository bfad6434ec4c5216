"""Tasks of a contraction without paddings: blocks of rows times blocks of panels, and the tiles of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.contraction.across import stores_across
from relayc.pipelines.targets.cpu.strategies.contraction.blocks import Blocking
from relayc.pipelines.targets.cpu.strategies.contraction.cover import FAR_LIMIT, LIMIT, LOOP_LIMIT, MOST_LEFT, SLOT, Cover, Heights, heights
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import TILE, Point, rows_from
from relayc.pipelines.targets.cpu.strategies.contraction.nest import ContractionNest
from relayc.pipelines.targets.cpu.strategies.contraction.plan import OperandSource, Plan
from relayc.pipelines.targets.cpu.strategies.contraction.rows import copy_row, pack_rows, with_place, write_place
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.strategy.turns import is_repeated
from relayc.pipelines.tir.values import nest
from relayc.symbolic import Size, ceil_div, maximum, minimum


@dataclass(frozen=True)
class Task:
    """A block of rows times a block of panels.

    Attributes:
      first, end: range of full tiles of this block; is_last: whether the block also handles the remainder. Set only if the number of rows
        is symbolic.
    """

    panels: Index
    rows: Index
    point: Point
    first: Index = field(default_factory=Index)
    end: Index = field(default_factory=Index)
    is_last: ir.Value | None = None


class TaskNest(ContractionNest):
    """Tasks are blocks of rows times blocks of panels; subclasses define the work of a task.

    Attributes:
      way: the order in which the panels of a task are visited, if it alternates (see tir.strategy.turns).
      table: the start of each row of A, if it is not computed otherwise.
      is_covered: whether the number of rows depends on the call, so that tiles of several heights cover them.
      finishes_across: whether sums wait in memory for an epilogue across several rows.
    """

    way: ir.Value | None
    cover: Cover
    finishes_across: bool

    def __init__(self, plan: Plan, blocks: Blocking, most_rows: int | None = None) -> None:
        super().__init__(plan, plan.copied_bytes, most_rows)
        self.blocks = blocks
        self.table: ir.Value | None = None
        self.row_var = self.c.rows[-1].var if self.c.rows else None
        self.is_covered = not isinstance(plan.rows, int)

    @property
    def panel_blocks(self) -> Size:
        """Blocks of panels."""
        return ceil_div(self.plan.panels, self.blocks.panels)

    @cached_property
    def _row_blocks(self) -> tuple[Size, Size]:
        """Blocks of rows, and tiles of each. Where a call says how many rows there are, blocks are as even as they can be, and as many as
        threads have work with."""
        c, plan, most = self.c, self.plan, self.blocks.tiles
        blocks = ceil_div(plan.row_tiles, most)
        if not self.is_covered:
            return blocks, most
        others = c.batches * self.panel_blocks * prod(loop.extent for loop in c.rows[:-1])
        blocks = maximum(blocks, minimum(plan.row_tiles, ceil_div(plan.tasks, maximum(others, 1))))
        return blocks, ceil_div(plan.row_tiles, maximum(blocks, 1))

    def packings(self) -> dict[int, Packing]:
        rows = {self.c.a.node.position: self._rows_packing()} if self.plan.a is OperandSource.PARAMETER else {}
        return {**super().packings(), **rows}

    def _rows_packing(self) -> Packing:
        c = self.c
        assert self.row_var is not None
        loops = [(v, v.extent) for v in (*c.batch, self.row_var, *c.reduction)]
        loops[len(c.batch)] = (self.row_var, self.plan.rows)
        shape = (*(v.extent for v in c.batch), self.plan.row_tiles * self.tile.rows, *(v.extent for v in c.reduction))
        return Packing.reading("rows", c.a.node.shape, c.a.indices, loops, shape, batch=len(c.batch), rows=self.tile.rows)

    def _copy_rows(self, rows: ir.Value) -> None:
        """The copy of A to `rows`, as a whole before all tiles."""
        c, plan = self.c, self.plan
        batch = [MergedLoop([v], v.extent) for v in c.batch]
        if plan.copies_whole_rows:
            row = c.rows[-1]
            with self._tasks([*batch, row], work=plan.copied_rows) as point:
                copy_row(plan, self.evaluator, point, rows)
            return
        tile = Var.below(plan.row_tiles, name="tile")
        with self._tasks([*batch, MergedLoop([tile], plan.row_tiles)]) as point:
            number = point[tile]
            start = self._start(number * self.tile.rows, self.tile.rows)
            pack_rows(plan, self.evaluator, self._points(start, self.tile.rows, {**point, TILE: number}), rows)

    def _write_table(self, table: ir.Value) -> None:
        """Writes the start of each row of A before all tiles, because computing it in tiles would need divisions."""
        c = self.c
        *outer, last = c.row_loops
        var = Var(0, last.high, name=last.name)
        with self._tasks([MergedLoop([v], v.extent) for v in outer], work=self.plan.rows) as point, nest.serial([var], self.evaluator):
            write_place(c, self.evaluator, {**point, last: Index.of(var)}, table)

    def _start(self, slot: Index, rows: int) -> Index:
        """The first row of a tile, from the slot where it begins: the last tile starts early and is not shortened."""
        return self.cover.start(slot, rows) if self.is_covered else emit.at_most(slot, self.plan.rows - rows)

    def _points(self, start: Index, rows: int, point: Point) -> list[Point]:
        """Points of the rows of a tile."""
        points = self.cover.points(self.row_var, start, rows, point) if self.is_covered else rows_from(self.row_var, start, rows, point)
        return points if self.table is None else [with_place(self.c, self.evaluator, p, self.table) for p in points]

    def _most_slots(self) -> int:
        """Rows of the tiles of a task, at most."""
        return self.blocks.tiles * self.tile.rows + (self._heights.most_left if self.is_covered else 0)

    @property
    def _heights(self) -> Heights:
        """The tile heights, if the number of rows depends on the call."""
        return heights(self.tile, self.finishes_across or not stores_across(self.c), self._limit, self.plan.waits)

    @property
    def _limit(self) -> float:
        if is_repeated(self.plan.kernel):
            return LOOP_LIMIT
        return FAR_LIMIT if self.plan.is_far else LIMIT

    def _task(self, panels: Index, block: Index, point: Point) -> Task:
        if not self.is_covered:
            return Task(panels, block, point)
        first = self._at_most(block * self._row_blocks[1], self.cover.full)
        end = self._at_most(first + self._row_blocks[1], self.cover.full)
        is_last = emit.compare("eq", emit.materialize(block), emit.index_constant(self._row_blocks[0] - 1))
        return Task(panels, block, point, first, end, is_last)

    def _at_most(self, index: Index, limit: Index) -> Index:
        """The smaller of two numbers of tiles."""
        value = emit.arith("minsi", emit.materialize(index), emit.materialize(limit))
        return Index.of(Var(0, limit.bounds()[1], value, name="bound"))

    def _each_panel(self, task: Task, code: Callable[[Index], None]) -> None:
        """A loop over the panels of a task."""
        count = self.blocks.panels
        first = task.panels * count
        if count == 1:
            code(first)
            return
        whole = self.panel_blocks * count == self.plan.panels
        end = first + count if whole else emit.at_most(first + count, self.plan.panels)
        low, high = emit.materialize(first), emit.materialize(end)
        with nest.loop(low, high, self.evaluator, below=self.plan.panels, name="panel") as panel:
            code(panel if self.way is None else self._other_way(panel, low, high))

    def _other_way(self, panel: Index, low: ir.Value, high: ir.Value) -> Index:
        """The panel in the place of one of a task from `low` to `high`, where the kernel may go backwards."""
        assert self.way is not None
        last = emit.arith("subi", emit.arith("addi", low, high), emit.index_constant(1))
        mirrored = emit.arith("subi", last, emit.materialize(panel))
        backwards = emit.compare("ne", self.way, emit.index_constant(0))
        return Index.of(Var.below(self.plan.panels, emit.select(backwards, mirrored, emit.materialize(panel)), name="panel"))

    def _tiles(self, task: Task, point: Point, code: Callable[[Index, int, Point], None]) -> None:
        """Emits `code(first row, rows, point)` for the tiles of a task; the last tile of all starts early rather than being shorter."""
        if self.is_covered:
            self._covering_tiles(task, point, code)
            return
        count, most = self.blocks.tiles, self.plan.row_tiles
        first = task.rows * count
        end = first + count if most % count == 0 else emit.at_most(first + count, most)

        def one(number: Index) -> None:
            code(self._start(number * self.tile.rows, self.tile.rows), self.tile.rows, {**point, TILE: number})

        if count == 1:
            one(first)
            return
        with nest.loop(emit.materialize(first), emit.materialize(end), self.evaluator, below=most, name="t") as var:
            one(var)

    def _covering_tiles(self, task: Task, point: Point, code: Callable[[Index, int, Point], None]) -> None:
        """The tiles of a task if their number depends on the call: full tiles, and the remainder in the last task of a panel."""
        height = self.tile.rows
        first, end = emit.materialize(task.first), emit.materialize(task.end)
        with nest.loop(first, end, self.evaluator, below=task.end.bounds()[1] + 1, name="t") as number:
            slot = number * height
            code(self._start(slot, height), height, {**point, TILE: number, SLOT: slot})
        assert task.is_last is not None
        for low in self.cover.low:
            count = emit.select(task.is_last, low.count, emit.index_constant(0))
            with nest.loop(0, count, self.evaluator, below=MOST_LEFT, name="low") as var:
                slot = low.first + var * low.height
                code(self._start(slot, low.height), low.height, {**point, SLOT: slot})

    def _end(self, task: Task) -> ir.Value:
        """One after the last row of a task."""
        assert task.is_last is not None
        last = emit.index_constant(self.plan.rows)
        return emit.select(task.is_last, last, emit.arith("minsi", emit.materialize(task.end * self.tile.rows), last))

    def _tile_number(self, task: Task, point: Point) -> Index:
        """The number of a tile in its task."""
        return point[TILE] - task.rows * self.blocks.tiles
