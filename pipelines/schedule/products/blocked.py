"""The loops around the tiles of a contraction without paddings: matrix products, and convolutions that are one.

The order of the loops is that of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication, 2008): chunks of a panel of B
stay in the first-level cache while the tiles of a block of rows go by, and the rows of the block in the second-level cache while the
panels of a group do. Where the reduction has several chunks, the sums of a task wait in scratch memory between them.
"""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from relayc.dialects.mlir import ir
from relayc.pipelines.schedule import emit
from relayc.pipelines.schedule.graph import Kernel
from relayc.pipelines.schedule.index import Index, Var
from relayc.pipelines.schedule.packing import along_loops
from relayc.pipelines.schedule.products.contraction import Contraction
from relayc.pipelines.schedule.products.microkernel import (
    TILE,
    Accumulators,
    Ahead,
    Columns,
    Point,
    column_vectors,
    rows_from,
    store_across,
    tile_offset,
)
from relayc.pipelines.schedule.products.nest import Nest
from relayc.pipelines.schedule.products.tile import CACHE_LINE, Blocks, Tile
from relayc.pipelines.schedule.strategy import Packing, flat, is_param
from relayc.pipelines.target import Target

Value = ir.Value

PAGE = 4096
"""Rows of A at a distance that is a multiple of this share a few sets of the cache, so A is packed."""
STREAM_BYTES = 2048
"""How far ahead a tile asks for what it reads once: what arrives while the memory answers."""
FEWEST_PANELS = 8
"""Panels of B below which a packed row of A would be read too few times to be worth packing at run time."""


