"""Depthwise convolutions and poolings: windows that slide over each channel separately.

Neighbouring threads compute neighbouring elements in memory: vectors of 16 bytes of channels if channels are last, otherwise columns. A
thread computes several outputs along the axis that is not contiguous (neighbouring columns or rows), and reads the elements that their
windows share once. Padding is read as an element inside the input, which is then replaced by the padding, so that no load waits for a
branch. Constant weights are packed with the channels of a vector side by side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.architectures import WARP
from relayc.pipelines.targets.cuda.strategies.product.problem import Point, divided, hoisted
from relayc.pipelines.targets.cuda.target import CudaTarget
from relayc.pipelines.te.read import window_channels, window_columns
from relayc.pipelines.te.read.graph import Kernel
from relayc.pipelines.te.read.window import Window
from relayc.pipelines.te.read.window_channels import ChannelWindow
from relayc.pipelines.tir.gpu.aligned import VECTOR_BYTES, AlignedEvaluator
from relayc.pipelines.tir.gpu.launch import launch
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.pipelines.tir.strategy.tuning import Tuning, power_of_two, powers_of_two
from relayc.pipelines.tir.strategy.window_weights import find_weights
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.windows import add_rows_of_taps, at_tap, padding_vector, store_result
from relayc.symbolic import Size, ceil_div, guess, proves

_MOST_TAPS = 1024
"""Windows with more are left to other schedules."""
_UNROLLED = 512
"""Elements that a thread adds up to which it does so without a loop; beyond, rows of taps are one."""
_MOST_OUTPUTS = 4
"""Outputs of a thread by default."""
_WORD = 32


@dataclass(frozen=True)
class Numbers:
    """The tunable numbers.

    Attributes:
      threads: of a block.
      lanes: channels of a vector; 1 unless channels are last.
      rows, columns: outputs of a thread.
    """

    threads: int
    lanes: int
    rows: int
    columns: int


def schedule_window(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a depthwise convolution or a pooling whose channels, or columns, are the innermost dimension."""
    window = window_channels.match(kernel) or window_columns.match(kernel)
    if window is None or window.element_bits is None or window.rows.taps * window.columns.taps > _MOST_TAPS:
        return None
    along = window.channel if isinstance(window, ChannelWindow) else window.columns.output
    if along is None or window.output_offset().coefficient(along) != 1:
        return None
    assert isinstance(target, CudaTarget)
    values: dict[str, Callable[[Numbers], list[int]]] = {
        "threads": lambda n: powers_of_two(WARP, 1024),
        "lanes": lambda n: powers_of_two(1, 16),
        "rows": lambda n: [1, 2, 4],
        "columns": lambda n: [1, 2, 4, 8],
    }
    numbers = tuning.replace(_numbers(window, target), list(values), lambda n: _possible(n, window), values)
    return _WindowKernel(kernel, window, numbers).emit()


def _numbers(window: Window, target: CudaTarget) -> Numbers:
    """Vectors of 16 bytes of the input; and the number of outputs of a thread with which all threads together read the fewest elements, as
    long as there are threads for all multiprocessors."""
    lanes = _lanes(window, VECTOR_BYTES)
    is_last = isinstance(window, ChannelWindow)
    axis = window.columns if is_last else window.rows
    outputs = max(1, guess(axis.outputs))
    threads = guess(window.node.size) // (lanes * outputs)

    def reads(count: int) -> int:
        return ceil_div(outputs, count) * ((count - 1) * axis.stride + axis.reach + 1)

    most = [n for n in range(1, _MOST_OUTPUTS + 1) if n == 1 or threads * ceil_div(outputs, n) >= _filling_threads(target)]
    count = min(most, key=reads)
    return Numbers(256, lanes, *((1, count) if is_last else (count, 1)))


def _lanes(window: Window, most: int) -> int:
    """Channels of a vector of up to 16 bytes, at most so many: a power of two that divides them."""
    channels = window.channels if isinstance(window, ChannelWindow) else 1
    lanes = VECTOR_BYTES * 8 // max(8, window.data.element.width, window.root.element.width)
    while channels % lanes or lanes > most:
        lanes //= 2
    return lanes


def _filling_threads(target: CudaTarget) -> int:
    """Threads with which each multiprocessor has a block or two."""
    return target.num_multiprocessors * 512


def _possible(numbers: Numbers, window: Window) -> Numbers:
    """Numbers as a kernel can have them: whole warps, vectors that divide the channels."""
    lanes = _lanes(window, numbers.lanes)
    return replace(numbers, threads=power_of_two(numbers.threads, WARP, 1024), lanes=lanes)


