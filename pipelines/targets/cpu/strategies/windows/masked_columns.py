"""The strategy for windows along contiguous columns where only a call knows how many rows or columns there are.

Lanes run along the columns, and taps are read where the input lies: nothing is copied, as no buffer could be large enough for any row.
Vectors whose windows are all inside are read as they are, several side by side; those at the ends of a row under masks, which leave in the
lanes of a padding what it is made of. Rows shorter than a vector are one masked vector.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.windows.taps import Bounds, add_rows_of_taps, at_tap, padding_vector, store_result
from relayc.pipelines.targets.cpu.strategies.windows.tasks import Point, run_bounds, run_length
from relayc.pipelines.te.read.graph import Kernel, Node, memory_of
from relayc.pipelines.te.read.window import Window
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, grains
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Dim, bounds, ceil_div, guess

MAX_STRIDE = 2
"""Distances of columns that two loads and a shuffle bridge."""
MAX_ROW_OF_TAPS = 32
"""Windows with more columns are left to other schedules: a row of taps is unrolled."""
TASKS = 64
"""Iterations that the parallel loop should have."""
UNROLLED = 25
"""Taps up to which all of them are unrolled."""
GRAIN = 1 << 16
"""Window elements in all below which the kernel stays on one thread."""
VECTORS = 4
"""Vectors of columns side by side: enough for as many multiply-adds under way as the machine has."""


Load = Callable[[Index, int, int], ir.Value]
"""Loads the elements of a vector at a row of taps: the input row, the column of taps, and the number of the vector."""


def schedule_masked_columns(kernel: Kernel, window: Window, lanes: int, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a window along contiguous columns of any number; None if the target lacks the masks, or memory is not read in place."""
    memory, columns = memory_of(window.data), window.columns
    least = target.mask_bits
    narrow = any(t.width < least for t in (window.data.element, window.root.element, window.node.element))
    if memory is None or not least or narrow or columns.stride > MAX_STRIDE or columns.taps > MAX_ROW_OF_TAPS:
        return None
    if window.indices[window.column_dimension].coefficient(columns.output) != columns.stride:
        return None
    grain = tuning.number("grain", GRAIN, lambda: grains(GRAIN, prod(window.structured.extents)))
    return _MaskedColumnKernel(kernel, window, memory, lanes, grain).emit()


@dataclass(frozen=True)
class _Row:
    """An output row whose windows start at input row `top`.

    `taps` are the bounds of the rows of taps that lie inside, None for all of them.
    """

    point: Point
    index: Index
    top: Index
    taps: Bounds | None