def packs_rows(kernel: Kernel, contraction: Contraction, tile: Tile) -> bool:
    """Whether A is copied tile by tile before it is used: where its rows are computed, not contiguous, or badly placed in the cache."""
    c = contraction
    if len(c.rows) != 1 or c.rows[-1][1] < 2 or c.a.checks or c.a.node.element.width < 16:
        return False
    if c.row_loops:
        return True
    members, _ = c.rows[0]
    step, row = c.a.offset.coefficient(c.reduction[-1]), c.a.offset.coefficient(members[-1])
    if c.a.node.kind in ("arg", "pad") and step == 1 and row * c.a.node.element.width // 8 % PAGE and row:
        return False
    is_parameter = c.a.node.kind == "arg" and is_param(kernel, c.a.node.position)
    return is_parameter or -(-c.column_extent // tile.width) >= FEWEST_PANELS


class BlockedNest(Nest):
    """Tasks are blocks of rows times groups of panels."""

    def __init__(self, kernel: Kernel, contraction: Contraction, tile: Tile, blocks: Blocks, reads_in_place: bool, target: Target) -> None:
        super().__init__(kernel, contraction, tile)
        c = contraction
        self.blocks, self.reads_in_place = blocks, reads_in_place
        self.extent = c.rows[-1][1] if c.rows else 1
        self.row_var = c.rows[-1][0][-1] if c.rows else None
        self.tile_count = -(-self.extent // tile.rows)
        self.row_blocks = -(-self.tile_count // blocks.tiles)
        self.groups = -(-self.panels // blocks.panels)
        outer = c.reduction[0].high + 1
        self.chunks = -(-outer // blocks.chunk)
        self.chunk_size = blocks.chunk * (c.depth // outer) * tile.width
        self.prefetches = self.packs_param and self.packed_bytes > target.l2_bytes
        self.packs_rows = packs_rows(kernel, c, tile)
        if self.packs_rows:
            node = c.a.node
            if node.kind == "arg" and is_param(kernel, node.position):
                self.packings[node.position] = self._rows_packing()
            else:
                batches = prod(v.high + 1 for v in c.batch)
                self.workspace_bytes += batches * self.tile_count * tile.rows * c.depth * node.element.width // 8

    def _rows_packing(self) -> Packing:
        c = self.c
        assert self.row_var is not None
        variables = [*c.batch, self.row_var, *c.reduction]
        extents = [*(v.high + 1 for v in c.batch), self.extent, *(v.high + 1 for v in c.reduction)]
        shape = (*(v.high + 1 for v in c.batch), self.tile_count * self.tile.rows, *(v.high + 1 for v in c.reduction))
        indices, rows, count, batch = c.a.indices, self.tile.rows, self.tile_count, len(c.batch)
        steps = ",".join(f"{c.a.offset.coefficient(v)}*{e}" for v, e in zip(variables, extents, strict=True))

        def pack(array: np.ndarray, out: np.ndarray) -> None:
            source = along_loops(array, indices, variables, extents)
            for at in np.ndindex(*extents[:batch]):
                lines = source[at].reshape(extents[batch], -1)
                tiles = out[at].reshape(count, -1, rows)
                whole = len(lines) // rows
                tiles[:whole] = lines[: whole * rows].reshape(whole, rows, -1).transpose(0, 2, 1)
                tiles[-1] = lines[-rows:].T

        return Packing(f"rows{rows}:{c.a.offset.const}:{steps}", shape, pack)

    # ---- loops

    def body(self, arguments: Sequence[Value]) -> None:
        c = self.c
        if self.packs_rows:
            if self.workspace_bytes > self.padded_bytes:
                bits = (self.workspace_bytes - self.padded_bytes) * 8
                type_ = ir.MemRefType.get([bits // c.a.node.element.width], c.a.node.element)
                rows = emit.create("memref.view", [type_], [arguments[-1], emit.index_constant(self.padded_bytes)])
                self.pack_rows(rows)
            else:
                rows = flat(arguments[c.a.node.position])
            self.micro.packed_rows = rows
        group, block = Var(0, self.groups - 1, name="group"), Var(0, self.row_blocks - 1, name="block")
        loops = [([v], v.high + 1) for v in c.batch] + [([group], self.groups), ([block], self.row_blocks)]
        outer = [(members, extent) for members, extent in c.rows[:-1] if extent > 1]
        loops += outer

        def task(point: Point) -> None:
            code = self.summed_in_memory if self.chunks > 1 else self.summed_in_registers
            code(point[group], point[block], point)

        self.tasks(loops, task, self.allocate)

    def allocate(self) -> None:
        """Scratch memory of a thread: a chunk of a panel where B is packed here, and the sums of a task."""
        c = self.c
        if not self.packs_param and not self.reads_in_place:
            self.panel_scratch = emit.local_buffer(self.blocks.panels * self.chunk_size, c.b.node.element)
        if self.chunks > 1:
            self.sums_pitch = self.blocks.panels * self.tile.width
            self.sums = emit.local_buffer(self.blocks.tiles * self.tile.rows * self.sums_pitch, c.node.element)

    def group_panels(self, group: Index, code: Callable[[Index], None]) -> None:
        """A loop over the panels of a group."""
        count = self.blocks.panels
        first = group * count
        if count == 1:
            code(first)
            return
        last = self.groups * count == self.panels
        end = first + count if last else emit.at_most(first + count, self.panels)
        var = Var(0, self.panels - 1, name="panel")
        with emit.for_loop(emit.materialize(first), emit.materialize(end), 1, var), self.evaluator.scope():
            code(Index.of(var))

    def tiles(self, block: Index, point: Point, code: Callable[[Index, Point], None]) -> None:
        """Emits `code(first row, point)` for the tiles of a block; the last tile of all starts early rather than being shorter."""
        first = block * self.blocks.tiles
        end = first + self.blocks.tiles
        end = end if self.tile_count % self.blocks.tiles == 0 else emit.at_most(end, self.tile_count)

        def one(number: Index) -> None:
            code(emit.at_most(number * self.tile.rows, self.extent - self.tile.rows), {**point, TILE: number})

        if self.blocks.tiles == 1:
            one(first)
            return
        var = Var(0, self.tile_count - 1, name="t")
        with emit.for_loop(emit.materialize(first), emit.materialize(end), 1, var), self.evaluator.scope():
            one(Index.of(var))

    def rows(self, start: Index, point: Point, code: Callable[[list[Point], Index], None]) -> None:
        """Emits `code([point], row of the tile)` for each row of a tile by itself."""
        row = Var(0, self.tile.rows - 1, name="row")
        with emit.for_loop(0, self.tile.rows, 1, row), self.evaluator.scope():
            code(rows_from(self.row_var, start + row, 1, point), Index.of(row))

    # ---- the reduction in one go

    def summed_in_registers(self, group: Index, block: Index, point: Point) -> None:
        """Panel by panel all tiles of the block, each finished at once."""

        self.pack_group(group, point, Index(), {})

        def panel_code(panel: Index, columns: Columns, inner: Point) -> None:
            self.enter_panel(group, panel, inner, Index())

            def tile(start: Index, at: Point) -> None:
                self.micro.ahead = self.ahead(panel, inner, at[TILE] - block * self.blocks.tiles)
                self.micro.tile_code(self.row_var, start, self.tile.rows, columns, at)
                self.micro.ahead = None

            self.tiles(block, inner, tile)

        self.group_panels(group, lambda panel: self.panel_code(panel, point, panel_code))

    def pack_group(self, group: Index, point: Point, step: Index, steps: dict[Var, tuple[Value, Value]]) -> None:
        """Packs the panels of a group from reduction step `step` on, where that is not done at compile time: side by side, as what lies
        in memory one after the other belongs to the same step."""
        if self.packs_param or self.reads_in_place:
            return

        def one(inner: Point) -> None:
            def panel_code(panel: Index, columns: Columns, at: Point) -> None:
                start = self._scratch_start(group, panel, step) + self.c.step(inner) * self.tile.width
                self.pack_columns(columns, at, self.panel_scratch, start)
                if self.chunks > 1:
                    self.clear(columns, self.panel_scratch, self.c.b.node.element, start)

            self.group_panels(group, lambda panel: self.panel_code(panel, inner, panel_code))

        self.each_step(point, one, steps)

    def _scratch_start(self, group: Index, panel: Index, step: Index) -> Index:
        """Where step 0 of a panel would be in scratch memory that begins with `step`."""
        return (panel - group * self.blocks.panels) * self.chunk_size - step * self.tile.width

    def enter_panel(self, group: Index, panel: Index, point: Point, step: Index) -> None:
        """Makes a panel the one that tiles read, from reduction step `step` on."""
        if self.packs_param:
            self.micro.panel = self.packed, self.panel_start(panel, point)
        elif not self.reads_in_place:
            self.micro.panel = self.panel_scratch, self._scratch_start(group, panel, step)

    def ahead(self, panel: Index, point: Point, tile: Index) -> Ahead | None:
        """What a tile of the block asks the memory for while it adds up all steps of a panel.

        A panel is read from memory once while all tiles go by, so only the first one would wait for it: each tile asks for its share of
        the next panel. Where there is one tile, memory is all that it waits for, and it asks for what follows in its own panel.
        """
        if not self.prefetches:
            return None
        if self.blocks.tiles == 1:
            return Ahead(self.packed, self.panel_start(panel, point) + STREAM_BYTES // CACHE_LINE * self.line, self.tile.width, 1)
        return self._share(self.panel_start(panel + 1, point), tile, Index(), self.c.depth)

    def _share(self, start: Index, tile: Index, low: Index, steps: int) -> Ahead:
        """The share of a tile of the block in `steps` steps of a panel from element `start` on, asked for from reduction step `low` on."""
        share = -(-steps * self.tile.width // self.blocks.tiles)
        pitch = -(-share // steps)
        first = emit.at_most(start + tile * share, self.packed.type.shape[0] - steps * pitch)
        return Ahead(self.packed, first - low * pitch, pitch, 2)

    # ---- the reduction in chunks

    def summed_in_memory(self, group: Index, block: Index, point: Point) -> None:
        """Chunk by chunk the tiles of all panels of the group; then the epilogue, row by row."""

        def place(panel: Index, at: Point, row: Index) -> Index:
            number = (at[TILE] - block * self.blocks.tiles) * self.tile.rows + row
            return number * self.sums_pitch + (panel - group * self.blocks.panels) * self.tile.width

        def begin(panel: Index, columns: Columns, inner: Point) -> None:
            def tile(start: Index, at: Point) -> None:
                def row_code(points: list[Point], row: Index) -> None:
                    self.keep(self.micro.initial(points, columns), columns, place(panel, at, row))
                    self.clear(columns, self.sums, self.c.node.element, place(panel, at, row))

                self.rows(start, at, row_code)

            self.tiles(block, inner, tile)

        def finish(panel: Index, columns: Columns, inner: Point) -> None:
            def tile(start: Index, at: Point) -> None:
                if self.stores_across_rows:
                    self.finish(rows_from(self.row_var, start, self.tile.rows, at), columns, place(panel, at, Index()))
                else:
                    self.rows(start, at, lambda p, row: self.finish(p, columns, place(panel, at, row)))

            self.tiles(block, inner, tile)

        self.group_panels(group, lambda panel: self.panel_code(panel, point, begin))
        self.each_chunk(group, block, point, lambda panel, at: place(panel, at, Index()))
        self.group_panels(group, lambda panel: self.panel_code(panel, point, finish))

    def each_chunk(self, group: Index, block: Index, point: Point, place: Callable[[Index, Point], Index]) -> None:
        """Adds every chunk of the reduction to the sums, which are at `place(panel, point)`; panels count as full ones here."""
        var = self.c.reduction[0]
        extent, size = var.high + 1, self.blocks.chunk
        inner_steps = self.c.depth // extent
        whole = column_vectors(self.tile.width, self.tile.lanes)
        chunk = Var(0, (self.chunks - 1) * size, step=size, name="chunk")
        with emit.for_loop(0, extent, size, chunk), self.evaluator.scope():
            low = Index.of(chunk)
            end = low + size if extent % size == 0 else emit.at_most(low + size, extent)
            steps = {var: (emit.materialize(low), emit.materialize(end))}
            self.pack_group(group, point, low * inner_steps, steps)

            def panel_code(panel: Index) -> None:
                self.enter_panel(group, panel, point, low * inner_steps)
                ahead = self._next_chunk(group, panel, point, low * inner_steps, size * inner_steps) if self.prefetches else None

                def tile(start: Index, at: Point) -> None:
                    number = at[TILE] - block * self.blocks.tiles
                    self.micro.ahead = self._share(ahead, number, low * inner_steps, size * inner_steps) if ahead is not None else None
                    points = rows_from(self.row_var, start, self.tile.rows, at)
                    self.micro.steps = steps
                    sums = self.kept(self.tile.rows, whole, place(panel, at))
                    sums = self.micro.reduce(list(self.c.reduction), points, whole, sums, None)
                    self.micro.steps, self.micro.ahead = {}, None
                    self.keep(sums, whole, place(panel, at))

                self.tiles(block, point, tile)

            self.group_panels(group, panel_code)

    def _next_chunk(self, group: Index, panel: Index, point: Point, low: Index, steps: int) -> Index:
        """Where in the packed B the chunk begins that follows the one of a panel from step `low` on: that of the next panel, after the
        last panel of a group the next chunk of the first, and after the last chunk the next group."""
        first, width = group * self.blocks.panels, self.tile.width
        here = self.panel_start(first, point)

        def choose(condition: Value, then: Index, otherwise: Index) -> Index:
            operands = [condition, emit.materialize(then), emit.materialize(otherwise)]
            highest = max(then.bounds()[1], otherwise.bounds()[1])
            return Index.of(Var(0, highest, emit.create("arith.select", [ir.IndexType.get()], operands), name="ahead"))

        more = emit.below(low + steps, self.c.depth)
        found = choose(more, here + (low + steps) * width, here + self.blocks.panels * self.panel_size)
        if self.blocks.panels > 1:
            inside = emit.below(panel - first, self.blocks.panels - 1)
            found = choose(inside, self.panel_start(panel + 1, point) + low * width, found)
        return found

    def clear(self, columns: Columns, buffer: Value, element: ir.Type, at: Index) -> None:
        """Writes zeros after the columns of a narrower panel, where `at` is its first column in a buffer: tiles of a chunk compute with
        whole panels, and what memory happens to hold may be slow to compute with (denormal numbers)."""
        count = sum(lanes for _, lanes in columns)
        for start, lanes in column_vectors(self.tile.width - count, self.tile.lanes):
            with self.evaluator.lanes(lanes) as lane:
                value = emit.zero(emit.vector_of(lanes, element) if lanes > 1 else element)
                self.evaluator.store(value, buffer, at + count + start + (Index.of(lane) if lanes > 1 else Index()))

    @property
    def stores_across_rows(self) -> bool:
        """Whether neighbours in memory are neighbours along the rows, so that several rows are stored together."""
        c = self.c
        return self.row_var is not None and c.store_stride(c.column) != 1 and c.store_stride(self.row_var) == 1

    def finish(self, points: Sequence[Point], columns: Columns, place: Index) -> None:
        self.micro.finish(points, columns, self.kept(len(points), columns, place), self.row_var)

    def kept(self, rows: int, columns: Columns, place: Index) -> Accumulators:
        """The sums of a tile from scratch memory."""
        found = {}
        for j, (start, lanes) in enumerate(columns):
            with self.evaluator.lanes(lanes) as lane:
                for i in range(rows):
                    at = place + i * self.sums_pitch + start + (Index.of(lane) if lanes > 1 else Index())
                    found[i, j] = self.evaluator.load_from(self.sums, self.c.node.element, at)
        return found

    def keep(self, sums: Accumulators, columns: Columns, place: Index) -> None:
        """The sums of a tile to scratch memory."""
        for (i, j), value in sums.items():
            start, lanes = columns[j]
            with self.evaluator.lanes(lanes) as lane:
                at = place + i * self.sums_pitch + start + (Index.of(lane) if lanes > 1 else Index())
                self.evaluator.store(value, self.sums, at)

    # ---- packing A

    def pack_rows(self, out: Value) -> None:
        """Copies A tile by tile, in the order in which they read it; contiguous rows by transposing blocks in registers."""
        tile = Var(0, self.tile_count - 1, name="tile")
        loops = [([v], v.high + 1) for v in self.c.batch] + [([tile], self.tile_count)]

        def one(point: Point) -> None:
            start = emit.at_most(point[tile] * self.tile.rows, self.extent - self.tile.rows)
            points = rows_from(self.row_var, start, self.tile.rows, {**point, TILE: point[tile]})
            self._pack_tile([self._split_row(p) for p in points], out)

        self.tasks(loops, one)

    def _split_row(self, point: Point) -> Point:
        """A point whose row is split among the loops in which A walks its rows."""
        loops = self.c.row_loops
        if not loops:
            return point
        rest, found = point[loops[-1]], dict(point)
        for v in reversed(loops[1:]):
            found[v] = self.evaluator.divide(rest, v.high + 1, "remainder")
            rest = self.evaluator.divide(rest, v.high + 1, "quotient")
        return {**found, loops[0]: rest}

    def _pack_tile(self, points: list[Point], out: Value) -> None:
        c, lanes = self.c, self.tile.lanes
        *outer, last = c.reduction
        base = tile_offset(c, self.tile, points[0])
        whole = (last.high + 1) // lanes * lanes if c.a.offset.coefficient(last) == 1 else 0

        def read(point: Point, at: Index) -> Value:
            return self.micro.element(c.a, {**point, last: at})

        def steps(inner: list[Point]) -> None:
            if whole:
                var = Var(0, whole - lanes, step=lanes, name="k")
                with emit.for_loop(0, whole, lanes, var), self.evaluator.lanes(lanes) as lane:
                    rows = [read(p, Index.of(var) + Index.of(lane)) for p in inner]
                    place = base + c.step({**inner[0], last: Index.of(var)}) * len(inner)
                    store_across(rows, out, place, len(inner), lanes)
            if whole <= last.high:
                var = Var(whole, last.high, name="k")
                with emit.for_loop(whole, last.high + 1, 1, var), self.evaluator.scope():
                    for i, p in enumerate(inner):
                        place = base + c.step({**p, last: Index.of(var)}) * len(inner) + i
                        self.evaluator.store(read(p, Index.of(var)), out, place)

        def nest(rest: Sequence[Var], inner: list[Point]) -> None:
            if not rest:
                steps(inner)
                return
            var = Var(0, rest[0].high, name=rest[0].name)
            with emit.for_loop(0, var.high + 1, 1, var), self.evaluator.scope():
                nest(rest[1:], [{**p, rest[0]: Index.of(var)} for p in inner])

        nest(outer, points)
