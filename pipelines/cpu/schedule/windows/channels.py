"""The strategy for windows that slide beside contiguous channels: depthwise convolutions and poolings in NCHWc or channels last.

Lanes run along the channels, so every tap of every column is a vector as it lies in memory, whatever the stride. A tile is a run of output
columns of one row whose accumulators stay in registers over the taps; an input vector is loaded once for all columns of the tile that use
it in a row of taps, and the epilogue is evaluated on the accumulators. Weights come packed with the channels of a vector side by side.

Paddings cost nothing: rows of taps get bounds that depend on the output row, and at the ends of a row tiles leave out what lies outside.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from relayc.dialects.mlir import func, ir, scf
from relayc.pipelines.kernel.access import split_exactly
from relayc.pipelines.kernel.graph import Kernel, Node, NotStructured
from relayc.pipelines.kernel.index import Index, Var, affine_index, even_parts, linearize, reshape
from relayc.pipelines.kernel.window_channels import ChannelWindow, match
from relayc.pipelines.schedule.packing import Packing
from relayc.pipelines.schedule.strategy import Scheduled, begin_function, flat, is_param
from relayc.pipelines.schedule.tuning import Tuning
from relayc.pipelines.target import Target
from relayc.pipelines.tir import emit
from relayc.pipelines.tir.evaluator import Evaluator

Value = ir.Value
Point = dict[Var, Index]
Bounds = tuple["Value | int", "Value | int"]
"""First and one-past-last step of a loop."""


@dataclass(frozen=True)
class ChannelWindowParameters:
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


CACHE_LINE = 64
"""Bytes; a tile takes whole lines of a pixel's channels."""
MAX_ROW_OF_TAPS = 32
"""Windows with more columns are left to other schedules: a row of taps is unrolled."""


