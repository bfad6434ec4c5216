"""Copies of run-time operands in the order of `layout`: A with the reduction innermost and zeros around it, B with pairs interleaved."""

from collections.abc import Callable, Sequence
from math import prod

from relayc.dialects.mlir import ir
from relayc.pipelines.cpu.schedule.bf16.layout import COLUMNS, Layout, step_offset
from relayc.pipelines.kernel.contraction import Contraction
from relayc.pipelines.kernel.index import Index, Var, linearize, strides_of
from relayc.pipelines.tir import emit
from relayc.pipelines.tir.evaluator import Evaluator

Value = ir.Value
Point = dict[Var, Index]

LANES = 32
"""bf16 elements that are moved at a time: 64 bytes."""
BLOCK = 16
"""Rows and columns of a block that is transposed in registers."""
TASKS = 16
"""Iterations that the parallel loop of a copy should have at least."""


def nested(evaluator: Evaluator, extents: Sequence[int], body: Callable[[list[Index]], None], parallel: int = 0) -> None:
    """Loops over a box, the first `parallel` of them in one parallel loop; loops of one iteration are none."""
    live = [d for d, extent in enumerate(extents) if extent > 1]
    point = [Index()] * len(extents)
    together = [d for d in live if d < parallel]
    variables = {d: Var(0, extents[d] - 1, name=f"d{d}") for d in live}

    def serial(rest: Sequence[int]) -> None:
        if not rest:
            body(list(point))
            return
        var = variables[rest[0]]
        with emit.for_loop(0, var.high + 1, 1, var), evaluator.scope():
            point[rest[0]] = Index.of(var)
            serial(rest[1:])

    def inside() -> None:
        for d in together:
            point[d] = Index.of(variables[d])
        with evaluator.scope():
            serial([d for d in live if d not in together])

    if together:
        emit.parallel_loop([extents[d] for d in together], [variables[d] for d in together], inside)
    else:
        inside()


def leading(extents: Sequence[int], tasks: int) -> int:
    """How many leading loops have at least `tasks` iterations together, at most all of them."""
    count = 0
    while count < len(extents) and prod(extents[:count]) < tasks:
        count += 1
    return count


def interleave(a: Value, b: Value) -> Value:
    """The elements of two vectors by turns."""
    width = a.type.shape[0]
    mask = [lane for i in range(width) for lane in (i, width + i)]
    type_ = emit.vector_of(2 * width, a.type.element_type)
    return emit.create("vector.shuffle", [type_], [a, b], {"mask": ir.DenseI64ArrayAttr.get(mask)})


def zeros(buffer: Value, start: Index, count: int, evaluator: Evaluator) -> None:
    """Sets `count` elements to 0."""
    element = buffer.type.element_type
    wide = count // LANES
    if wide:
        zero = emit.zero(emit.vector_of(LANES, element))
        loop = Var(0, wide - 1)
        with emit.for_loop(0, wide, 1, loop), evaluator.scope():
            emit.create("vector.store", [], [zero, buffer, emit.materialize(start + Index.of(loop) * LANES)])
    at = wide * LANES
    while at < count:
        lanes = 1 << (count - at).bit_length() - 1
        zero = emit.zero(emit.vector_of(lanes, element))
        emit.create("vector.store", [], [zero, buffer, emit.materialize(start + at)])
        at += lanes


