"""The strategy for windows that slide beside contiguous channels: depthwise convolutions and poolings in NCHWc or channels last.

Lanes run along the channels, so every tap of every column is a vector as it lies in memory, whatever the stride. A tile is a run of output
columns of one row whose accumulators stay in registers over the taps; an input vector is loaded once for all columns of the tile that use
it in a row of taps, and the epilogue is evaluated on the accumulators. Weights come packed with the channels of a vector side by side.

Paddings of zeros cost nothing: rows of taps get bounds that depend on the output row, and at the ends of a row tiles leave out what lies
outside. Where the padding counts (a zero point of integers that is not 0), taps outside read a vector of it.
Where only a call knows how long rows are, the tiles at their ends ask it, those between do not; rows that are shorter than a few tiles have
smaller ones (see `SymbolicColumns`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from relayc.dialects.mlir import ir, scf
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.windows.byte_columns import ByteColumns, byte_columns
from relayc.pipelines.targets.cpu.strategies.windows.symbolic_columns import EmitTile, Ends, SymbolicColumns
from relayc.pipelines.targets.cpu.strategies.windows.taps import Bounds, add_rows_of_taps, at_tap, padding_vector, store_result
from relayc.pipelines.targets.cpu.strategies.windows.tasks import Point, run_bounds, run_length
from relayc.pipelines.targets.cpu.strategies.windows.weights import find_weights
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.te.read.window import number
from relayc.pipelines.te.read.window_channels import ChannelWindow, match
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, grains, part_sizes, powers_of_two
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.buffers import LINE
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import bounds, ceil_div, guess, proves

Columns = Callable[[EmitTile], None]
"""Covers an output row with tiles."""
Channels = Sequence[tuple[Index, Index]]
"""Vectors of channels: the number of each, and the index of its channels."""


@dataclass(frozen=True)
class ChannelParameters:
    """Tunable numbers.

    Attributes:
      lanes: elements of a vector.
      columns: output columns of a tile, at most.
      vectors: neighbouring vectors of channels of a tile, where there are several.
      grain: window elements in all below which the kernel stays on one thread.
      tasks: iterations that the parallel loop should have at least, so that threads get equal shares.
      unrolled: operations of a tile up to which rows of taps are unrolled where nothing pads them; beyond, they are a loop.
    """

    lanes: int
    columns: int = 8
    vectors: int = 1
    grain: int = 1 << 16
    tasks: int = 64
    unrolled: int = 256


MAX_ROW_OF_TAPS = 32
"""Windows with more columns are left to other schedules: a row of taps is unrolled."""


def schedule_window_channels(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a depthwise convolution or a pooling whose channels are the innermost dimension; None for any other kernel."""
    window = match(kernel)
    if window is None:
        return None
    bits = window.element_bits
    if bits is None:
        return None
    lanes = target.lanes(bits)
    while lanes > window.channels:
        lanes //= 2
    if lanes < 2 or window.output_offset().coefficient(window.channel) != 1 or window.columns.taps > MAX_ROW_OF_TAPS:
        return None
    accumulators = target.num_vector_registers // 2
    vectors = LINE // target.vector_bytes if window.channels > lanes else 1
    parameters = ChannelParameters(lanes, columns=accumulators // vectors, vectors=vectors)
    names = ("columns", "vectors", "unrolled", "grain", "tasks")
    return _ChannelKernel(kernel, window, tuning.replace(parameters, names, values=_values(window, target)), target).emit()


def _values(window: ChannelWindow, target: Target) -> dict[str, Callable[[ChannelParameters], list[int]]]:
    """The sensible numbers: sums of a tile in all registers but those of the loads."""
    registers, outputs = target.num_vector_registers - 4, window.columns.outputs

    def columns(p: ChannelParameters) -> list[int]:
        most = max(1, registers // p.vectors)
        return [n for n in (part_sizes(outputs) if isinstance(outputs, int) else powers_of_two(1, most)) if n <= most]

    return {
        "columns": columns,
        "vectors": lambda p: [n for n in powers_of_two(1, 8) if n * p.columns <= registers and n * p.lanes <= window.channels],
        "unrolled": lambda p: [64, 256, 1024],
        "grain": lambda p: grains(ChannelParameters.grain, prod(window.structured.extents)),
        "tasks": lambda p: powers_of_two(target.num_threads, 256),
    }


@dataclass(frozen=True)
class _Row:
    """An output row whose windows start at input row `top`.

    `taps` are the bounds of the rows of taps inside the input, and `whole` is whether all rows are inside; None if they always are.
    """

    point: Point
    index: Index
    top: Index
    taps: Bounds | None
    whole: ir.Value | None


@dataclass(frozen=True)
class _ColumnTile:
    """Columns [column, column + size) of an output row, and where a padding may touch them that only the running program sees."""

    row: _Row
    column: Index
    size: int
    ends: Ends


class _ChannelKernel:
    """Emits one kernel. A vector of channels is known by its number, and by the index of its channels."""

    evaluator: Evaluator
    output: ir.Value

    def __init__(self, kernel: Kernel, window: ChannelWindow, parameters: ChannelParameters, target: Target) -> None:
        self.kernel, self.w, self.parameters = kernel, window, parameters
        self.lanes, self.channels, self.padding_counts = parameters.lanes, window.channels, window.padding_counts
        self.vectors = ceil_div(self.channels, self.lanes)
        self.symbolic = None if window.columns.is_static else SymbolicColumns(window.columns, parameters.columns)
        found = {i: find_weights(kernel, window, i, self.lanes) for i in range(len(window.structured.inputs))}
        self.weights = {i: weights for i, weights in found.items() if weights is not None}
        self.bytes = None if self.symbolic is not None else byte_columns(window, self.weights, target, self.lanes)

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        packings = {weights.node.position: (self.bytes or weights).packing() for weights in self.weights.values()}
        with kernel_function(self.kernel, packings) as body:
            self.evaluator, self.output = body.evaluator, body.outputs[0]
            self._nest()
        return Scheduled(body.function, packings)

    # ---- outer loops

    def _nest(self) -> None:
        """A parallel loop over planes, runs of rows and, where these are few, runs of vectors; then rows, columns and vectors."""
        w, p = self.w, self.parameters
        # The fewest tasks that there may be: more runs than that takes cost little.
        tasks = prod(max(1, bounds(v.extent)[0]) for v in w.planes)
        height = run_length(max(1, guess(w.rows.outputs)), p.tasks // tasks)
        run = Var.below(ceil_div(w.rows.outputs, height), name="run")
        # Channels last, the vectors of a pixel are neighbours in memory: they are taken apart only to have tasks enough.
        count = run_length(max(1, self.vectors // p.vectors), p.tasks // (tasks * max(1, guess(run.extent)))) * p.vectors
        share = Var.below(ceil_div(self.vectors, count), name="share")
        live = [v for v in (*w.planes, share, run) if v.extent != 1]
        variables = [Var(0, v.high, name=v.name) for v in live]
        point = {v: Index.of(copy) for v, copy in zip(live, variables, strict=True)}
        with nest.tasks(variables, self.evaluator, prod(w.structured.extents), p.grain):
            vectors = run_bounds(point.get(share, Index()), count, self.vectors)
            rows = run_bounds(point.get(run, Index()), height, w.rows.outputs)
            if self.symbolic is None:
                self._rows(point, rows, vectors, self._columns)
            else:
                self.symbolic.choose(self.evaluator, lambda columns: self._rows(point, rows, vectors, columns))

    def _rows(self, point: Point, rows: Bounds, vectors: Bounds, columns: Columns) -> None:
        """The output rows of a task."""
        low, high = rows
        with nest.loop(low, high, self.evaluator, below=self.w.rows.outputs, name="y") as row:
            self._row(point, row, vectors, columns)

    def _row(self, point: Point, row: Index, vectors: Bounds, columns: Columns) -> None:
        """An output row: if padding may touch it, the test that all rows of taps are inside is emitted once."""
        axis = self.w.rows
        top = row * axis.stride - axis.low
        taps, whole = None, None
        if not top.is_within(0, axis.size - 1 - axis.reach):
            taps = emit.steps_inside(top * -1, top * -1 + axis.size, axis.dilation, axis.taps)
            whole = emit.compare("eq", emit.arith("subi", taps[1], taps[0]), emit.index_constant(axis.taps))
        found = _Row(point, row, top, taps, whole)
        columns(lambda column, size, ends: self._vectors(_ColumnTile(found, column, size, ends), vectors))

    def _columns(self, tile: EmitTile) -> None:
        """The tiles of an output row: equal ones in loops, those that a padding touches one by one."""
        for run in nest.tile_runs(number(self.w.columns.outputs), self.parameters.columns, self._inside):
            with nest.run_of_tiles(run, self.evaluator) as column:
                tile(column, run.size, Ends())

    def _vectors(self, tile: _ColumnTile, bounds: Bounds) -> None:
        """Full tiles of several vectors, then tiles of one vector for the remainder."""
        low, high = bounds
        if isinstance(low, int) and isinstance(high, int) and high - low <= self.parameters.vectors:
            self._tile(tile, [Index(v) for v in range(low, high)])
            return
        step = self.parameters.vectors
        left = self.vectors % step
        end = high if not left else self._whole(high)
        several = Var(0, self.vectors - step, step=step, name="vector")
        with emit.for_loop(low, end, step, several), self.evaluator.scope():
            self._tile(tile, [Index.of(several) + i for i in range(step)])
        if left:
            with nest.loop(end, high, self.evaluator, below=self.vectors, name="vector") as vector:
                self._tile(tile, [vector])

    def _whole(self, high: "ir.Value | int") -> "ir.Value | int":
        """The end of tiles of several vectors: `high` is a multiple of their number or the number of all vectors, as every known one is."""
        most = self.vectors // self.parameters.vectors * self.parameters.vectors
        return most if isinstance(high, int) else emit.smaller(high, most)

    def _first_channel(self, vector: Index) -> Index:
        """The last vector starts early rather than ending early: channels computed twice are the same both times."""
        return emit.at_most(vector * self.lanes, self.channels - self.lanes)

    # ---- tiles

    def _inside(self, start: int, size: int, count: int) -> tuple[int, int]:
        """The range of tiles, out of `count` tiles of `size` columns from `start`, whose taps are all inside the input."""
        axis = self.w.columns
        first = start * axis.stride - number(axis.low)
        return nest.tiles_inside(first, first + (size - 1) * axis.stride + axis.reach, size * axis.stride, number(axis.size), count)

    def _tile(self, tile: _ColumnTile, numbers: list[Index]) -> None:
        """Accumulators, taps, epilogue and store of a tile."""
        with self.evaluator.lanes(self.lanes) as lane:
            init = emit.broadcast(self.evaluator.at(self.w.structured.inits[0], []), self.lanes)
            channels = [(number, self._first_channel(number) + lane) for number in numbers]
            sums = self._taps(tile, channels, [init] * (tile.size * len(numbers)))
            for n, value in enumerate(sums):
                column, vector = divmod(n, len(numbers))
                at = {**tile.row.point, self.w.channel: channels[vector][1]}
                store_result(self.w, self.evaluator, self.output, at, tile.row.index, tile.column + column, value)

    def _taps(self, tile: _ColumnTile, channels: Channels, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds all taps that lie inside: unrolled where these are all of them and few, else in a loop over rows of taps.

        Where the length of rows is not known there are several kinds of tiles: a loop keeps the code of each small.
        """
        axis, row = self.w.rows, tile.row
        if self.bytes is not None:
            columns = partial(self._columns_of_bytes, self.bytes, tile, channels, sums)
            return self._inside_or_not(row, sums, partial(columns, is_at_edge=False), partial(columns, is_at_edge=True))
        if axis.tap is None and row.taps is None:
            return self._row_of_taps(tile, row.top, Index(), channels, sums)
        if self.symbolic is not None or axis.taps * self.w.columns.taps * len(sums) > self.parameters.unrolled:
            return self._rows_of_taps(tile, channels, sums)
        unrolled = partial(self._unrolled_taps, tile, channels, sums)
        return self._inside_or_not(row, sums, unrolled, partial(self._rows_of_taps, tile, channels, sums))

    def _inside_or_not(
        self, row: _Row, sums: list[ir.Value], inside: Callable[[], list[ir.Value]], otherwise: Callable[[], list[ir.Value]]
    ) -> list[ir.Value]:
        """Sums for the cases that all rows of taps are inside the input, and that some are not."""
        if row.whole is None:
            return inside()
        branch = scf.IfOp(row.whole, [v.type for v in sums], has_else=True)
        for block, add in ((branch.then_block, inside), (branch.else_block, otherwise)):
            with ir.InsertionPoint(block), self.evaluator.scope():
                scf.YieldOp(add())
        return list(branch.results)

    def _columns_of_bytes(
        self, bytes_: ByteColumns, tile: _ColumnTile, channels: Channels, sums: list[ir.Value], is_at_edge: bool
    ) -> list[ir.Value]:
        """Adds all taps by columns of bytes, in an output row at the edge of the input or not."""
        sums, padding = list(sums), padding_vector(self.w, self.lanes)
        rows = [tile.row.top + tap * self.w.rows.dilation for tap in range(self.w.rows.taps)]
        inside: list[ir.Value | None] = [None] * len(rows)
        if is_at_edge:
            last = self.w.rows.size - 1
            inside = [emit.below(row, self.w.rows.size) for row in rows]
            rows = [Index.of(Var(0, last, emit.smaller(emit.larger(emit.materialize(row), 0), last), name="row")) for row in rows]
        for at, is_inside, users in self._columns_read(tile):
            if not is_inside and not self.padding_counts:
                continue
            for vector, (number_, index) in enumerate(channels):
                point = {**tile.row.point, self.w.channel: index}

                def load(tap: int) -> ir.Value:
                    if not is_inside:  # noqa: B023 (called at once)
                        return padding
                    value, condition = self.evaluator.at(self.w.data, self.w.data_at(point, rows[tap], at)), inside[tap]  # noqa: B023
                    return value if condition is None else emit.select(condition, value, padding)

                fours = bytes_.fours(load)
                for i, tap in users:
                    n = i * len(channels) + vector
                    sums[n] = bytes_.add(self.evaluator, sums[n], fours, tap, number_)
        return sums

    def _unrolled_taps(self, tile: _ColumnTile, channels: Channels, sums: list[ir.Value]) -> list[ir.Value]:
        for tap in range(self.w.rows.taps):
            sums = self._row_of_taps(tile, tile.row.top + tap * self.w.rows.dilation, Index(tap), channels, sums)
        return sums

    def _rows_of_taps(self, tile: _ColumnTile, channels: Channels, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds all taps in loops over rows of taps."""

        def add(tap: Index, is_outside: bool, sums: list[ir.Value]) -> list[ir.Value]:
            source = None if is_outside else tile.row.top + tap * self.w.rows.dilation
            return self._row_of_taps(tile, source, tap, channels, sums)

        return add_rows_of_taps(self.w, self.evaluator, tile.row.taps, sums, add)

    def _row_of_taps(self, tile: _ColumnTile, source: Index | None, tap: Index, channels: Channels, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds a row of taps, at input row `source` (None: of padding), by columns of the input, so that each load serves all its users."""
        sums = list(sums)
        for at, is_inside, columns in self._columns_read(tile):
            inside = source is not None and is_inside
            if inside is False and not self.padding_counts:
                continue
            users = [
                (i * len(channels) + vector, Index(column_tap), channel)
                for i, column_tap in columns
                for vector, channel in enumerate(channels)
            ]

            def added(at: tuple[Index, Index] | None) -> list[ir.Value]:
                return [
                    self._add(tile.row.point, at, (tap, column_tap), channel, sums[n])
                    for n, column_tap, channel in users  # noqa: B023
                ]

            place = None if inside is False or source is None else (source, at)
            if isinstance(inside, bool):
                found = added(place)
            else:
                without = added(None) if self.padding_counts else [sums[n] for n, _, _ in users]
                found = nest.either(inside, self.evaluator, lambda: added(place), without)  # noqa: B023
            for (n, _, _), value in zip(users, found, strict=True):
                sums[n] = value
        return sums

    def _columns_read(self, tile: _ColumnTile) -> Iterator[tuple[Index, ir.Value | bool, list[tuple[int, int]]]]:
        """The input columns that a tile reads: of each the index, whether it is inside the input, and (output column, tap) of its users."""
        columns = self.w.columns
        for reach, users in columns.users(tile.size):
            at = tile.column * columns.stride + (reach - columns.low)
            yield at, self._is_inside(tile, at, reach), users

    def _is_inside(self, tile: _ColumnTile, at: Index, reach: int) -> ir.Value | bool:
        """Whether input column `at`, which a tile reads `reach` after its first one, is inside the input."""
        if self.symbolic is not None:
            return self.symbolic.inside(at, reach, tile.size, tile.ends)
        return not at.is_constant or proves(lambda: 0 <= at.const < self.w.columns.size)

    def _add(
        self, point: Point, at: tuple[Index, Index] | None, taps: tuple[Index, Index], channel: tuple[Index, Index], total: ir.Value
    ) -> ir.Value:
        """The body of the reduction at an input position (None: in the padding) and a tap."""
        w = self.w
        vector, index = channel
        loops = w.at_taps({**point, w.channel: index}, *taps)
        element = padding_vector(w, self.lanes) if at is None else self.evaluator.at(w.data, w.data_at(loops, *at))

        def operand(position: int, read: Callable[[], ir.Value]) -> ir.Value:
            return self.weights[position].load(self.evaluator, loops, vector) if position in self.weights else read()

        return at_tap(w, self.evaluator, loops, operand)(element, total)
