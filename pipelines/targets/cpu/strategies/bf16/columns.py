"""The copy of a run-time B in the order of `layout`: with pairs interleaved."""

from collections.abc import Callable

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, PairsLayout
from relayc.pipelines.targets.cpu.strategies.bf16.moves import LANES, set_zeros, transposed_pairs
from relayc.pipelines.targets.cpu.strategies.bf16.packing import packed_offset
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size

Point = dict[Var, Index]


class ColumnsCopy:
    """Emits the copy of B in pairs (see `packing.packed_shape`) into a flat buffer."""

    def __init__(self, contraction: Contraction, layout: PairsLayout, blocks: Size, evaluator: Evaluator, buffer: ir.Value) -> None:
        self.c, self.layout, self.blocks, self.evaluator, self.buffer = contraction, layout, blocks, evaluator, buffer
        self.element = contraction.b.node.element
        self.in_columns = contraction.b.offset.coefficient(contraction.column)
        self.in_depth = contraction.b.offset.coefficient(layout.inner[0])
        self.is_masked = self.in_columns == 1 and not (isinstance(contraction.column_extent, int) and isinstance(layout.size, int))

    def emit(self, parallel: bool, work: Size = 0, grain: int = 0) -> None:
        """The loops: blocks of columns in parallel where it is asked for (see `emit.parallel_loop`)."""
        c, layout = self.c, self.layout
        loops = [*c.batch, None, *layout.outer, *layout.merged]
        extents = [v.extent if v is not None else self.blocks for v in loops]
        full = c.column_extent // COLUMNS

        def body(indices: list[Index]) -> None:
            block = indices[len(c.batch)]
            point = {v: index for v, index in zip(loops, indices, strict=True) if v is not None}
            rounds = linearize([point[v] for v in layout.merged], [v.extent for v in layout.merged])
            target = packed_offset(c, layout, self.blocks, point, block) + rounds * layout.pitch * COLUMNS

            def whole() -> None:
                at = block if full == self.blocks else Index.of(Var(0, full - 1, emit.materialize(block), name="block"))
                self._whole(at * COLUMNS, point, target)

            if full == self.blocks:
                whole()
            elif full == 0:
                self._partly(block, point, target)
            else:
                nest.when(emit.below(block, full), self.evaluator, whole, lambda: self._partly(block, point, target))

        nest.box(extents, self.evaluator, body, len(c.batch) + 1 if parallel else 0, work=work, grain=grain)

    def _value(self, column: Index, step: Index, point: Point) -> ir.Value:
        """Element(s) of B; of the last column where a call says how many columns there are, and it has fewer: what follows is not used."""
        c = self.c
        if not isinstance(c.column_extent, int) and not self.is_masked:
            column = emit.at_most(column, c.column_extent - 1)
        offset = c.b.offset.at({**point, **c.column_point(column), self.layout.inner[0]: step})
        return self.evaluator.load_from(self.evaluator.memory(c.b.node), self.element, offset)

    def _whole(self, first: Index, point: Point, target: Index) -> None:
        """A block of COLUMNS columns."""
        if not isinstance(self.layout.size, int) or not isinstance(self.layout.pitch, int):
            self._masked(first, emit.index_constant(COLUMNS), point, target)
            return
        size, pitch = self.layout.size, self.layout.pitch
        if self.in_columns != 1 and (self.in_depth != 1 or size < LANES):
            self._elements(first, 0, COLUMNS, point, target)
        elif self.in_columns == 1:
            self._interleaved(first, point, target)
        else:
            with nest.blocks(size - size % 2, LANES, self.evaluator) as start:
                self._transposed(first, start, point, target)
            if size % 2:
                self._elements(first, size - 1, COLUMNS, point, target)
        if pitch > size + size % 2:
            set_zeros(self.buffer, target + (size + size % 2) * COLUMNS, (pitch - size - size % 2) * COLUMNS, self.evaluator)

    def _interleaved(self, first: Index, point: Point, target: Index) -> None:
        """Columns that are neighbours in memory: two rows of B by turns."""
        size = int(self.layout.size)

        def row(step: Index) -> ir.Value:
            with self.evaluator.lanes(COLUMNS) as lane:
                return self._value(first + Index.of(lane), step, point)

        def pair(step: Index, a: ir.Value, b: ir.Value) -> None:
            vectors.store(vectors.interleave(a, b), self.buffer, target + step * COLUMNS)

        if size > 1:
            loop = Var(0, size // 2 - 1)
            with nest.serial([loop], self.evaluator):
                step = Index.of(loop) * 2
                pair(step, row(step), row(step + 1))
        if size % 2:
            pair(Index(size - 1), row(Index(size - 1)), emit.zero(emit.vector_of(COLUMNS, self.element)))

    def _masked(self, first: Index, count: ir.Value, point: Point, target: Index) -> None:
        """The first `count` columns of a block, which are neighbours in memory, where a call says how many there are, or how deep they are:
        zeros are in the other columns and behind the last step."""
        size, pairs = self.layout.size, self.layout.pitch // 2
        whole, zero = size // 2, emit.zero(emit.vector_of(COLUMNS, self.element))

        def row(step: Index, columns: ir.Value) -> ir.Value:
            with self.evaluator.lanes(COLUMNS, emit.first_lanes(columns, COLUMNS)) as lane:
                return self._value(first + Index.of(lane), step, point)

        def pair(at: Index, a: ir.Value, b: ir.Value) -> None:
            vectors.store(vectors.interleave(a, b), self.buffer, target + at * (2 * COLUMNS))

        both = Var(0, whole - 1, name="pair")
        with emit.for_loop(0, whole, 1, both), self.evaluator.scope():
            at = Index.of(both)
            pair(at, row(at * 2, count), row(at * 2 + 1, count))
        last = Var(whole, pairs - 1, name="pair")
        with emit.for_loop(whole, pairs, 1, last), self.evaluator.scope():
            at = Index.of(last)
            pair(at, row(at * 2, emit.select(emit.below(at * 2, size), count, emit.index_constant(0))), zero)

    def _transposed(self, first: Index, start: Index, point: Point, target: Index) -> None:
        """Columns whose reduction steps are neighbours in memory: LANES steps of each, transposed as pairs."""

        def read(column: int) -> ir.Value:
            with self.evaluator.lanes(LANES) as lane:
                return self._value(first + column, start + Index.of(lane), point)

        for i, row in enumerate(transposed_pairs(map(read, range(COLUMNS)))):
            vectors.store(row, self.buffer, target + start * COLUMNS + 2 * i * COLUMNS)

    def _partly(self, block: Index, point: Point, target: Index) -> None:
        """A block after whose columns there are zeros."""
        count = emit.larger(emit.materialize(block * -COLUMNS + self.c.column_extent), 0)
        if self.is_masked:
            self._masked(block * COLUMNS, count, point, target)
            return
        if not isinstance(self.c.column_extent, int):
            self._whole(block * COLUMNS, point, target)
            return
        self._elements(block * COLUMNS, 0, count, point, target)
        size = self.layout.size + self.layout.size % 2
        set_zeros(self.buffer, target + size * COLUMNS, (self.layout.pitch - size) * COLUMNS, self.evaluator)

    def _elements(self, first: Index, low: int, count: "int | ir.Value", point: Point, target: Index) -> None:
        """Element by element: `count` columns for the steps from `low` (even) on, zeros in the other columns and beside an odd step."""
        size = int(self.layout.size)
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

    def _row(self, first: Index, count: "int | ir.Value", target: Index, value: Callable[[Index], ir.Value]) -> None:
        """One reduction step of a block: every other element from `target` on."""
        for low, high, make in ((0, count, value), (count, COLUMNS, lambda _: emit.zero(self.element))):
            if low == high:
                continue
            column = Var(0, COLUMNS - 1)
            with emit.for_loop(low, high, 1, column), self.evaluator.scope():
                element = make(first + Index.of(column))
                emit.create("memref.store", [], [element, self.buffer, emit.materialize(target + Index.of(column) * 2)])