def schedule_window_channels(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a depthwise convolution or a pooling whose channels are the innermost dimension; None for any other kernel."""
    window = match(kernel)
    if window is None:
        return None
    elements = [window.node.element, window.data.element, window.root.element]
    if any(isinstance(e, ir.IndexType) or e.width < 8 for e in elements):
        return None
    lanes = target.vector_bytes * 8 // max(e.width for e in elements)
    while lanes > window.channel.high + 1:
        lanes //= 2
    offset = linearize(window.output_point({v: Index.of(v) for v in window.variables}), window.node.shape)
    if lanes < 2 or offset.coefficient(window.channel) != 1 or window.columns.taps > MAX_ROW_OF_TAPS:
        return None
    accumulators = target.num_vector_registers // 2
    vectors = max(1, CACHE_LINE // target.vector_bytes) if window.channel.high + 1 > lanes else 1
    parameters = ChannelWindowParameters(lanes, columns=accumulators // vectors, vectors=vectors)
    names = ("columns", "vectors", "unrolled", "grain", "tasks")
    return _Emission(kernel, window, tuning.replace(parameters, **{name: name for name in names})).emit()


@dataclass
class _Weights:
    """A parameter that the kernel takes packed, as [planes..., vector of channels, taps..., lanes].

    Attributes:
      node: the argument.
      indices: its indices as functions of the loops.
      planes, taps: the loops that it depends on beside the channel.
    """

    node: Node
    indices: list[Index]
    planes: list[Var]
    taps: list[Var]


@dataclass(frozen=True)
class _Row:
    """An output row whose windows start at input row `top`.

    `taps` are the bounds of the rows of taps that lie inside, and `whole` is whether that is all of them; None where it always is.
    """

    point: Point
    index: Index
    top: Index
    taps: Bounds | None
    whole: Value | None


@dataclass(frozen=True)
class _Tile:
    """Columns [column, column + size) of an output row."""

    row: _Row
    column: Index
    size: int


class _Emission:
    """Emits one kernel."""

    def __init__(self, kernel: Kernel, window: ChannelWindow, parameters: ChannelWindowParameters) -> None:
        self.kernel, self.w, self.parameters = kernel, window, parameters
        self.lanes, self.channels = parameters.lanes, window.channel.high + 1
        self.vectors = -(-self.channels // self.lanes)
        self.weights = {i: found for i in range(len(window.structured.inputs)) if (found := self._weights(i)) is not None}

    def emit(self) -> Scheduled:
        packings = {weights.node.position: self._packing(weights) for weights in self.weights.values()}
        function, arguments = begin_function(self.kernel, packings)
        with ir.InsertionPoint(function.entry_block):
            count = len(self.kernel.args)
            self.evaluator = Evaluator({node: flat(b) for node, b in zip(self.kernel.args, arguments[:count], strict=True)})
            self.output = flat(arguments[count])
            self._nest()
            func.ReturnOp([])
        return Scheduled(function, packings)

    # ---- weights

    def _weights(self, position: int) -> _Weights | None:
        """An input that is a parameter with other values for other channels; None where it is read as it is."""
        w = self.w
        source, amap = w.structured.inputs[position], w.structured.maps[position]
        if position == w.position or source.kind not in ("arg", "view"):
            return None
        try:
            indices = [affine_index(e, [Index() if v.high == 0 else Index.of(v) for v in w.variables], split_exactly) for e in amap.results]
            while source.kind == "view":
                indices, source = reshape(indices, source.shape, source.inputs[0].shape, split_exactly), source.inputs[0]
        except NotStructured:
            return None
        variables = {v for index in indices for v in index.terms}
        if source.kind != "arg" or not is_param(self.kernel, source.position) or w.channel not in variables:
            return None
        planes = [v for v in w.planes if v in variables]
        taps = [v for v in (w.rows.tap, w.columns.tap) if v in variables]
        return _Weights(source, indices, planes, taps) if variables == {*planes, *taps, w.channel} else None  # type: ignore[arg-type]

    def _packing(self, weights: _Weights) -> Packing:
        order = [*weights.planes, self.w.channel, *weights.taps]
        loops = [(v, v.high + 1) for v in order]
        planes = len(weights.planes)
        extents = [e for _, e in loops]
        shape = (*extents[:planes], self.vectors, *extents[planes + 1 :], self.lanes)
        return Packing.reading("channels", weights.node.shape, weights.indices, loops, shape, batch=planes)

    def _weight(self, weights: _Weights, at: Point, vector: Index, lane: Var) -> Value:
        """The weights of a vector of channels at one tap."""
        offset = Index()
        for v in weights.planes:
            offset = offset * (v.high + 1) + at.get(v, Index())
        offset = offset * self.vectors + vector
        for v in weights.taps:
            offset = offset * (v.high + 1) + at[v]
        return self.evaluator.load(weights.node, offset * self.lanes + lane)

    # ---- outer loops

    def _nest(self) -> None:
        """A parallel loop over planes, runs of rows and, where these are few, runs of vectors; then rows, columns and vectors."""
        w, p = self.w, self.parameters
        tasks = prod(v.high + 1 for v in w.planes)
        height = _run(w.rows.outputs, p.tasks // tasks)
        run = Var(0, -(-w.rows.outputs // height) - 1, name="run")
        # Channels last, the vectors of a pixel are neighbours in memory: they are taken apart only to have tasks enough.
        count = (
            _run(self.vectors // p.vectors, p.tasks // (tasks * (run.high + 1))) * p.vectors if self.vectors > p.vectors else self.vectors
        )
        share = Var(0, -(-self.vectors // count) - 1, name="share")
        live = [v for v in (*w.planes, share, run) if v.high > 0]
        variables = [Var(0, v.high, name=v.name) for v in live]
        point = {v: Index.of(copy) for v, copy in zip(live, variables, strict=True)}

        def task() -> None:
            vectors = _bounds(point.get(share, Index()), count, self.vectors)
            with _loop(_bounds(point.get(run, Index()), height, w.rows.outputs), w.rows.outputs, "y") as row, self.evaluator.scope():
                self._row(point, row, vectors)

        if prod(w.structured.extents) >= p.grain and live:

            def inside() -> None:
                with self.evaluator.scope():
                    task()

            emit.parallel_loop([v.high + 1 for v in variables], variables, inside)
        else:
            self._serial(variables, task)

    def _serial(self, variables: Sequence[Var], body: Callable[[], None]) -> None:
        if not variables:
            body()
            return
        with emit.for_loop(0, variables[0].high + 1, 1, variables[0]), self.evaluator.scope():
            self._serial(variables[1:], body)

    def _row(self, point: Point, row: Index, vectors: Bounds) -> None:
        """An output row: where a padding may touch it, whether all rows of taps lie inside is found once."""
        axis = self.w.rows
        top = row * axis.stride - axis.low
        low, high = top.bounds()
        taps, whole = None, None
        if low < 0 or high + axis.reach >= axis.size:
            taps = self._taps_inside(top)
            count = emit.create("arith.subi", [ir.IndexType.get()], [taps[1], taps[0]])
            equal = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
            whole = emit.create("arith.cmpi", [ir.IntegerType.get_signless(1)], [count, emit.index_constant(axis.taps)], equal)
        self._columns(_Row(point, row, top, taps, whole), vectors)

    def _columns(self, row: _Row, vectors: Bounds) -> None:
        """The tiles of an output row: equal ones in loops, those that a padding touches one by one."""
        for start, size, count in self._tiles():
            if count > 1:
                column = Var(start, start + (count - 1) * size, step=size if start % size == 0 else 1, name="x")
                with emit.for_loop(start, start + count * size, size, column), self.evaluator.scope():
                    self._vectors(_Tile(row, Index.of(column), size), vectors)
            else:
                with self.evaluator.scope():
                    self._vectors(_Tile(row, Index(start), size), vectors)

    def _vectors(self, tile: _Tile, bounds: Bounds) -> None:
        """A tile for each few vectors, then for each that is left."""
        low, high = bounds
        if isinstance(low, int) and isinstance(high, int) and high - low <= self.parameters.vectors:
            self._tile(tile, [Index(v) for v in range(low, high)])
            return
        step = self.parameters.vectors
        left = self.vectors % step
        vector = Var(0, self.vectors - step, step=step, name="vector")
        end = high if not left else self._whole(high)
        with emit.for_loop(low, end, step, vector), self.evaluator.scope():
            self._tile(tile, [Index.of(vector) + i for i in range(step)])
        if left:
            vector = Var(0, self.vectors - 1, name="vector")
            with emit.for_loop(end, high, 1, vector), self.evaluator.scope():
                self._tile(tile, [Index.of(vector)])

    def _whole(self, high: "Value | int") -> "Value | int":
        """The end of whole groups of vectors: `high` is either a multiple of their size or the number of vectors."""
        most = self.vectors // self.parameters.vectors * self.parameters.vectors
        if isinstance(high, int):
            return min(high, most)
        return emit.create("arith.minsi", [high.type], [high, emit.index_constant(most)])

    def _first_channel(self, vector: Index) -> Index:
        """The last vector starts early rather than ending early: channels computed twice are the same both times."""
        return emit.at_most(vector * self.lanes, self.channels - self.lanes)

    # ---- tiles

    def _tiles(self) -> Iterator[tuple[int, int, int]]:
        """(first column, columns, count) of runs of tiles of nearly equal size; a run of several has nothing of the padding."""
        sizes = even_parts(self.w.columns.outputs, self.parameters.columns)
        number = len(sizes)
        starts = [sum(sizes[:i]) for i in range(number)]
        i = 0
        while i < number:
            count = 1
            while self._is_inside(starts[i], sizes[i]) and i + count < number and sizes[i + count] == sizes[i]:
                if not self._is_inside(starts[i + count], sizes[i]):
                    break
                count += 1
            yield starts[i], sizes[i], count
            i += count

    def _is_inside(self, start: int, size: int) -> bool:
        """Whether no tap of columns [start, start + size) lies outside the input."""
        axis = self.w.columns
        return start * axis.stride - axis.low >= 0 and (start + size - 1) * axis.stride + axis.reach - axis.low < axis.size

    def _taps_inside(self, top: Index) -> tuple[Value, Value]:
        """Bounds of the rows of taps that lie inside, for a window that starts at input row `top`."""
        axis, type_ = self.w.rows, ir.IndexType.get()

        def steps(distance: Index) -> Value:  # ceil(distance / dilation)
            value = emit.materialize(distance)
            return value if axis.dilation == 1 else emit.create("arith.ceildivsi", [type_], [value, emit.index_constant(axis.dilation)])

        first = emit.create("arith.maxsi", [type_], [steps(top * -1), emit.index_constant(0)])
        end = emit.create("arith.minsi", [type_], [steps(top * -1 + axis.size), emit.index_constant(axis.taps)])
        return first, end

    def _tile(self, tile: _Tile, vectors: list[Index]) -> None:
        """Accumulators, taps, epilogue and store of a tile."""
        with self.evaluator.lanes(self.lanes) as lane:
            init = emit.broadcast(self.evaluator.at(self.w.structured.inits[0], []), self.lanes)
            channels = [(vector, self._first_channel(vector) + lane) for vector in vectors]
            sums = [init] * (tile.size * len(vectors))
            sums = self._taps(tile, channels, lane, sums)
            for n, value in enumerate(sums):
                column, vector = divmod(n, len(vectors))
                at = {**tile.row.point, self.w.channel: channels[vector][1]}
                self._store(at, tile.row.index, tile.column + column, value)

    def _taps(self, tile: _Tile, channels: list, lane: Var, sums: list[Value]) -> list[Value]:
        """Adds all taps that lie inside: unrolled where these are all of them and few, else in a loop over rows of taps."""
        axis, row = self.w.rows, tile.row
        if axis.tap is None:
            return self._row_of_taps(tile, row.top, Index(), channels, lane, sums)
        if axis.taps * self.w.columns.taps * len(sums) > self.parameters.unrolled:
            return self._loop_of_taps(tile, row.taps or (0, axis.taps), channels, lane, sums)
        if row.whole is None or row.taps is None:
            return self._unrolled_taps(tile, channels, lane, sums)
        branch = scf.IfOp(row.whole, [v.type for v in sums], has_else=True)
        with ir.InsertionPoint(branch.then_block), self.evaluator.scope():
            scf.YieldOp(self._unrolled_taps(tile, channels, lane, sums))
        with ir.InsertionPoint(branch.else_block), self.evaluator.scope():
            scf.YieldOp(self._loop_of_taps(tile, row.taps, channels, lane, sums))
        return list(branch.results)

    def _unrolled_taps(self, tile: _Tile, channels: list, lane: Var, sums: list[Value]) -> list[Value]:
        for tap in range(self.w.rows.taps):
            sums = self._row_of_taps(tile, tile.row.top + tap * self.w.rows.dilation, Index(tap), channels, lane, sums)
        return sums

    def _loop_of_taps(self, tile: _Tile, bounds: Bounds, channels: list, lane: Var, sums: list[Value]) -> list[Value]:
        var = Var(0, self.w.rows.taps - 1, name="k")
        with emit.for_loop(*bounds, 1, var, sums) as loop, self.evaluator.scope():
            at = tile.row.top + Index.of(var) * self.w.rows.dilation
            emit.yield_values(self._row_of_taps(tile, at, Index.of(var), channels, lane, list(loop.inner_iter_args)))
        return list(loop.results)

    def _row_of_taps(self, tile: _Tile, source: Index, tap: Index, channels: list, lane: Var, sums: list[Value]) -> list[Value]:
        """Adds a row of taps, at input row `source`, by columns of the input so that what is loaded serves all its users."""
        columns, sums = self.w.columns, list(sums)
        for reach in range((tile.size - 1) * columns.stride + columns.reach + 1):
            at = tile.column * columns.stride + (reach - columns.low)
            if at.is_constant and not 0 <= at.const < columns.size:
                continue
            for i, (vector, channel) in itertools.product(range(tile.size), enumerate(channels)):
                column_tap, rest = divmod(reach - i * columns.stride, columns.dilation)
                if not rest and 0 <= column_tap < columns.taps:
                    n = i * len(channels) + vector
                    sums[n] = self._add(tile.row.point, (source, at), (tap, Index(column_tap)), channel, lane, sums[n])
        return sums

    def _add(self, point: Point, at: tuple[Index, Index], taps: tuple[Index, Index], channel: tuple, lane: Var, total: Value) -> Value:
        """The body of the reduction at an input position and a tap."""
        w = self.w
        vector, index = channel
        loops = {**point, w.channel: index}
        loops.update({axis.tap: tap for axis, tap in zip((w.rows, w.columns), taps, strict=True) if axis.tap is not None})
        loop_point = [loops.get(v, Index()) for v in w.variables]
        arguments = list(w.structured.block.arguments)
        values = {arguments[-1]: total, arguments[w.position]: self.evaluator.at(w.data, self._data_point(loops, *at))}
        for position, (node, amap) in enumerate(zip(w.structured.inputs, w.structured.maps, strict=True)):
            if position in self.weights:
                values[arguments[position]] = self._weight(self.weights[position], loops, vector, lane)
            elif position != w.position and node.kind != "empty":
                values[arguments[position]] = self.evaluator.at(node, self.evaluator.apply(amap, loop_point) if node.shape else [])
        return self.evaluator.clone(w.structured, loop_point, values)[0]

    def _data_point(self, loops: Point, row: Index, column: Index) -> list[Index]:
        """Indices of the data at an input row and column."""
        w, last = self.w, len(self.w.indices) - 2
        result = []
        for d, index in enumerate(w.indices):
            if d == last:
                result.append(column)
            elif d == last - 1 and w.has_rows:
                result.append(row)
            else:
                result.append(index.at(loops))
        return result

    # ---- results

    def _store(self, point: Point, row: Index, column: Index, value: Value) -> None:
        """Evaluates the epilogue on the sums at an output position and stores the result."""
        w = self.w
        at = {**point, w.columns.output: column, **({w.rows.output: row} if w.rows.output is not None else {})}
        where = w.output_point(at)  # type: ignore[arg-type]
        self.evaluator.remember(w.node, where, value)
        result = self.evaluator.at(w.root, reshape(where, w.node.shape, w.root.shape, split_exactly))
        self.evaluator.store(result, self.output, linearize(where, w.node.shape))


def _run(extent: int, pieces: int) -> int:
    """Length of the runs that cut `extent` in about `pieces`."""
    return -(-extent // max(1, min(extent, pieces)))


def _bounds(run: Index, length: int, extent: int) -> Bounds:
    """The steps of a run, the last of which may be shorter."""
    if length >= extent:
        return 0, extent
    low, high = emit.materialize(run * length), emit.materialize(run * length + length)
    if extent % length:
        high = emit.create("arith.minsi", [high.type], [high, emit.index_constant(extent)])
    return low, high


@contextmanager
def _loop(bounds: Bounds, extent: int, name: str) -> Iterator[Index]:
    var = Var(0, extent - 1, name=name)
    with emit.for_loop(*bounds, 1, var):
        yield Index.of(var)