class RowsCopy:
    """Emits the copy of A (see `layout.Layout.copy`) into a flat buffer."""

    def __init__(self, contraction: Contraction, layout: Layout, evaluator: Evaluator, buffer: Value) -> None:
        assert layout.copy is not None
        self.node, self.evaluator, self.buffer = contraction.a.node, evaluator, buffer
        self.axes = layout.copy
        self.strides = strides_of(tuple(axis.pitch for axis in self.axes))
        self.steps = [strides_of(self.node.shape)[axis.dimension] * axis.stride for axis in self.axes]

    def emit(self, parallel: bool) -> None:
        """The loops; those outside blocks run in parallel where it is asked for."""
        whole = self._whole_from()
        count = min(whole, len(self.axes) - 1 - (whole == len(self.axes) and self._transposes()))
        extents = [axis.extent for axis in self.axes[:count]]
        nested(self.evaluator, extents, lambda point: self._at(point, 0), leading(extents, TASKS) if parallel else 0)

    def _whole_from(self) -> int:
        """The first axis from which on both memories are one run of equal elements; their number where the innermost is none."""
        axis, expected = len(self.axes), 1
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
        return rows.extent >= BLOCK and (last.extent >= BLOCK or last.pitch in (2, 4, 8)) and not last.is_padded

    def _source(self, point: Sequence[Index]) -> list[Index]:
        """Indices of A for those of the copy; axes without one are at their first element."""
        indices = [Index()] * len(self.node.shape)
        for axis, index in zip(self.axes, [*point, *[Index()] * (len(self.axes) - len(point))], strict=True):
            indices[axis.dimension] = index * axis.stride + axis.low
        return indices

    def _target(self, point: Sequence[Index]) -> Index:
        return sum((index * stride for index, stride in zip(point, self.strides, strict=False)), Index())

    def _at(self, point: list[Index], level: int) -> None:
        """What one iteration of the outer loops copies; zeros where an index is outside from axis `level` on."""
        while level < len(point) and not self.axes[level].is_padded:
            level += 1
        if level < len(point):
            axis = self.axes[level]
            with self.evaluator.scope():
                emit.when(
                    emit.below(point[level] * axis.stride + axis.low, axis.size),
                    lambda: self._at(point, level + 1),
                    lambda: zeros(self.buffer, self._target(point), prod(a.pitch for a in self.axes[len(point) :]), self.evaluator),
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
            with self.evaluator.lanes(lanes) as lane:
                along = at + (Index.of(lane) if lanes > 1 else 0)
                value = self.evaluator.load_from(self._memory(), self.node.element, source + along)
                self.evaluator.store(value, self.buffer, target + along)

        whole = count // LANES
        if whole:
            loop = Var(0, whole - 1)
            with emit.for_loop(0, whole, 1, loop), self.evaluator.scope():
                move(Index.of(loop) * LANES, LANES)
        at = whole * LANES
        while at < count:
            lanes = 1 << (count - at).bit_length() - 1
            move(Index(at), lanes)
            at += lanes
        zeros(self.buffer, target + count, prod(axis.pitch for axis in rest) - count, self.evaluator)

    def _memory(self) -> Value:
        node = self.node if self.node in self.evaluator.buffers else self.node.inputs[0]
        return self.evaluator.buffers[node]

    def _elements(self, point: list[Index]) -> None:
        """The innermost axis element by element, with zeros in its padding and after it."""
        axis = self.axes[-1]
        first = max(0, -(axis.low // axis.stride))
        end = min(axis.extent, -(-(axis.size - axis.low) // axis.stride))
        target = self._target(point)
        zeros(self.buffer, target, first, self.evaluator)
        loop = Var(first, end - 1)
        with emit.for_loop(first, end, 1, loop), self.evaluator.scope():
            value = self.evaluator.load_from(self._memory(), self.node.element, self._flat([*point, Index.of(loop)]))
            self.evaluator.store(value, self.buffer, target + Index.of(loop))
        zeros(self.buffer, target + end, axis.pitch - end, self.evaluator)

    def _flat(self, point: Sequence[Index]) -> Index:
        return linearize(self._source(point), self.node.shape)

    def _transposed(self, point: list[Index]) -> None:
        """The last two axes, of which memory has them the other way round, in blocks; the last but one may be padded."""
        rows, last = self.axes[-2:]
        first, end = max(0, -rows.low), min(rows.extent, rows.size - rows.low)
        target = self._target(point)
        zeros(self.buffer, target, first * last.pitch, self.evaluator)
        inside = end - first
        if inside < BLOCK:
            with emit.for_loop(first, end, 1, row := Var(first, end - 1)), self.evaluator.scope():
                self._elements([*point, Index.of(row)])
        else:
            with block_loop(inside, BLOCK) as row, self.evaluator.scope():
                self._row_block([*point, row + first])
        zeros(self.buffer, target + end * last.pitch, (rows.extent - end) * last.pitch, self.evaluator)

    def _row_block(self, point: list[Index]) -> None:
        """BLOCK rows of the last two axes from a point on."""
        last = self.axes[-1]
        target = self._target(point)

        def read(column: Index) -> Value:
            with self.evaluator.lanes(BLOCK) as lane:
                flat = self._flat([*point, column]) + Index.of(lane)
                return self.evaluator.load_from(self._memory(), self.node.element, flat)

        if last.extent >= BLOCK:
            with block_loop(last.extent, BLOCK) as column, self.evaluator.scope():
                for row, value in enumerate(emit.transpose([read(column + i) for i in range(BLOCK)])):
                    emit.create("vector.store", [], [value, self.buffer, emit.materialize(target + column + row * last.pitch)])
            if last.pitch > last.extent:
                for row in range(BLOCK):
                    zeros(self.buffer, target + (row * last.pitch + last.extent), last.pitch - last.extent, self.evaluator)
            return
        zero = emit.zero(emit.vector_of(BLOCK, self.node.element))
        values = [read(Index(i)) if i < last.extent else zero for i in range(last.pitch)]
        while len(values) > 1:
            half = len(values) // 2
            values = [interleave(values[i], values[half + i]) for i in range(half)]
        emit.create("vector.store", [], [values[0], self.buffer, emit.materialize(target)])


class block_loop:
    """Blocks of `size` that cover an extent; the last starts early rather than ending late. Gives the first index of each."""

    def __init__(self, extent: int, size: int) -> None:
        self.extent, self.size = extent, size
        count = -(-extent // size)
        self.var = Var(0, count - 1, name="block")
        self.loop = emit.for_loop(0, count, 1, self.var)

    def __enter__(self) -> Index:
        self.loop.__enter__()
        start, last = Index.of(self.var) * self.size, self.extent - self.size
        return emit.at_most(start, last)

    def __exit__(self, *error: object) -> None:
        self.loop.__exit__(*error)  # type: ignore[arg-type]


class ColumnsCopy:
    """Emits the copy of B in pairs (see `layout.packed_shape`) into a flat buffer."""

    def __init__(self, contraction: Contraction, layout: Layout, blocks: int, evaluator: Evaluator, buffer: Value) -> None:
        self.c, self.layout, self.blocks, self.evaluator, self.buffer = contraction, layout, blocks, evaluator, buffer
        self.element = contraction.b.node.element
        self.in_columns = contraction.b.offset.coefficient(contraction.column)
        self.in_depth = contraction.b.offset.coefficient(layout.inner[0])

    def emit(self, parallel: bool) -> None:
        """The loops: blocks of columns in parallel where it is asked for."""
        c, layout = self.c, self.layout
        loops = [*c.batch, None, *layout.outer, *layout.merged]
        extents = [v.high + 1 if v is not None else self.blocks for v in loops]
        full = c.column_extent // COLUMNS

        def body(indices: list[Index]) -> None:
            block = indices[len(c.batch)]
            point = {v: index for v, index in zip(loops, indices, strict=True) if v is not None}
            rounds = linearize([point[v] for v in layout.merged], [v.high + 1 for v in layout.merged])
            target = packed_offset(c, layout, self.blocks, point, block) + rounds * layout.pitch * COLUMNS

            def whole() -> None:
                with self.evaluator.scope():
                    at = block if full == self.blocks else Index.of(Var(0, full - 1, emit.materialize(block), name="block"))
                    self._whole(at * COLUMNS, point, target)

            def partly() -> None:
                with self.evaluator.scope():
                    self._partly(block, point, target)

            if full == self.blocks:
                whole()
            elif not full:
                partly()
            else:
                emit.when(emit.below(block, full), whole, partly)

        nested(self.evaluator, extents, body, len(c.batch) + 1 if parallel else 0)

    def _value(self, column: Index, step: Index, point: Point) -> Value:
        """Element(s) of B."""
        c = self.c
        at = {**point, **c.column_point(column), self.layout.inner[0]: step}
        offset = Index(c.b.offset.const)
        for v, coefficient in c.b.offset.terms.items():
            offset += at.get(v, Index()) * coefficient
        node = c.b.node if c.b.node in self.evaluator.buffers else c.b.node.inputs[0]
        return self.evaluator.load_from(self.evaluator.buffers[node], self.element, offset)

    def _whole(self, first: Index, point: Point, target: Index) -> None:
        """A block of COLUMNS columns."""
        size, pitch = self.layout.size, self.layout.pitch
        if self.in_columns != 1 and (self.in_depth != 1 or size < LANES):
            self._elements(first, 0, COLUMNS, point, target)
        elif self.in_columns == 1:
            self._interleaved(first, point, target)
        else:
            with block_loop(size - size % 2, LANES) as start, self.evaluator.scope():
                self._transposed(first, start, point, target)
            if size % 2:
                self._elements(first, size - 1, COLUMNS, point, target)
        if pitch > size + size % 2:
            zeros(self.buffer, target + (size + size % 2) * COLUMNS, (pitch - size - size % 2) * COLUMNS, self.evaluator)

    def _interleaved(self, first: Index, point: Point, target: Index) -> None:
        """Columns that are neighbours in memory: two rows of B by turns."""
        size = self.layout.size

        def row(step: Index) -> Value:
            with self.evaluator.lanes(COLUMNS) as lane:
                return self._value(first + Index.of(lane), step, point)

        def pair(step: Index, a: Value, b: Value) -> None:
            emit.create("vector.store", [], [interleave(a, b), self.buffer, emit.materialize(target + step * COLUMNS)])

        if size > 1:
            loop = Var(0, size // 2 - 1)
            with emit.for_loop(0, size // 2, 1, loop), self.evaluator.scope():
                step = Index.of(loop) * 2
                pair(step, row(step), row(step + 1))
        if size % 2:
            pair(Index(size - 1), row(Index(size - 1)), emit.zero(emit.vector_of(COLUMNS, self.element)))

    def _transposed(self, first: Index, start: Index, point: Point, target: Index) -> None:
        """Columns whose reduction steps are neighbours in memory: LANES steps of each, transposed as pairs."""
        pairs = emit.vector_of(COLUMNS, ir.IntegerType.get_signless(32))
        columns = []
        for column in range(COLUMNS):
            with self.evaluator.lanes(LANES) as lane:
                value = self._value(first + column, start + Index.of(lane), point)
            columns.append(emit.create("vector.bitcast", [pairs], [value]))
        wide = emit.vector_of(LANES, self.element)
        for i, row in enumerate(emit.transpose(columns)):
            value = emit.create("vector.bitcast", [wide], [row])
            emit.create("vector.store", [], [value, self.buffer, emit.materialize(target + start * COLUMNS + 2 * i * COLUMNS)])

    def _partly(self, block: Index, point: Point, target: Index) -> None:
        """A block after whose columns there are zeros."""
        left = emit.materialize(block * -COLUMNS + self.c.column_extent)
        count = emit.create("arith.maxsi", [left.type], [left, emit.index_constant(0)])
        self._elements(block * COLUMNS, 0, count, point, target)
        size = self.layout.size + self.layout.size % 2
        zeros(self.buffer, target + size * COLUMNS, (self.layout.pitch - size) * COLUMNS, self.evaluator)

    def _elements(self, first: Index, low: int, count: "int | Value", point: Point, target: Index) -> None:
        """Element by element: `count` columns for the steps from `low` (even) on, zeros in the other columns and beside an odd step."""
        size = self.layout.size
        if size // 2 > low // 2:
            pair = Var(low // 2, size // 2 - 1)
            with emit.for_loop(low // 2, size // 2, 1, pair), self.evaluator.scope():
                for half in (0, 1):
                    at = target + Index.of(pair) * (2 * COLUMNS) + half
                    self._row(first, count, at, lambda column: self._value(column, Index.of(pair) * 2 + half, point))  # noqa: B023 (called now)
        if size % 2:
            at = target + (size - 1) * COLUMNS
            self._row(first, count, at, lambda column: self._value(column, Index(size - 1), point))
            self._row(first, 0, at + 1, lambda _: emit.zero(self.element))

    def _row(self, first: Index, count: "int | Value", target: Index, value: Callable[[Index], Value]) -> None:
        """One reduction step of a block: every other element from `target` on."""
        for low, high, make in ((0, count, value), (count, COLUMNS, lambda _: emit.zero(self.element))):
            if low == high:
                continue
            column = Var(0, COLUMNS - 1)
            with emit.for_loop(low, high, 1, column), self.evaluator.scope():
                element = make(first + Index.of(column))
                emit.create("memref.store", [], [element, self.buffer, emit.materialize(target + Index.of(column) * 2)])


def packed_offset(contraction: Contraction, layout: Layout, blocks: int, point: Point, block: Index) -> Index:
    """Where the pairs of a block of columns begin at a point of the batch and of the outer reduction loops."""
    batch = linearize([point.get(v, Index()) for v in contraction.batch], [v.high + 1 for v in contraction.batch])
    rounds = prod(v.high + 1 for v in layout.outer)
    return ((batch * blocks + block) * rounds + step_offset(layout, point)) * (layout.run * COLUMNS)