class _WindowKernel:
    """Emits one kernel."""

    evaluator: AlignedEvaluator
    output: ir.Value

    def __init__(self, kernel: Kernel, window: Window, numbers: Numbers) -> None:
        self.kernel, self.w, self.numbers = kernel, window, numbers
        loops = window.rows.taps * window.columns.taps * numbers.rows * numbers.columns * numbers.lanes > _UNROLLED
        self.rows = 1 if loops else numbers.rows
        self.loops_over_taps = loops and window.rows.taps > 1
        found = {}
        if isinstance(window, ChannelWindow):
            found = {i: find_weights(kernel, window, i, numbers.lanes) for i in range(len(window.structured.inputs))}
        self.weights = {i: weights for i, weights in found.items() if weights is not None}
        source = window.structured.inputs[window.position]
        self.pad_value = source.pad_value if source.kind == "pad" else None

    def emit(self) -> Scheduled:
        """The kernel in tir, at the ambient insertion point."""
        w, lanes = self.w, self.numbers.lanes
        packings = {weights.node.position: weights.packing() for weights in self.weights.values()}
        with kernel_function(self.kernel, packings) as body:
            self.evaluator, self.output = AlignedEvaluator(body.evaluator.buffers), body.outputs[0]
            extents: list[Size] = [v.extent for v in w.planes]
            extents += [ceil_div(w.rows.outputs, self.rows), ceil_div(w.columns.outputs, self.numbers.columns)]
            if isinstance(w, ChannelWindow):
                extents.append(w.channels // lanes)
            total, threads = prod(extents), self.numbers.threads
            with launch([ceil_div(total, threads)], threads) as made, self.evaluator.scope():
                number = hoisted(Index.of(made.block[0]) * threads + made.thread)
                if proves(lambda: total % threads == 0):
                    self._thread(number, extents)
                else:
                    inside = emit.below(number, total)
                    number = Index.of(Var.below(total, emit.materialize(number), name="number"))
                    nest.when(inside, self.evaluator, lambda: self._thread(number, extents))
        return Scheduled(body.function, packings)

    # ---- threads

    def _thread(self, number: Index, extents: Sequence[Size]) -> None:
        """What a thread computes, by its number over all loops."""
        w, at = self.w, list[Index]()
        for extent in reversed(extents[1:]):
            number, rest = divided(number, extent)
            at.append(hoisted(rest))
        at = [hoisted(number), *reversed(at)]
        point: Point = dict(zip(w.planes, at, strict=False))
        row, column = (i * n for i, n in zip(at[len(w.planes) :], (self.rows, self.numbers.columns), strict=False))
        with self.evaluator.along(self.numbers.lanes) as lane:
            vector = Index()
            if isinstance(w, ChannelWindow):
                vector = at[-1]
                point[w.channel] = vector * self.numbers.lanes + lane
            init = emit.broadcast(self.evaluator.at(w.structured.inits[0], []), self.numbers.lanes)
            sums = self._taps(point, vector, row, column, [init] * (self.rows * self.numbers.columns))
            for i, value in enumerate(sums):
                self._store(point, row + i // self.numbers.columns, column + i % self.numbers.columns, value)

    def _store(self, point: Point, row: Index, column: Index, value: ir.Value) -> None:
        """Stores an output, if it is inside the result."""
        w = self.w
        outside = [(i, a.outputs) for i, a in ((row, w.rows), (column, w.columns)) if not i.is_within(0, a.outputs - 1)]

        def code() -> None:
            store_result(w, self.evaluator, self.output, point, row, column, value)

        if outside:
            nest.when(emit.all_of([emit.below(*of) for of in outside]), self.evaluator, code)
        else:
            code()

    # ---- taps

    def _taps(self, point: Point, vector: Index, row: Index, column: Index, sums: list[ir.Value]) -> list[ir.Value]:
        """Adds all taps of the outputs from a row and a column on."""
        axis = self.w.rows
        top = row * axis.stride - axis.low
        if self.loops_over_taps:

            def row_of_taps(tap: Index, _: bool, sums: list[ir.Value]) -> list[ir.Value]:
                return self._row(point, vector, top + tap * axis.dilation, [(0, tap)], column, sums)

            return add_rows_of_taps(self.w, self.evaluator, None, sums, row_of_taps)
        for reach, users in axis.users(self.rows):
            sums = self._row(point, vector, top + reach, [(i, Index(tap)) for i, tap in users], column, sums)
        return sums

    def _row(
        self, point: Point, vector: Index, source: Index, users: Sequence[tuple[int, Index]], column: Index, sums: list[ir.Value]
    ) -> list[ir.Value]:
        """Adds the products of an input row to the output rows that use it, each with its row of taps."""
        axis, sums = self.w.columns, list(sums)
        for reach, columns in axis.users(self.numbers.columns):
            element = self._element(point, source, column * axis.stride + (reach - axis.low))
            for i, row_tap in users:
                for j, column_tap in columns:
                    n = i * self.numbers.columns + j
                    sums[n] = self._add(point, vector, (row_tap, Index(column_tap)), element, sums[n])
        return sums

    def _element(self, point: Point, row: Index, column: Index) -> ir.Value:
        """The input at a row and a column, or its padding."""
        w, flags, at = self.w, list[ir.Value](), list[Index]()
        for index, axis in ((row, w.rows), (column, w.columns)):
            if not index.is_within(0, axis.size - 1):
                flag, index = self.evaluator.clamp(index, axis.size)
                flags += [flag] if self.pad_value is not None else []
            at.append(index)
        value = self.evaluator.at(w.data, w.data_at(point, *at))
        if not flags:
            return value
        lanes = self.numbers.lanes
        return _selected(emit.all_of(flags), emit.broadcast(value, lanes), padding_vector(w, lanes))

    def _add(self, point: Point, vector: Index, taps: tuple[Index, Index], element: ir.Value, total: ir.Value) -> ir.Value:
        """The body of the reduction at a tap."""
        loops = self.w.at_taps(point, *taps)

        def operand(position: int, read: Callable[[], ir.Value]) -> ir.Value:
            if position not in self.weights:
                return read()
            weights = self.weights[position]
            key = ("weights", position, *(loops[v].key for v in weights.taps))
            return self.evaluator.once(key, lambda: weights.load(self.evaluator, loops, vector))

        return at_tap(self.w, self.evaluator, loops, operand)(element, total)


def _selected(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """Selects `a` if a condition holds, otherwise `b`; vectors of narrow elements are selected as words."""
    type_ = a.type
    if not emit.is_vector(a) or type_.element_type.width >= _WORD or type_.shape[0] * type_.element_type.width % _WORD:
        return emit.select(condition, a, b)
    word = ir.IntegerType.get_signless(_WORD)
    words = emit.select(condition, vectors.bitcast(a, word), vectors.bitcast(b, word))
    return vectors.bitcast(words, type_.element_type)
