"""The strategy for windows that slide over one channel at a time: depthwise convolutions and poolings.

A task is some output rows of one channel. Its input rows are first copied to a small buffer of the thread with their padding around them,
columns apart by their remainder modulo the stride, so that every tap is a contiguous vector at a constant distance and none is checked.
Tiles of a few rows by a few vectors of columns then stay in registers over the taps, and the epilogue is evaluated on them. Maps narrower
than a vector have whole rows as vectors, which overlap in a second buffer; the epilogue then runs over it as over one long row.

Products of bytes are computed in f32 on vectors of 32 bytes: their sums are whole numbers below 2^24, which f32 has, and a multiply-add of
floats is one instruction, where one of integers is an extension, a product and a sum.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.windows.column_plan import MAX_TAPS, ColumnParameters, ColumnPlan
from relayc.pipelines.targets.cpu.strategies.windows.masked_columns import schedule_masked_columns
from relayc.pipelines.targets.cpu.strategies.windows.taps import at_tap, other_inputs, padding_vector, store_result
from relayc.pipelines.targets.cpu.strategies.windows.tasks import Point
from relayc.pipelines.te.read.access import Analysis, collapse
from relayc.pipelines.te.read.graph import Kernel, Node
from relayc.pipelines.te.read.window import Window, number
from relayc.pipelines.te.read.window_columns import match
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, distinct, grains, power_of_two_from, powers_of_two
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import local_buffer
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import ceil_div

Places = Sequence[tuple[int, int]]
"""Vectors of sums: the output row of the tile, and the column of each."""

MAX_STRIDE = 4
MAX_BUFFER_BYTES = 128 << 10
"""Windows with larger strides or longer rows are left to other schedules."""
MAX_UNROLLED_VECTORS = 8
"""Vectors that are copied one after the other; more are a loop."""


def schedule_window_columns(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a depthwise convolution or a pooling with overlapping windows along contiguous columns; None for any other kernel."""
    window = match(kernel)
    if window is None:
        return None
    bits = window.element_bits
    if bits is None:
        return None
    lanes, offset = target.lanes(bits), window.output_offset()
    columns, rows = window.columns, window.rows
    if offset.coefficient(columns.output) != 1 or lanes < 4 or columns.stride > MAX_STRIDE or rows.taps * columns.taps > MAX_TAPS:
        return None
    if not columns.is_static or not rows.is_static:
        return schedule_masked_columns(kernel, window, lanes, target, tuning)
    if number(columns.outputs) < 4:
        return None
    parameters = ColumnParameters(lanes, accumulators=target.num_vector_registers // 2)
    names = ("accumulators", "buffer_bytes", "unrolled", "grain")
    plan = ColumnPlan(window, tuning.replace(parameters, names, values=_values(window, target)))
    if plan.buffer_bytes > MAX_BUFFER_BYTES:
        return None
    if plan.is_narrow and rows.output is not None and offset.coefficient(rows.output) != columns.outputs:
        return None
    return _ColumnKernel(kernel, plan).emit()


def _values(window: Window, target: Target) -> dict[str, Callable[[ColumnParameters], list[int]]]:
    """The sensible numbers: of those that make the same tiles or tasks one."""

    def tile(p: ColumnParameters, accumulators: int) -> tuple[int, int]:
        plan = ColumnPlan(window, replace(p, accumulators=accumulators))
        return plan.tile_vectors, plan.tile_rows

    def task(p: ColumnParameters, buffer_bytes: int) -> int | None:
        plan = ColumnPlan(window, replace(p, buffer_bytes=buffer_bytes))
        return plan.block_rows if plan.buffer_bytes <= MAX_BUFFER_BYTES else None

    def buffers(p: ColumnParameters) -> list[int]:
        candidates = [n for n in powers_of_two(1 << 11, MAX_BUFFER_BYTES) if task(p, n) is not None]
        return distinct(candidates, p.buffer_bytes, lambda n: task(p, n))

    return {
        "accumulators": lambda p: distinct(range(1, target.num_vector_registers - 3), p.accumulators, lambda n: tile(p, n)),
        "buffer_bytes": buffers,
        "unrolled": lambda p: [64, 256, 1024],
        "grain": lambda p: grains(ColumnParameters.grain, prod(window.structured.extents)),
    }


class _ColumnKernel:
    """Emits one sliding window kernel; `plane` and `sums` stand for the buffers of a thread."""

    evaluator: Evaluator
    output: ir.Value

    def __init__(self, kernel: Kernel, plan: ColumnPlan) -> None:
        self.kernel, self.plan, self.w = kernel, plan, plan.window
        self.parameters, self.lanes = plan.parameters, plan.lanes
        self.plane = Node("arg", (plan.buffer_size,), plan.element)
        self.sums = Node("arg", (plan.sums_size,), self.w.node.element)

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        with kernel_function(self.kernel) as body:
            self.evaluator, self.output = body.evaluator, body.outputs[0]
            block = Var.below(self.plan.blocks, name="block")
            loops = [*self.w.planes, block] if self.plan.blocks > 1 else self.w.planes
            variables = [Var(0, v.high, name=v.name) for v in loops]
            point = {v: Index.of(copy) for v, copy in zip(loops, variables, strict=True)}
            with nest.tasks(variables, self.evaluator, prod(self.w.structured.extents), self.parameters.grain, self._allocate):
                self._task(point, point.get(block, Index()))
        return Scheduled(body.function)

    def _allocate(self) -> None:
        for node in (self.plane, self.sums) if self.plan.is_narrow else (self.plane,):
            self.evaluator.bind(node, local_buffer(number(node.size), node.element))

    def _task(self, point: Point, block: Index) -> None:
        """Some output rows of one plane."""
        # The last block starts early rather than ending early: rows computed twice are the same both times.
        first = emit.at_most(block * self.plan.block_rows, self.plan.output_rows - self.plan.block_rows)
        self._copy(point, first)
        self._compute(point, first)
        if self.plan.is_narrow:
            self._epilogue(point, first)

    # ---- input rows with their padding

    def _copy(self, point: Point, first: Index) -> None:
        """Copies the rows that output rows from `first` on reach; what lies outside is the padding."""
        rows = self.w.rows
        top = first * rows.stride - rows.low  # row of the input that is the first of the buffer
        low, high = _clamped(top * -1, self.plan.input_rows), _clamped(top * -1 + number(rows.size), self.plan.input_rows)
        self._rows(0, low, lambda row: self._fill(row, 0, self.plan.row_pitch))
        self._rows(low, high, lambda row: self._copy_row(point, row, top + row))
        self._rows(high, self.plan.input_rows, lambda row: self._fill(row, 0, self.plan.row_pitch))

    def _rows(self, low: "int | ir.Value", high: "int | ir.Value", body: Callable[[Index], None]) -> None:
        if isinstance(low, int) and isinstance(high, int):
            if low >= high:
                return
            if low + 1 == high:
                with self.evaluator.scope():
                    body(Index(low))
                return
        with nest.loop(low, high, self.evaluator, below=None if isinstance(high, int) else self.plan.input_rows, name="row") as row:
            body(row)

    def _copy_row(self, point: Point, row: Index, source: Index) -> None:
        columns, before, size = self.w.columns, number(self.w.columns.low), number(self.w.columns.size)
        for phase in range(self.plan.phases):
            start = phase * self.plan.pitch
            # Positions of this phase that are inside the input.
            low = min(max(0, -((phase - before) // columns.stride)), self.plan.pitch)
            high = min(max(low, -((phase - before - size) // columns.stride)), self.plan.pitch)
            self._fill(row, start, start + low)

            def put(at: Index, lanes: int, first: int = start + low, begin: int = low, phase: int = phase) -> None:
                with self.evaluator.along(lanes) as lane:
                    at += lane
                    column = (at + begin) * columns.stride + (phase - before)
                    value = self._converted(self.w.position, self.evaluator.at(self.w.data, self.w.data_at(point, source, column)))
                    self.evaluator.store(value, self.evaluator.buffers[self.plane], row * self.plan.row_pitch + first + at)

            self._sweep(high - low, self.parameters.lanes, put)
            self._fill(row, start + high, start + self.plan.pitch)

    def _fill(self, row: Index, start: int, end: int) -> None:
        """Padding from column `start` to `end` of a buffer row; may write beyond `end` if the following columns are written later."""
        if start >= end or self.w.pad_value is None:
            return
        lanes = min(self.parameters.lanes, power_of_two_from(end - start))
        value = self._converted(self.w.position, padding_vector(self.w, lanes))

        def put(at: Index, _: int) -> None:
            with self.evaluator.along(lanes) as lane:
                self.evaluator.store(value, self.evaluator.buffers[self.plane], row * self.plan.row_pitch + start + at + lane)

        self._sweep(ceil_div(end - start, lanes) * lanes, lanes, put)

    def _converted(self, position: int, value: ir.Value) -> ir.Value:
        """Elements of an input as they are multiplied."""
        return emit.convert(value, self.plan.to_floats[position]) if self.plan.to_floats else value

    def _sweep(self, count: int, lanes: int, body: Callable[[Index, int], None]) -> None:
        """body(start, lanes) for vectors that cover `count` elements, the last of which may overlap the one before."""
        while lanes > count:
            lanes //= 2
        if count > MAX_UNROLLED_VECTORS * lanes:
            with nest.loop(0, count // lanes * lanes, self.evaluator, step=lanes, name="v") as at:
                body(at, lanes)
            starts = [count - lanes] if count % lanes else []
        else:
            starts = [*range(0, count - lanes, lanes), count - lanes] if count else []
        for start in starts:
            with self.evaluator.scope():
                body(Index(start), lanes)

    # ---- tiles

    def _compute(self, point: Point, first: Index) -> None:
        full, left = divmod(self.plan.block_rows, self.plan.tile_rows)
        if full > 1:
            with nest.loop(0, full * self.plan.tile_rows, self.evaluator, step=self.plan.tile_rows, name="y") as row:
                self._row_tiles(point, first, row, self.plan.tile_rows)
        elif full:
            self._row_tiles(point, first, Index(), self.plan.tile_rows)
        if left:
            self._row_tiles(point, first, Index(full * self.plan.tile_rows), left)

    def _row_tiles(self, point: Point, first: Index, row: Index, rows: int) -> None:
        """The tiles of `rows` output rows from buffer row `row` on, over all columns."""
        if self.plan.is_narrow:
            self._tile_code(point, first, row, rows, Index(), [0])
            return
        width, lanes = self.plan.tile_vectors * self.lanes, self.lanes
        full, left = divmod(self.plan.outputs, width)
        if full > 1:
            with nest.loop(0, full * width, self.evaluator, step=width, name="x") as column:
                self._tile_code(point, first, row, rows, column, list(range(0, width, lanes)))
        elif full:
            self._tile_code(point, first, row, rows, Index(), list(range(0, width, lanes)))
        if left:
            starts = [*range(full * width, self.plan.outputs - lanes, lanes), self.plan.outputs - lanes]
            self._tile_code(point, first, row, rows, Index(), starts)

    def _tile_code(self, point: Point, first: Index, row: Index, rows: int, column: Index, starts: list[int]) -> None:
        with self.evaluator.scope(), self.evaluator.lanes(self.lanes) as lane:
            if self.plan.to_floats:
                init = emit.zero(emit.vector_of(self.lanes, self.plane.element))
            else:
                init = emit.broadcast(self.evaluator.at(self.w.structured.inits[0], []), self.lanes)
            places = [(i, start) for i in range(rows) for start in starts]
            sums = self._taps(point, row, column, lane, places, [init] * len(places))
            if self.plan.to_floats:
                sums = [emit.convert(value, [("arith.fptosi", self.w.node.element)]) for value in sums]
            for (i, start), value in zip(places, sums, strict=True):
                if self.plan.is_narrow:
                    at = (row + i) * self.plan.outputs + Index.of(lane)
                    self.evaluator.store(value, self.evaluator.buffers[self.sums], at)
                else:
                    self._store(point, first + row + i, column + start + Index.of(lane), value)

    def _taps(self, point: Point, row: Index, column: Index, lane: Var, places: Places, sums: list[ir.Value]) -> list[ir.Value]:
        """The window at each place (output row of the tile, column), by rows of the input so that what is loaded serves all its users."""
        rows, columns = self.w.rows, self.w.columns
        body = len(self.w.structured.block.operations)
        if rows.taps * columns.taps * len(places) * body <= self.parameters.unrolled * 3 or rows.tap is None:
            for reach, users in rows.users(places[-1][0] + 1):
                taps = {i: Index(tap) for i, tap in users}
                uses = [(n, taps[i]) for n, (i, _) in enumerate(places) if i in taps]
                sums = self._row_of_taps(point, row * rows.stride + reach, column, lane, places, sums, uses)
            return sums
        with nest.carrying(0, rows.taps, self.evaluator, sums, name="k") as (var, loop):
            found = list(loop.inner_iter_args)
            for i in sorted({i for i, _ in places}):
                row_users = [(n, var) for n, (j, _) in enumerate(places) if i == j]
                at = (row + i) * rows.stride + var * rows.dilation
                found = self._row_of_taps(point, at, column, lane, places, found, row_users)
            emit.yield_values(found)
        return list(loop.results)

    def _row_of_taps(
        self,
        point: Point,
        buffer_row: Index,
        column: Index,
        lane: Var,
        places: Places,
        sums: list[ir.Value],
        users: Sequence[tuple[int, Index]],
    ) -> list[ir.Value]:
        """Adds one row of the buffer to the places that use it: `users` are (place, row of taps)."""
        columns, sums = self.w.columns, list(sums)
        for tap in range(columns.taps):
            quotient, phase = divmod(tap * columns.dilation, columns.stride)
            start = buffer_row * self.plan.row_pitch + (phase * self.plan.pitch + quotient) + column + Index.of(lane)
            for n, row_tap in users:
                element = self.evaluator.at(self.plane, [start + places[n][1]])
                loops = self.w.at_taps(point, row_tap, Index(tap))
                sums[n] = self._add(loops, element, sums[n])
        return sums

    def _add(self, loops: Mapping[Var, Index], element: ir.Value, total: ir.Value) -> ir.Value:
        """A sum with the element at a tap added."""
        operand = lambda position, read: self._in_all_lanes(position, read())  # noqa: E731
        if self.plan.to_floats is None:
            return at_tap(self.w, self.evaluator, loops, operand)(element, total)
        [weight] = other_inputs(self.w, self.evaluator, loops, operand).values()
        return emit.multiply_add(element, weight, total)

    def _in_all_lanes(self, position: int, value: ir.Value) -> ir.Value:
        """A scalar of an input, converted and broadcast to all lanes, shared by all its uses."""
        return self.evaluator.once(("factor", value), lambda: emit.broadcast(self._converted(position, value), self.lanes))

    # ---- results

    def _store(self, point: Point, row: Index, column: Index, value: ir.Value) -> None:
        store_result(self.w, self.evaluator, self.output, point, row, column, value)

    def _epilogue(self, point: Point, first: Index) -> None:
        """The epilogue over the buffer of sums: along all rows at once if every access allows it, otherwise row by row."""
        width = self.plan.outputs

        def piece(row: Index, column: Index, at: Index, lanes: int) -> None:
            with self.evaluator.along(lanes) as lane:
                self._store(point, row, column + lane, self.evaluator.at(self.sums, [at + lane]))

        if self._collapses():
            lanes = self.parameters.lanes
            self._sweep(self.plan.block_rows * width, lanes, lambda at, lanes: piece(Index(), first * width + at, at, lanes))
            return
        with nest.loop(0, self.plan.block_rows, self.evaluator, name="y") as var:
            self._sweep(width, self.lanes, lambda at, lanes: piece(first + var, at, var * width + at, lanes))

    def _collapses(self) -> bool:
        """Whether the epilogue may walk rows and columns as one loop."""
        w = self.w
        if w.rows.output is None or w.columns.output is None:
            return True
        if w.root.shape != w.node.shape:
            return False
        analysis = Analysis([w.node])
        analysis.visit(w.root, w.output_at({v: Index.of(v) for v in w.variables}))
        return len(collapse([w.rows.output, w.columns.output], analysis.found, [w.output_offset()])) == 1


def _clamped(index: Index, limit: int) -> "int | ir.Value":
    """An index expression kept between 0 and `limit`."""
    if index.is_constant:
        return min(max(number(index.const), 0), limit)
    return emit.smaller(emit.larger(emit.materialize(index), 0), limit)
