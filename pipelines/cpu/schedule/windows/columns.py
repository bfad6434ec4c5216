"""The strategy for windows that slide over one channel at a time: depthwise convolutions and poolings.

A task is some output rows of one channel. Its input rows are first copied to a small buffer of the thread with their padding around them,
columns apart by their remainder modulo the stride, so that every tap is a contiguous vector at a constant distance and none is checked.
Tiles of a few rows by a few vectors of columns then stay in registers over the taps, and the epilogue is evaluated on them. Maps narrower
than a vector have whole rows as vectors, which overlap in a second buffer; the epilogue then runs over it as over one long row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import func, ir
from relayc.pipelines.kernel.access import Analysis, collapse, split_exactly
from relayc.pipelines.kernel.graph import Kernel, Node
from relayc.pipelines.kernel.index import Index, Var, linearize, reshape
from relayc.pipelines.kernel.window_columns import ColumnWindow, match
from relayc.pipelines.schedule.strategy import Scheduled, begin_function, flat
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit
from relayc.pipelines.tir.evaluator import Evaluator

Value = ir.Value
Point = dict[Var, Index]


@dataclass(frozen=True)
class WindowParameters:
    """Tunable numbers.

    Attributes:
      lanes: elements of a vector.
      accumulators: vectors of a tile.
      buffer_bytes: input rows that a task copies, at most (more where one window needs more).
      unrolled: operations up to which the taps of a tile are unrolled in both directions; beyond, rows of taps are a loop.
      grain: window elements in all below which the kernel stays on one thread.
    """

    lanes: int
    accumulators: int = 8
    buffer_bytes: int = 16 << 10
    unrolled: int = 256
    grain: int = 1 << 16


MAX_TAPS = 256
MAX_STRIDE = 4
MAX_BUFFER_BYTES = 128 << 10
"""Windows with more taps, larger strides or longer rows are left to other schedules."""
MAX_UNROLLED_VECTORS = 8
"""Vectors that are copied one after the other; more are a loop."""


def schedule_window_columns(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a depthwise convolution or a pooling with overlapping windows along contiguous columns; None for any other kernel."""
    window = match(kernel)
    if window is None:
        return None
    elements = [window.node.element, window.data.element, window.root.element]
    if any(isinstance(e, ir.IndexType) or e.width < 8 for e in elements):
        return None
    lanes = target.vector_bytes * 8 // max(e.width for e in elements)
    offset = linearize(window.output_point({v: Index.of(v) for v in window.variables}), window.node.shape)
    columns, rows = window.columns, window.rows
    contiguous = offset.coefficient(columns.output) == 1
    if not contiguous or columns.outputs < 4 or lanes < 4 or columns.stride > MAX_STRIDE or rows.taps * columns.taps > MAX_TAPS:
        return None
    parameters = WindowParameters(lanes, accumulators=target.num_vector_registers // 2)
    names = ("accumulators", "buffer_bytes", "unrolled", "grain")
    emission = _Emission(kernel, window, tuning.replace(parameters, **{name: name for name in names}))
    if emission.buffer_bytes > MAX_BUFFER_BYTES:
        return None
    if emission.narrow and rows.output is not None and offset.coefficient(rows.output) != columns.outputs:
        return None
    return emission.emit()


class _Emission:
    """Emits one sliding window kernel."""

    def __init__(self, kernel: Kernel, window: ColumnWindow, parameters: WindowParameters) -> None:
        self.kernel, self.w, self.parameters = kernel, window, parameters
        rows, columns = window.rows, window.columns
        self.phases = min(columns.stride, columns.reach + 1)
        # Columns of each phase (positions modulo the stride) that the taps reach.
        self.pitch = columns.outputs + columns.reach // columns.stride
        self.row_pitch = self.phases * self.pitch
        self.narrow = columns.outputs < parameters.lanes
        self.lanes = _power_of_two_from(columns.outputs) if self.narrow else parameters.lanes
        self.tile_rows, self.tile_vectors = self._tile()
        self.block_rows = self._block()
        self.input_rows = (self.block_rows - 1) * rows.stride + rows.reach + 1
        self.blocks = -(-rows.outputs // self.block_rows)
        # Whole vectors are read and written, so a buffer goes on for one after its last element.
        self.buffer_size = self.input_rows * self.row_pitch + parameters.lanes
        self.buffer_bytes = self.buffer_size * window.data.element.width // 8
        self.plane = Node("arg", (self.buffer_size,), window.data.element)
        self.sums = Node("arg", (self.block_rows * columns.outputs + parameters.lanes,), window.node.element)

    def _tile(self) -> tuple[int, int]:
        """Rows and vectors of a tile: whole rows where they are short."""
        count, most = -(-self.w.columns.outputs // self.lanes), self.parameters.accumulators
        vectors = min(range(1, min(count, most) + 1), key=lambda v: (-(-count // v) * v, -v))
        return min(most // vectors, self.w.rows.outputs), vectors

    def _block(self) -> int:
        """Output rows of a task: as many as its buffer takes, in tasks of about the same size."""
        rows = self.w.rows
        width = self.row_pitch * self.w.data.element.width // 8
        most = max(1, (self.parameters.buffer_bytes // width - rows.reach - 1) // rows.stride + 1)
        if most >= rows.outputs:
            return rows.outputs
        size = -(-rows.outputs // -(-rows.outputs // most))
        return min(rows.outputs, -(-size // self.tile_rows) * self.tile_rows)

    def emit(self) -> Scheduled:
        function, arguments = begin_function(self.kernel, {})
        with ir.InsertionPoint(function.entry_block):
            count = len(self.kernel.args)
            self.evaluator = Evaluator({node: flat(b) for node, b in zip(self.kernel.args, arguments[:count], strict=True)})
            self.output = flat(arguments[count])
            loops = [v for v in self.w.planes]
            block = Var(0, self.blocks - 1, name="block")
            if self.blocks > 1:
                loops.append(block)
            variables = [Var(0, v.high, name=v.name) for v in loops]
            point = {v: Index.of(copy) for v, copy in zip(loops, variables, strict=True)}
            if prod(self.w.node.structured.extents) >= self.parameters.grain and loops:

                def inside() -> None:
                    self._allocate()
                    with self.evaluator.scope():
                        self._task(point, block)

                emit.parallel_loop([v.high + 1 for v in variables], variables, inside)
            else:
                self._allocate()
                self._nest(variables, lambda: self._task(point, block))
            func.ReturnOp([])
        return Scheduled(function)

    def _allocate(self) -> None:
        for node in (self.plane, self.sums) if self.narrow else (self.plane,):
            self.evaluator.bind(node, emit.local_buffer(node.size, node.element))

    def _nest(self, variables: Sequence[Var], body: Callable[[], None]) -> None:
        if not variables:
            body()
            return
        with emit.for_loop(0, variables[0].high + 1, 1, variables[0]), self.evaluator.scope():
            self._nest(variables[1:], body)

    def _task(self, point: Point, block: Var) -> None:
        """Some output rows of one plane."""
        first = Index()
        if self.blocks > 1:
            # The last block starts early rather than ending early: rows computed twice are the same both times.
            first = emit.at_most(point[block] * self.block_rows, self.w.rows.outputs - self.block_rows)
        self._copy(point, first)
        self._compute(point, first)
        if self.narrow:
            self._epilogue(point, first)

    # ---- input rows with their padding

    def _copy(self, point: Point, first: Index) -> None:
        """Copies the rows that output rows from `first` on reach; what lies outside is the padding."""
        rows = self.w.rows
        top = first * rows.stride - rows.low  # row of the input that is the first of the buffer
        low, high = _clamped(top * -1, self.input_rows), _clamped(top * -1 + rows.size, self.input_rows)
        self._rows(0, low, lambda row: self._fill(row, 0, self.row_pitch))
        self._rows(low, high, lambda row: self._copy_row(point, row, top + row))
        self._rows(high, self.input_rows, lambda row: self._fill(row, 0, self.row_pitch))

    def _rows(self, low: "int | Value", high: "int | Value", body: Callable[[Index], None]) -> None:
        if isinstance(low, int) and isinstance(high, int):
            if low >= high:
                return
            if low + 1 == high:
                with self.evaluator.scope():
                    body(Index(low))
                return
        var = Var(low if isinstance(low, int) else 0, (high if isinstance(high, int) else self.input_rows) - 1, name="row")
        with emit.for_loop(low, high, 1, var), self.evaluator.scope():
            body(Index.of(var))

    def _copy_row(self, point: Point, row: Index, source: Index) -> None:
        columns = self.w.columns
        for phase in range(self.phases):
            start = phase * self.pitch
            # Positions of this phase that are inside the input.
            low = min(max(0, -((phase - columns.low) // columns.stride)), self.pitch)
            high = min(max(low, -((phase - columns.low - columns.size) // columns.stride)), self.pitch)
            self._fill(row, start, start + low)

            def put(at: Index, lanes: int, first: int = start + low, begin: int = low, phase: int = phase) -> None:
                with self.evaluator.lanes(lanes) as lane:
                    at += Index.of(lane) if lanes > 1 else Index()
                    column = (at + begin) * columns.stride + (phase - columns.low)
                    value = self.evaluator.at(self.w.data, self._data_point(point, source, column))
                    self.evaluator.store(value, self.evaluator.buffers[self.plane], row * self.row_pitch + first + at)

            self._sweep(high - low, self.parameters.lanes, put)
            self._fill(row, start + high, start + self.pitch)

    def _data_point(self, point: Point, row: Index, column: Index) -> list[Index]:
        result = []
        for d, index in enumerate(self.w.indices):
            if d == len(self.w.indices) - 1:
                result.append(column)
            elif d == self.w.row_dimension:
                result.append(row)
            else:
                result.append(index.at(point))
        return result

    def _fill(self, row: Index, start: int, end: int) -> None:
        """Padding from column `start` to `end` of a buffer row; it may go beyond, where what follows is written later."""
        if start >= end or self.w.pad_value is None:
            return
        lanes = min(self.parameters.lanes, _power_of_two_from(end - start))
        value = emit.broadcast(emit.constant(self.w.pad_value.attributes["value"], self.w.data.element), lanes)

        def put(at: Index, _: int) -> None:
            with self.evaluator.lanes(lanes) as lane:
                along = Index.of(lane) if lanes > 1 else Index()
                self.evaluator.store(value, self.evaluator.buffers[self.plane], row * self.row_pitch + start + at + along)

        self._sweep(-(-(end - start) // lanes) * lanes, lanes, put)

    def _sweep(self, count: int, lanes: int, body: Callable[[Index, int], None]) -> None:
        """body(start, lanes) for vectors that cover `count` elements, the last of which may overlap the one before."""
        while lanes > count:
            lanes //= 2
        if count > MAX_UNROLLED_VECTORS * lanes:
            var = Var(0, (count // lanes - 1) * lanes, step=lanes, name="v")
            with emit.for_loop(0, count // lanes * lanes, lanes, var), self.evaluator.scope():
                body(Index.of(var), lanes)
            starts = [count - lanes] if count % lanes else []
        else:
            starts = [*range(0, count - lanes, lanes), count - lanes] if count else []
        for start in starts:
            with self.evaluator.scope():
                body(Index(start), lanes)

    # ---- tiles

    def _compute(self, point: Point, first: Index) -> None:
        full, left = divmod(self.block_rows, self.tile_rows)
        if full > 1:
            var = Var(0, (full - 1) * self.tile_rows, step=self.tile_rows, name="y")
            with emit.for_loop(0, full * self.tile_rows, self.tile_rows, var), self.evaluator.scope():
                self._row_tiles(point, first, Index.of(var), self.tile_rows)
        elif full:
            self._row_tiles(point, first, Index(), self.tile_rows)
        if left:
            self._row_tiles(point, first, Index(full * self.tile_rows), left)

    def _row_tiles(self, point: Point, first: Index, row: Index, rows: int) -> None:
        """The tiles of `rows` output rows from buffer row `row` on, over all columns."""
        if self.narrow:
            self._tile_code(point, first, row, rows, Index(), [0])
            return
        width, lanes = self.tile_vectors * self.lanes, self.lanes
        full, left = divmod(self.w.columns.outputs, width)
        if full > 1:
            var = Var(0, (full - 1) * width, step=width, name="x")
            with emit.for_loop(0, full * width, width, var), self.evaluator.scope():
                self._tile_code(point, first, row, rows, Index.of(var), list(range(0, width, lanes)))
        elif full:
            self._tile_code(point, first, row, rows, Index(), list(range(0, width, lanes)))
        if left:
            starts = [*range(full * width, self.w.columns.outputs - lanes, lanes), self.w.columns.outputs - lanes]
            self._tile_code(point, first, row, rows, Index(), starts)

    def _tile_code(self, point: Point, first: Index, row: Index, rows: int, column: Index, starts: list[int]) -> None:
        with self.evaluator.scope(), self.evaluator.lanes(self.lanes) as lane:
            init = emit.broadcast(self.evaluator.at(self.w.node.structured.inits[0], []), self.lanes)
            places = [(i, start) for i in range(rows) for start in starts]
            sums = self._taps(point, row, column, lane, places, [init] * len(places))
            for (i, start), value in zip(places, sums, strict=True):
                if self.narrow:
                    at = (row + i) * self.w.columns.outputs + Index.of(lane)
                    self.evaluator.store(value, self.evaluator.buffers[self.sums], at)
                else:
                    self._store(point, first + row + i, column + start + Index.of(lane), value)

    def _taps(self, point: Point, row: Index, column: Index, lane: Var, places: list, sums: list[Value]) -> list[Value]:
        """The window at each place (output row of the tile, column), by rows of the input so that what is loaded serves all its users."""
        rows, columns = self.w.rows, self.w.columns
        body = len(self.w.node.structured.block.operations)
        if rows.taps * columns.taps * len(places) * body <= self.parameters.unrolled * 3 or rows.tap is None:
            for reach in range((places[-1][0]) * rows.stride + rows.reach + 1):
                users = [
                    (n, (reach - i * rows.stride) // rows.dilation)
                    for n, (i, _) in enumerate(places)
                    if 0 <= reach - i * rows.stride <= rows.reach and (reach - i * rows.stride) % rows.dilation == 0
                ]
                sums = self._row_of_taps(point, row * rows.stride + reach, column, lane, places, sums, [(n, Index(k)) for n, k in users])
            return sums
        var = Var(0, rows.taps - 1, name="k")
        with emit.for_loop(0, rows.taps, 1, var, sums) as loop, self.evaluator.scope():
            found = list(loop.inner_iter_args)
            for i in sorted({i for i, _ in places}):
                users = [(n, Index.of(var)) for n, (j, _) in enumerate(places) if i == j]
                at = (row + i) * rows.stride + Index.of(var) * rows.dilation
                found = self._row_of_taps(point, at, column, lane, places, found, users)
            emit.yield_values(found)
        return list(loop.results)

    def _row_of_taps(self, point, buffer_row: Index, column: Index, lane: Var, places, sums: list[Value], users) -> list[Value]:
        """Adds one row of the buffer to the places that use it: `users` are (place, row of taps)."""
        columns, structured = self.w.columns, self.w.node.structured
        sums = list(sums)
        arguments = list(structured.block.arguments)
        for tap in range(columns.taps):
            quotient, phase = divmod(tap * columns.dilation, columns.stride)
            start = buffer_row * self.row_pitch + (phase * self.pitch + quotient) + column + Index.of(lane)
            for n, row_tap in users:
                at = {**point, columns.tap: Index(tap), **({self.w.rows.tap: row_tap} if self.w.rows.tap is not None else {})}
                loop_point = [at.get(v, Index()) for v in self.w.variables]
                values = {arguments[-1]: sums[n], arguments[self.w.position]: self.evaluator.at(self.plane, [start + places[n][1]])}
                for i, (source, amap) in enumerate(zip(structured.inputs, structured.maps, strict=True)):
                    if i != self.w.position and source.kind != "empty":
                        values[arguments[i]] = self._factor(source, self.evaluator.apply(amap, loop_point))
                sums[n] = self.evaluator.clone(structured, loop_point, values)[0]
        return sums

    def _factor(self, source: Node, indices: list[Index]) -> Value:
        """A scalar in all lanes, once for all that use it."""
        key = ("factor", id(source), *(i.key for i in indices))
        for scope in reversed(self.evaluator.scopes):
            if key in scope:
                return scope[key]
        value = emit.broadcast(self.evaluator.at(source, indices if source.shape else []), self.lanes)
        self.evaluator.scopes[-1][key] = value
        return value

    # ---- results

    def _store(self, point: Point, row: Index, column: Index, value: Value) -> None:
        """Evaluates the epilogue on the sums at an output position and stores the result."""
        at = {**point, self.w.columns.output: column}
        if self.w.rows.output is not None:
            at[self.w.rows.output] = row
        where = self.w.output_point(at)
        self.evaluator.remember(self.w.node, where, value)
        result = self.evaluator.at(self.w.root, reshape(where, self.w.node.shape, self.w.root.shape, split_exactly))
        self.evaluator.store(result, self.output, linearize(where, self.w.node.shape))

    def _epilogue(self, point: Point, first: Index) -> None:
        """The epilogue over the buffer of sums: along all rows at once where every access allows it, else row by row."""
        width = self.w.columns.outputs

        def piece(row: Index, column: Index, at: Index, lanes: int) -> None:
            with self.evaluator.lanes(lanes) as lane:
                along = Index.of(lane) if lanes > 1 else Index()
                self._store(point, row, column + along, self.evaluator.at(self.sums, [at + along]))

        if self._collapses():
            lanes = self.parameters.lanes
            self._sweep(self.block_rows * width, lanes, lambda at, lanes: piece(Index(), first * width + at, at, lanes))
            return
        var = Var(0, self.block_rows - 1, name="y")
        with emit.for_loop(0, self.block_rows, 1, var), self.evaluator.scope():
            self._sweep(width, self.lanes, lambda at, lanes: piece(first + var, at, Index.of(var) * width + at, lanes))

    def _collapses(self) -> bool:
        """Whether the epilogue may walk rows and columns as one loop."""
        w = self.w
        if w.rows.output is None:
            return True
        if w.root.shape != w.node.shape:
            return False
        point = w.output_point({v: Index.of(v) for v in w.variables})
        analysis = Analysis([w.node])
        analysis.visit(w.root, point)
        axes = [w.rows.output, w.columns.output]
        return len(collapse(axes, [v.high + 1 for v in axes], analysis.found, [linearize(point, w.node.shape)])) == 1


def _power_of_two_from(n: int) -> int:
    """The smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()


def _clamped(index: Index, limit: int) -> "int | Value":
    """An index expression kept between 0 and `limit`."""
    if index.is_constant:
        return min(max(index.const, 0), limit)
    value = emit.materialize(index)
    value = emit.create("arith.maxsi", [value.type], [value, emit.index_constant(0)])
    return emit.create("arith.minsi", [value.type], [value, emit.index_constant(limit)])
