"""The copy of a run-time A in the order of `layout`: the reduction innermost and paddings around it."""

from collections.abc import Sequence
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, linearize, strides_of
from relayc.pipelines.targets.cpu.strategies.bf16.layout import PairsLayout
from relayc.pipelines.targets.cpu.strategies.bf16.moves import LANES, TASKS, set_zeros
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div, guess, maximum, minimum

BLOCK = 16
"""Rows and columns of a block that is transposed in registers."""


class RowsCopy:
    """Emits the copy of A (see `layout.PairsLayout.copy`) into a flat buffer."""

    def __init__(self, contraction: Contraction, layout: PairsLayout, evaluator: Evaluator, buffer: ir.Value) -> None:
        assert layout.copy is not None
        self.node, self.evaluator, self.buffer, self.fill = contraction.a.node, evaluator, buffer, contraction.a.fill
        self.axes = layout.copy
        self.strides = strides_of(tuple(axis.pitch for axis in self.axes))
        self.steps = [strides_of(self.node.shape)[axis.dimension] * axis.stride for axis in self.axes]

    def emit(self, parallel: bool, work: Size = 0, grain: int = 0) -> None:
        """The loops; those outside blocks run in parallel where it is asked for (see `emit.parallel_loop`)."""
        whole = self._whole_from()
        count = min(whole, len(self.axes) - 1 - (whole == len(self.axes) and self._transposes()))
        extents = [axis.extent for axis in self.axes[:count]]
        parallel_loops = nest.leading(extents, TASKS) if parallel else 0
        with nest.box(extents, self.evaluator, parallel_loops, work=work, grain=grain) as point:
            self._at(point, 0)

    def _fill(self, start: Index, count: Size) -> None:
        set_zeros(self.buffer, start, count, self.evaluator, self.fill)

    def _whole_from(self) -> int:
        """The first axis from which on both memories are one run of equal elements; their number where the innermost is none."""
        axis = len(self.axes)
        expected: Size = 1
        while axis and self.steps[axis - 1] == expected and not self.axes[axis - 1].is_padded:
            inner = self.axes[axis - 1]
            axis, expected = axis - 1, expected * inner.extent
            if inner.pitch != inner.extent:
                break
        return axis

    def _transposes(self) -> bool:
        """Whether the last but one axis is contiguous in memory, and both are long enough for blocks."""
        if len(self.axes) < 2 or self.steps[-2] != 1:
            return False
        rows, last = self.axes[-2:]
        return guess(rows.extent) >= BLOCK and (guess(last.extent) >= BLOCK or last.pitch in (2, 4, 8)) and not last.is_padded

    def _source(self, point: Sequence[Index]) -> list[Index]:
        """Indices of A for those of the copy; axes without one are at their first element."""
        indices = [Index()] * len(self.node.shape)
        for axis, index in zip(self.axes, [*point, *[Index()] * (len(self.axes) - len(point))], strict=True):
            indices[axis.dimension] = index * axis.stride + axis.low
        return indices

    def _target(self, point: Sequence[Index]) -> Index:
        return sum((index * stride for index, stride in zip(point, self.strides, strict=False)), Index())

    def _at(self, point: list[Index], level: int) -> None:
        """What one iteration of the outer loops copies; the padding where an index is outside from axis `level` on."""
        level = next((n for n in range(level, len(point)) if self.axes[n].is_padded), len(point))
        if level != len(point):
            axis = self.axes[level]
            rest = prod(a.pitch for a in self.axes[len(point) :])
            nest.when(
                emit.below(point[level] * axis.stride + axis.low, axis.size),
                self.evaluator,
                lambda: self._at(point, level + 1),
                lambda: self._fill(self._target(point), rest),
            )
            return
        with self.evaluator.scope():
            if len(self.axes) - len(point) == 2 and self._transposes() and self._whole_from() == len(self.axes):
                self._transposed(point)
            elif self._whole_from() <= len(point):
                self._run(point)
            else:
                self._elements(point)

    def _run(self, point: list[Index]) -> None:
        """Axes that are one run."""
        rest = self.axes[len(point) :]
        count = prod(axis.extent for axis in rest)
        source, target = linearize(self._source(point), self.node.shape), self._target(point)

        def move(at: Index, lanes: int) -> None:
            with self.evaluator.along(lanes) as lane:
                along = at + lane
                value = self.evaluator.load_from(self._memory(), self.node.element, source + along)
                self.evaluator.store(value, self.buffer, target + along)

        whole = count // LANES
        if whole != 0:
            with nest.loop(0, whole, self.evaluator) as loop:
                move(loop * LANES, LANES)
        if not isinstance(count, int):
            if rest[-1].pitch != rest[-1].extent:
                self._masked(source, target, whole * LANES, count, rest[-1].pitch)
                return
            with nest.loop(0, count - whole * LANES, self.evaluator) as single:
                move(single + whole * LANES, 1)
            return
        for at, lanes in vectors.pieces(count - int(whole) * LANES, LANES):
            move(Index(whole * LANES + at), lanes)
        self._fill(target + count, prod(axis.pitch for axis in rest) - count)

    def _masked(self, source: Index, target: Index, first: Size, count: Size, pitch: Size) -> None:
        """What is left of a run from element `first` on, and zeros from `count` to `pitch`."""
        with nest.loop(first, pitch, self.evaluator, step=LANES, name="left") as here:
            inside, room = (emit.first_lanes(emit.materialize(here * -1 + end), LANES) for end in (count, pitch))
            with self.evaluator.lanes(LANES, inside) as lane:
                value = self.evaluator.load_from(self._memory(), self.node.element, source + here + Index.of(lane))
            with self.evaluator.lanes(LANES, room) as lane:
                self.evaluator.store(value, self.buffer, target + here + Index.of(lane))

    def _memory(self) -> ir.Value:
        return self.evaluator.memory(self.node)

    def _elements(self, point: list[Index]) -> None:
        """The innermost axis element by element, with the padding around it and after it."""
        axis = self.axes[-1]
        first = maximum(0, -(axis.low // axis.stride))
        end = maximum(first, minimum(axis.extent, ceil_div(axis.size - axis.low, axis.stride)))
        target = self._target(point)
        self._fill(target, first)
        with nest.loop(first, end, self.evaluator) as loop:
            value = self.evaluator.load_from(self._memory(), self.node.element, self._flat([*point, loop]))
            self.evaluator.store(value, self.buffer, target + loop)
        self._fill(target + end, axis.pitch - end)

    def _flat(self, point: Sequence[Index]) -> Index:
        return linearize(self._source(point), self.node.shape)

    def _transposed(self, point: list[Index]) -> None:
        """The last two axes, of which memory has them the other way round, in blocks; the last but one may be padded."""
        rows, last = self.axes[-2:]
        first = maximum(0, -rows.low)
        end = maximum(first, minimum(rows.extent, rows.size - rows.low))
        target = self._target(point)
        self._fill(target, first * last.pitch)
        inside = end - first

        def one_by_one() -> None:
            with nest.loop(first, end, self.evaluator) as one:
                self._elements([*point, one])

        def in_blocks() -> None:
            with nest.blocks(inside, BLOCK, self.evaluator) as row:
                self._row_block([*point, row + first])

        nest.at_least([(inside, BLOCK)], self.evaluator, in_blocks, one_by_one)
        self._fill(target + end * last.pitch, (rows.extent - end) * last.pitch)

    def _row_block(self, point: list[Index]) -> None:
        """BLOCK rows of the last two axes from a point on."""
        last = self.axes[-1]
        target = self._target(point)

        def read(column: Index) -> ir.Value:
            with self.evaluator.lanes(BLOCK) as lane:
                flat = self._flat([*point, column]) + Index.of(lane)
                return self.evaluator.load_from(self._memory(), self.node.element, flat)

        if last.extent >= BLOCK:
            with nest.blocks(last.extent, BLOCK, self.evaluator) as column:
                for row, value in enumerate(vectors.transpose([read(column + i) for i in range(BLOCK)])):
                    vectors.store(value, self.buffer, target + column + row * last.pitch)
            for row in range(BLOCK):
                self._fill(target + (row * last.pitch + last.extent), last.pitch - last.extent)
            return
        zero = emit.zero(emit.vector_of(BLOCK, self.node.element))
        values = [read(Index(i)) if i < last.extent else zero for i in range(last.pitch)]
        vectors.store(vectors.by_turns(values), self.buffer, target)
