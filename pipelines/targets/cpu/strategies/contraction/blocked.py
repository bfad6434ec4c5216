"""The loops around the tiles of a contraction without paddings: matrix products, and convolutions that are one.

The order of the loops is that of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication, 2008): chunks of a panel of B
stay in the first-level cache while the tiles of a block of rows go by, and the rows of the block in the second-level cache while the
panels of a block of panels do. Where the reduction has several chunks, the sums of a task wait in scratch memory between them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import gcd

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.contraction.across import AcrossRows, finishes_across, stores_across, tiles_of_blocks
from relayc.pipelines.targets.cpu.strategies.contraction.blocks import Blocking
from relayc.pipelines.targets.cpu.strategies.contraction.cover import SLOT, cover
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import (
    COLUMN,
    LEFT,
    TILE,
    Accumulators,
    Ahead,
    Columns,
    Microkernel,
    Panel,
    Point,
    Steps,
    Sums,
    Sweep,
    rows_from,
)
from relayc.pipelines.targets.cpu.strategies.contraction.panels import contiguous_steps
from relayc.pipelines.targets.cpu.strategies.contraction.plan import BUSY_ROWS, PLACE_BYTES, OperandSource, Plan, element_bytes
from relayc.pipelines.targets.cpu.strategies.contraction.rows import row_copy, rows_of_table
from relayc.pipelines.targets.cpu.strategies.contraction.tasks import Task, TaskNest
from relayc.pipelines.targets.cpu.strategies.contraction.tile import FEWEST_TILES
from relayc.pipelines.te.read.access import MergedLoop
from relayc.pipelines.tir.strategy.scheduled import KernelFunction
from relayc.pipelines.tir.strategy.turns import way
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import LINE, flat, local_buffer, prefetch
from relayc.symbolic import Size, ceil_div, guess, maximum

STREAM_BYTES = 4096
"""Prefetch distance of a tile for data that it reads once: covers the memory latency, and a page, where hardware prefetching ends."""
NEAR_STREAM_BYTES = 2048
"""The prefetch distance for data mostly in the second-level cache: into the first-level cache, and not too early."""
PART_BYTES = 4096
"""Minimum part of a panel per reading position, if it is read at several: a page, within which a core prefetches."""
SUMS_BYTES = 1 << 14
"""Maximum size of the sums of a panel that wait for the epilogue only: they stay in the first-level cache."""


class BlockedNest(TaskNest):
    """The accumulation of a task: its order, and the location of its sums.

    Buffers of a thread: `panel_scratch` holds a chunk of each panel of a block, if the kernel packs B; `sums` holds the sums of a task, if
    the reduction has several chunks.
    """

    micro: Microkernel
    packed: ir.Value | None
    panel_scratch: ir.Value
    sums: Sums
    across: AcrossRows

    def __init__(self, plan: Plan, blocks: Blocking, most_rows: int | None = None) -> None:
        c, tile = plan.contraction, plan.tile
        super().__init__(plan, blocks, most_rows)
        outer = c.reduction[0].extent
        self.chunks = ceil_div(outer, blocks.chunk)
        self.chunk_size = blocks.chunk * (c.depth // outer) * tile.width
        self.finishes_across = finishes_across(plan)
        self.finishes_tiles = not self.finishes_across and (not self.is_covered or stores_across(c) or c.root is c.node)
        shares_code = c.root is not c.node or (self._has_whole_panels and plan.panels * tile.width != c.column_extent)
        by_rows = self.is_covered and not stores_across(c) and shares_code and plan.may_keep_sums
        self.finishes_rows = self.chunks == 1 and (by_rows or self.finishes_across)
        self.keeps_sums = self.chunks != 1 or self.finishes_rows
        self.sums_pitch = tile.width if self.finishes_rows else blocks.panels * tile.width
        if self.finishes_rows and plan.b is not OperandSource.COPY:
            sums_bytes = tile.rows * tile.width * element_bytes(c.node)
            most = min(blocks.tiles, max(1, SUMS_BYTES // sums_bytes))
            self.blocks = replace(blocks, tiles=tiles_of_blocks(tile, most) if self.finishes_across else most)

    # ---- loops

    def _loops(self, body: KernelFunction, packed: ir.Value | None) -> None:
        c, plan = self.c, self.plan
        rows = None
        if self.is_covered:
            self.cover = cover(plan.rows, self._heights)
        if plan.a is OperandSource.COPY:
            rows = self._copies(body, c.a.node.element)
            self._copy_rows(rows)
        elif plan.a is OperandSource.PARAMETER:
            rows = flat(body.arguments[c.a.node.position])
        copy = None if rows is None else row_copy(plan, rows)
        if plan.a is OperandSource.TABLE:
            self.table = self._copies(body, ir.IntegerType.get_signless(8 * PLACE_BYTES))
            self._write_table(self.table)
            copy = rows_of_table(c, self.evaluator.memory(c.a.node))
        self.packed = packed
        self.way = way() if plan.turns else None
        self.micro = Microkernel(c, self.tile, self.evaluator, body.outputs[0], copy)
        panels, block = Var.below(self.panel_blocks, name="panels"), Var.below(self._row_blocks[0], name="rows")
        blocks = [MergedLoop([panels], self.panel_blocks), MergedLoop([block], self._row_blocks[0])]
        outer = [loop for loop in c.rows[:-1] if loop.extent != 1]
        if self.chunks != 1:
            code = self._summed_in_memory
        elif self.finishes_rows:
            code = self._finished_by_rows
        else:
            code = self._summed_in_registers
        with self._tasks([*(MergedLoop([v], v.extent) for v in c.batch), *blocks, *outer], self._allocate) as point:
            code(self._task(point[panels], point[block], point))

    def _allocate(self) -> None:
        """The buffers of a thread."""
        if self.plan.b is OperandSource.COPY:
            self.panel_scratch = local_buffer(int(self.blocks.panels * self.chunk_size), self.c.b.node.element)
        if self.keeps_sums:
            element = self.c.node.element
            self.sums = Sums(local_buffer(self._most_slots() * self.sums_pitch, element), self.sums_pitch, element)
        if self.finishes_across:
            self.across = AcrossRows(self.micro, self.sums, self.plan.has_costly_epilogue)

    # ---- B

    def _pack_panels(self, task: Task, point: Point, step: Index, steps: Steps) -> None:
        """Packs the panels of a task from reduction step `step` on, where the kernel packs B: side by side, as what lies in memory one
        after the other belongs to the same step."""
        if self.plan.b is not OperandSource.COPY:
            return

        def clear(columns: Columns, at: Index) -> None:
            if self.chunks != 1 or (self.finishes_rows and self._has_whole_panels):
                self._clear(columns, self.panel_scratch, self.c.b.node.element, at)

        def panel_code(panel: Index, columns: Columns, at: Point) -> None:
            start = self._scratch_start(task, panel, step)
            self._pack_panel(columns, at, self.panel_scratch, start, steps)
            if sum(lanes for _, lanes in columns) < self.tile.width:
                with self._each_step(at, steps) as p:
                    clear(columns, start + self.c.step(p) * self.tile.width)

        if contiguous_steps(self.c, steps):
            self._each_panel(task, lambda panel: self._panel_code(panel, point, panel_code))
            return
        with self._each_step(point, steps) as inner:

            def step_code(panel: Index, columns: Columns, at: Point) -> None:
                start = self._scratch_start(task, panel, step) + self.c.step(inner) * self.tile.width
                self._pack_columns(columns, at, self.panel_scratch, start)
                clear(columns, start)

            self._each_panel(task, lambda panel: self._panel_code(panel, inner, step_code))

    def _scratch_start(self, task: Task, panel: Index, step: Index) -> Index:
        """The position of step 0 of a panel in scratch memory that begins with `step`."""
        return (panel - task.panels * self.blocks.panels) * self.chunk_size - step * self.tile.width

    def _panel(self, task: Task, panel: Index, point: Point, step: Index) -> Panel | None:
        """The location from which tiles read a panel, from reduction step `step` on."""
        if self.packed is not None:
            return Panel(self.packed, self._panel_start(panel, point))
        return Panel(self.panel_scratch, self._scratch_start(task, panel, step)) if self.plan.b is OperandSource.COPY else None

    def _ahead(self, task: Task, panel: Index, rows: int, point: Point, at: Point) -> Ahead | None:
        """The prefetches of a tile with `rows` rows of a task while it accumulates all steps of a panel.

        A panel is read from memory once while all tiles use it, so only the first tile would wait for it: each tile prefetches its share of
        the next panel. A single tile only waits for memory, so it prefetches later parts of its own panel; so does a tile that covers the
        remainder, because it may be the only tile of a call.
        """
        if self.packed is None or not self.plan.prefetches or (self.plan.turns and rows < BUSY_ROWS):
            return None
        if self.blocks.tiles == 1 or TILE not in at or self.plan.turns:
            return self._stream(self.packed, self._panel_start(panel, point))
        following = self._panel_start(panel + 1, point)
        if self.is_covered:
            return self._share_of_call(self.packed, task, following, Index(), at)
        return self._share(self.packed, following, self._tile_number(task, at), Index(), self.c.depth)

    def _going_over(self, sweep: Sweep, ahead: Ahead | None) -> Sweep:
        """How a tile iterates over all steps of a panel while it prefetches.

        If the amount of prefetching depends on the call, it takes several instructions. If the innermost loop reads about a cache line of
        A, they precede each run of that loop: inside its steps LLVM would consider them too large to unroll the loop.
        """
        inner = self.c.reduction[-1].extent
        if ahead is None or ahead.share is None or not isinstance(inner, int) or inner > self.line:
            return replace(sweep, ahead=ahead)
        share, buffer, first, level = ahead.share, ahead.buffer, ahead.first, ahead.level

        def ask(point: Point) -> None:
            start = first + self.evaluator.opaque(emit.arith("muli", emit.materialize(self.c.step(point)), share))
            end = emit.arith("muli", share, emit.index_constant(inner))
            with nest.loop(0, end, self.evaluator, step=self.line, below=inner * self.tile.width, name="line") as line:
                prefetch(buffer, start + line, level)

        return replace(sweep, on_inner_loop=ask)

    def _stream(self, packed: ir.Value, start: Index) -> Ahead:
        """What a tile that goes through a panel from element `start` on reads a little later, and the next panel after that."""
        if self.plan.turns:
            return Ahead(packed, start + NEAR_STREAM_BYTES // LINE * self.line, self.tile.width, 3)
        parts = guess(self.plan.panel_size) * element_bytes(self.c.b.node) // PART_BYTES
        return Ahead(packed, start + STREAM_BYTES // LINE * self.line, self.tile.width, 2, parts=parts)

    def _ahead_of_chunk(self, task: Task, panel: Index, following: Index | None, low: Index, steps: Size, at: Point) -> Ahead | None:
        """The prefetches for a chunk of `steps` steps from step `low`, if the next chunk begins at `following`."""
        if self.packed is None or following is None:
            return None
        if not self.is_covered:
            return self._share(self.packed, following, self._tile_number(task, at), low, steps)
        if TILE not in at:
            return self._stream(self.packed, self._panel_start(panel, task.point))
        return self._share_of_call(self.packed, task, following, low, at)

    def _share(self, packed: ir.Value, start: Index, tile: Index, low: Index, steps: Size) -> Ahead:
        """The share of a tile of a task in `steps` steps of a panel from element `start` on, asked for from reduction step `low` on."""
        share = ceil_div(steps * self.tile.width, self.blocks.tiles)
        pitch = int(ceil_div(share, steps))
        first = emit.at_most(start + tile * share, packed.type.shape[0] - steps * pitch)
        return Ahead(packed, first - low * pitch, pitch, 2)

    def _share_of_call(self, packed: ir.Value, task: Task, start: Index, low: Index, at: Point) -> Ahead:
        """The prefetches if the number of tiles depends on the call. The share per step is then a value of the call, and its first two
        cache lines are prefetched: it has more only if there are few tiles."""
        tiles = emit.arith("subi", emit.materialize(task.end), emit.materialize(task.first))
        share = emit.arith("ceildivui", emit.index_constant(self.tile.width), tiles)
        pitch = min(self.tile.width, 2 * self.line)
        # Tile t has the steps from t on, as if all tiles were one after the other. The last ones are kept inside here: at every step that
        # takes as many instructions as all else that is not arithmetic.
        steps_of_call = self._chunk_of_call()
        assert steps_of_call is not None  # there are tiles of a call, and B is packed
        inner_steps = self.c.depth // self.c.reduction[0].extent
        of_tile = emit.arith("muli", emit.arith("muli", steps_of_call, emit.index_constant(inner_steps)), share)
        wanted = emit.arith("addi", emit.materialize(start), emit.arith("muli", emit.materialize(at[TILE] - task.first), of_tile))
        last = emit.arith("subi", emit.index_constant(packed.type.shape[0] - pitch), of_tile)
        behind = emit.arith("muli", emit.materialize(low), share)
        first = emit.arith("subi", emit.arith("minsi", wanted, last), behind)
        return Ahead(packed, self.evaluator.opaque(first), pitch, 2, share)

    def _next_chunk(self, task: Task, panel: Index, low: Index, steps: Index) -> Index:
        """Where in the packed B the chunk begins that follows the one of a panel from step `low` on: that of the next panel, after the
        last panel of a task the next chunk of the first, and after the last chunk the next task."""
        first, width = task.panels * self.blocks.panels, self.tile.width
        here = self._panel_start(first, task.point)

        def choose(condition: ir.Value, then: Index, otherwise: Index) -> Index:
            operands = [condition, emit.materialize(then), emit.materialize(otherwise)]
            highest = maximum(then.bounds()[1], otherwise.bounds()[1])
            return Index.of(Var(0, highest, emit.create("arith.select", [ir.IndexType.get()], operands), name="ahead"))

        more = emit.below(low + steps, self.c.depth)
        found = choose(more, here + (low + steps) * width, here + self.blocks.panels * self.plan.panel_size)
        if self.blocks.panels > 1:
            inside = emit.below(panel - first, self.blocks.panels - 1)
            found = choose(inside, self._panel_start(panel + 1, task.point) + low * width, found)
        return found

    def _clear(self, columns: Columns, buffer: ir.Value, element: ir.Type, at: Index) -> None:
        """Writes zeros after the columns of a narrower panel, where `at` is its first column in a buffer: tiles of a chunk compute with
        whole panels, and what memory happens to hold may be slow to compute with (denormal numbers)."""
        count = sum(lanes for _, lanes in columns)
        for start, lanes in vectors.pieces(self.tile.width - count, self.tile.lanes):
            with self.evaluator.along(lanes) as lane:
                value = emit.zero(emit.vector_of(lanes, element) if lanes > 1 else element)
                self.evaluator.store(value, buffer, at + count + start + lane)

    # ---- the reduction in one go

    def _summed_in_registers(self, task: Task) -> None:
        """Panel by panel all tiles of the task, each finished at once."""
        self._pack_panels(task, task.point, Index(), {})

        def panel_code(panel: Index, columns: Columns, inner: Point) -> None:
            sweep = Sweep(columns, self._panel(task, panel, inner, Index()))

            def tile(start: Index, rows: int, at: Point) -> None:
                points = self._points(start, rows, at)
                ahead = self._ahead(task, panel, rows, inner, at)
                self.micro.tile_code(self.row_var, points, self._going_over(sweep, ahead))

            self._tiles(task, inner, tile)

        self._each_panel(task, lambda panel: self._panel_code(panel, task.point, panel_code))

    def _finished_by_rows(self, task: Task) -> None:
        """Panel by panel all tiles of the task, whose sums wait in memory; then the epilogue of the panel, row by row: tiles of all
        heights, and panels of all widths, share their code."""

        def sums_of(panel: Index, columns: Columns, inner: Point) -> None:
            sweep = Sweep(columns, self._panel(task, panel, inner, Index()))

            def tile(start: Index, rows: int, at: Point) -> None:
                points = self._points(start, rows, at)
                ahead = self._ahead(task, panel, rows, inner, at)
                found = self.micro.reduce(points, self._going_over(sweep, ahead), self.micro.initial(points, columns))
                self.sums.store(found, columns, self._sums_place(task, panel, at), self.evaluator)

            self._tiles(task, inner, tile)

        finish = partial(self._finish_by_rows, task)

        def both(panel: Index, columns: Columns, inner: Point) -> None:
            sums_of(panel, columns, inner)
            finish(panel, columns, inner)

        def panel_code(panel: Index) -> None:
            if not self._has_whole_panels:
                self._panel_code(panel, task.point, both)
                return
            columns, inner = vectors.pieces(self.tile.width, self.tile.lanes), {**task.point, COLUMN: panel * self.tile.width}
            sums_of(panel, columns, inner)
            self._of_columns(panel, columns, inner, finish)

        self._pack_panels(task, task.point, Index(), {})
        self._each_panel(task, panel_code)

    @property
    def _has_whole_panels(self) -> bool:
        """Whether tiles may compute with full panels if the last panel has fewer columns, because there is memory after them."""
        is_known = isinstance(self.c.column_extent, int) and self.c.structured.inits[0].kind == "splat"
        return is_known and self.plan.b is not OperandSource.MEMORY

    # ---- the reduction in chunks

    def _summed_in_memory(self, task: Task) -> None:
        """Chunk by chunk the tiles of all panels of the task, whose sums wait in memory from one chunk to the next."""
        var = self.c.reduction[0]
        extent, size = var.extent, self.blocks.chunk
        inner_steps = self.c.depth // extent
        steps_of_call = self._chunk_of_call()
        chunk = Var(0, (self.chunks - 1) * size, step=size, name="chunk")
        if steps_of_call is not None:
            chunk = Var.below(extent, name="chunk")
        # A reduction without steps has a chunk, too, which finishes the sums.
        with emit.for_loop(0, maximum(extent, 1), size if steps_of_call is None else steps_of_call, chunk), self.evaluator.scope():
            low = Index.of(chunk)
            of_chunk = Index(size) if steps_of_call is None else Index.of(Var(1, extent, steps_of_call, name="steps"))
            end = emit.at_most(low + of_chunk, extent)
            bounds, columns = {var: (emit.materialize(low), emit.materialize(end))}, vectors.pieces(self.tile.width, self.tile.lanes)
            sweep = Sweep(columns, steps=bounds, multiple=gcd(size, extent) if isinstance(size, int) and isinstance(extent, int) else 1)
            is_begun = emit.compare("ne", bounds[var][0], emit.index_constant(0))
            is_done = emit.compare("eq", bounds[var][1], emit.index_constant(extent))
            self._pack_panels(task, task.point, low * inner_steps, sweep.steps)

            def panel_code(panel: Index, columns: Columns, inner: Point) -> None:
                of_panel = replace(sweep, columns=columns, panel=self._panel(task, panel, inner, low * inner_steps))
                steps, following = size * inner_steps, None
                if self.packed is not None and self.plan.prefetches:
                    following = self._next_chunk(task, panel, low * inner_steps, of_chunk * inner_steps)

                def tile(start: Index, rows: int, at: Point) -> None:
                    ahead = self._ahead_of_chunk(task, panel, following, low * inner_steps, steps, at)
                    points, place = self._points(start, rows, at), self._sums_place(task, panel, at)
                    new = self.micro.initial(points, columns)
                    kept = lambda: list(self.sums.load(rows, columns, place, self.evaluator).values())  # noqa: E731
                    sums = dict(zip(new, nest.either(is_begun, self.evaluator, kept, list(new.values())), strict=True))
                    found = self.micro.reduce(points, replace(of_panel, ahead=ahead), sums)
                    keep = lambda: self.sums.store(found, columns, place, self.evaluator)  # noqa: E731
                    if self.finishes_tiles:
                        finish = lambda: self._finish_tile(panel, points, columns, found, place)  # noqa: E731
                        nest.when(is_done, self.evaluator, finish, keep)
                    else:
                        keep()

                self._tiles(task, inner, tile)
                if not self.finishes_tiles:
                    finish = partial(self._finish_by_rows, task)
                    nest.when(is_done, self.evaluator, lambda: self._of_columns(panel, columns, inner, finish))

            if self._has_whole_panels:
                self._each_panel(task, lambda panel: panel_code(panel, columns, {**task.point, COLUMN: panel * self.tile.width}))
            else:
                self._each_panel(task, lambda panel: self._panel_code(panel, task.point, panel_code))

    def _of_columns(self, panel: Index, columns: Columns, point: Point, code: Callable[[Index, Columns, Point], None]) -> None:
        """Emits `code(panel, its vectors, point)` inside the code of a panel, which counts the last one as a whole one. Across several rows
        the code for a narrower one is the same."""
        if self._has_whole_panels and not self.finishes_across:
            self._panel_code(panel, point, code)
        else:
            code(panel, columns, point)

    def _finish_tile(self, panel: Index, points: list[Point], columns: Columns, sums: Accumulators, place: Index) -> None:
        """The epilogue of a tile; sums of columns that are not there stay in memory."""

        def code(panel: Index, some: Columns, at: Point) -> None:
            here = [{**p, **{key: at[key] for key in (COLUMN, LEFT) if key in at}} for p in points]
            if some == columns:
                self.micro.finish(here, columns, sums, self.row_var)
                return
            self.sums.store(sums, columns, place, self.evaluator)
            self._finish(here, some, place)

        self._of_columns(panel, columns, points[0], code)

    def _first_sum(self, task: Task, panel: Index) -> Index:
        """The start of the sums of a panel."""
        if self.finishes_rows:
            return Index()
        return (panel - task.panels * self.blocks.panels) * self.tile.width

    def _sums_place(self, task: Task, panel: Index, at: Point) -> Index:
        """The start of the sums of a tile."""
        height = self.tile.rows
        slot = at[SLOT] - task.first * height if self.is_covered else self._tile_number(task, at) * height
        return slot * self.sums_pitch + self._first_sum(task, panel)

    def _chunk_of_call(self) -> ir.Value | None:
        """Steps of a chunk if the number of rows depends on the call: few tiles iterate over the whole packed panel at once; several tiles
        use B in place."""
        if not self.is_covered or self.plan.b is OperandSource.COPY:
            return None
        height, size = self.tile.rows, emit.index_constant(self.blocks.chunk)
        whole = emit.index_constant(maximum(self.c.reduction[0].extent, 1))
        most, few, many = (height, size, whole) if self.packed is None else (FEWEST_TILES * height - 1, whole, size)
        return emit.select(emit.compare("ule", emit.materialize(self.cover.slots), emit.index_constant(most)), few, many)

    def _finish_by_rows(self, task: Task, panel: Index, columns: Columns, point: Point) -> None:
        """The epilogue of a panel of a task, row by row, or across several rows."""
        assert self.row_var is not None
        if self.finishes_across:
            low, place = task.first * self.tile.rows, self._first_sum(task, panel)
            end = self._end(task)
            self.across.finish(emit.materialize(low), end, lambda row: (self.cover.slot(row) - low) * self.sums_pitch + place, point)
            return
        first = task.first * self.tile.rows
        with nest.loop(emit.materialize(first), self._end(task), self.evaluator, below=self.plan.rows, name="row") as row:
            place = (self.cover.slot(row) - first) * self.sums_pitch + self._first_sum(task, panel)
            self._finish(rows_from(self.row_var, row, 1, point), columns, place)

    def _finish(self, points: list[Point], columns: Columns, place: Index) -> None:
        """The epilogue of a tile whose sums are in scratch memory."""
        self.micro.finish(points, columns, self.sums.load(len(points), columns, place, self.evaluator), self.row_var)