class _MaskedColumnKernel:
    """Emits one kernel; `memory` is the argument that the window slides over."""

    evaluator: Evaluator
    output: ir.Value

    def __init__(self, kernel: Kernel, window: Window, memory: Node, lanes: int, grain: int) -> None:
        self.kernel, self.w, self.memory, self.lanes, self.grain = kernel, window, memory, lanes, grain
        columns = window.columns
        # Maximum elements of padding, and columns at the end whose windows touch it.
        self.before, self.behind = max(0, bounds(columns.low)[1]), max(0, bounds(columns.high)[1])
        self.touched_behind = ceil_div(self.behind, columns.stride)
        self.vectors = VECTORS if columns.taps <= VECTORS else VECTORS // 2

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        w = self.w
        with kernel_function(self.kernel) as body:
            self.evaluator, self.output = body.evaluator, body.outputs[0]
            planes = prod(max(1, bounds(v.extent)[0]) for v in w.planes)
            height = run_length(max(1, guess(w.rows.outputs)), TASKS // planes)
            run = Var.below(ceil_div(w.rows.outputs, height), name="run")
            live = [v for v in (*w.planes, run) if v.extent != 1]
            variables = [Var(0, v.high, name=v.name) for v in live]
            point = {v: Index.of(copy) for v, copy in zip(live, variables, strict=True)}
            with nest.tasks(variables, self.evaluator, prod(w.structured.extents), self.grain):
                self._rows_of_columns(point, run_bounds(point.get(run, Index()), height, w.rows.outputs))
        return Scheduled(body.function)

    def _rows_of_columns(self, point: Point, rows: Bounds) -> None:
        """Output rows: of each the vectors that are inside, several at a time, then one by one; then, for all rows, the vector at their
        start and those that are left, so that masks are made once."""
        outputs = self.w.columns.outputs
        first = 1 if self.before else 0
        start, end = emit.index_constant(first * self.lanes), emit.index_constant(outputs - self.touched_behind)
        segments = []
        for count in (self.vectors, 1):
            left = emit.larger(emit.arith("subi", end, start), 0)
            stop = emit.arith("addi", start, emit.arith("andi", left, emit.index_constant(-count * self.lanes)))
            segments.append((start, stop, count))
            start = stop

        def inside(row: _Row) -> None:
            for begin, stop, count in segments:
                step = count * self.lanes
                with nest.loop(begin, stop, self.evaluator, step=step, below=outputs, name="x") as column:
                    self._inside(row, column, count)

        self._each_row(point, rows, inside)
        left = emit.larger(emit.arith("subi", emit.index_constant(outputs), start), 0)
        count = emit.arith("ceildivui", left, emit.index_constant(self.lanes))
        ends = emit.arith("addi", count, emit.index_constant(first))
        with nest.loop(0, ends, self.evaluator, below=ceil_div(outputs, self.lanes) + 1, name="end") as number:
            column = emit.arith("addi", start, emit.materialize((number - first) * self.lanes))
            if first:
                at_start = emit.compare("eq", emit.materialize(number), emit.index_constant(0))
                column = emit.select(at_start, emit.index_constant(0), column)
            self._masked(point, rows, Index.of(Var.below(outputs, column, name="x")))

    def _each_row(self, point: Point, rows: Bounds, body: Callable[[_Row], None]) -> None:
        """Loops over output rows: rows without padding, then the rows above and below them."""
        axis = self.w.rows
        above, below = (ceil_div(max(0, bounds(padding)[1]), axis.stride) for padding in (axis.low, axis.high))
        if above == below == 0:
            self._loop(point, rows, False, body)
            return
        low, high = (emit.index_constant(b) if isinstance(b, (int, Dim)) else b for b in rows)
        begin = emit.arith("minsi", emit.larger(low, above), high)
        end = emit.arith("maxsi", emit.smaller(high, axis.outputs - below), begin)
        self._loop(point, (begin, end), False, body)
        with nest.loop(0, 2, self.evaluator, name="other") as other:
            is_above = emit.compare("eq", emit.materialize(other), emit.index_constant(0))
            around = emit.select(is_above, low, end), emit.select(is_above, begin, high)
            self._loop(point, around, True, body)

    def _loop(self, point: Point, rows: Bounds, checked: bool, body: Callable[[_Row], None]) -> None:
        axis, (low, high) = self.w.rows, rows
        with nest.loop(low, high, self.evaluator, below=axis.outputs, name="y") as row:
            top = row * axis.stride - axis.low
            taps = emit.steps_inside(top * -1, top * -1 + axis.size, axis.dilation, axis.taps) if checked else None
            body(_Row(point, row, top, taps))

    # ---- vectors

    def _inside(self, row: _Row, column: Index, count: int) -> None:
        """Vectors whose windows are inside."""
        w = self.w
        with self.evaluator.lanes(self.lanes) as lane:

            def load(source: Index, tap: int, vector: int) -> ir.Value:
                at = (column + vector * self.lanes + Index.of(lane)) * w.columns.stride + (tap * w.columns.dilation - w.columns.low)
                return self.evaluator.load(self.memory, self._offset(row.point, source, at))

            sums = self._sums(row, load, count)
            for vector, value in enumerate(sums):
                store_result(w, self.evaluator, self.output, row.point, row.index, column + vector * self.lanes + Index.of(lane), value)

    def _masked(self, point: Point, rows: Bounds, column: Index) -> None:
        """One vector of each row of which some lanes may be beyond the row, or their windows beyond the input."""
        w, stride = self.w, self.w.columns.stride
        padding, type_ = padding_vector(w, self.lanes), emit.vector_of(self.lanes, w.data.element)
        # A distance of 2 is bridged by two vectors, of which the second ends with the last element.
        starts = [column * stride + (tap * w.columns.dilation - w.columns.low) for tap in range(w.columns.taps)]
        parts = [[start, start + (self.lanes - 1)] if stride == 2 else [start] for start in starts]
        masks = [[self._within(at) for at in some] for some in parts]
        buffer = self.evaluator.buffers[self.memory]

        def load(source: Index, tap: int, _: int) -> ir.Value:
            found = [
                emit.create("vector.maskedload", [type_], [buffer, emit.materialize(self._offset(point, source, at)), mask, padding])
                for at, mask in zip(parts[tap], masks[tap], strict=True)
            ]
            if len(found) == 1:
                return found[0]
            first, second = found
            lanes = self.lanes
            return vectors.shuffle(first, second, [2 * i if 2 * i < lanes else lanes + 2 * i - (lanes - 1) for i in range(lanes)])

        left = emit.materialize(Index(w.columns.outputs) - column)
        with self.evaluator.lanes(self.lanes, emit.first_lanes(left, self.lanes)) as lane:

            def vector(row: _Row) -> None:
                value = self._sums(row, load, 1)[0]
                store_result(w, self.evaluator, self.output, point, row.index, column + Index.of(lane), value)

            self._each_row(point, rows, vector)

    def _within(self, start: Index) -> ir.Value:
        """Which lanes of a vector from input column `start` on are inside the input."""
        mask = emit.first_lanes(emit.materialize(start * -1 + self.w.columns.size), self.lanes)
        if not self.before:
            return mask
        outside = emit.first_lanes(emit.materialize(start * -1), self.lanes)
        return emit.arith("andi", mask, emit.arith("xori", outside, emit.number(1, outside.type)))

    def _offset(self, point: Mapping[Var, Index], source: Index, column: Index) -> Index:
        return linearize(self.w.data_at(point, source, column), self.w.data.shape)

    # ---- taps

    def _sums(self, row: _Row, load: Load, count: int) -> list[ir.Value]:
        """The windows of `count` vectors: unrolled where all rows of taps lie inside and are few. Those outside are left out, unless the
        padding counts.
        """
        axis, structured = self.w.rows, self.w.structured
        sums = [emit.broadcast(self.evaluator.at(structured.inits[0], []), self.lanes)] * count
        if row.taps is None and axis.taps * self.w.columns.taps <= UNROLLED:
            for tap in range(axis.taps):
                sums = self._row_of_taps(row, Index(tap), load, sums)
            return sums
        padding = padding_vector(self.w, self.lanes) if self.w.padding_counts else None

        def add(tap: Index, is_outside: bool, sums: list[ir.Value]) -> list[ir.Value]:
            return self._row_of_taps(row, tap, (lambda *_: padding) if is_outside else load, sums)

        return add_rows_of_taps(self.w, self.evaluator, row.taps, sums, add)

    def _row_of_taps(self, row: _Row, row_tap: Index, load: Load, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds a row of taps."""
        w = self.w
        source = row.top + row_tap * w.rows.dilation
        for tap in range(w.columns.taps):
            loops = w.at_taps(row.point, row_tap, Index(tap))
            add = at_tap(w, self.evaluator, loops, lambda _, read: emit.broadcast(read(), self.lanes))
            for vector, total in enumerate(sums):
                sums[vector] = add(load(source, tap, vector), total)
        return sums
