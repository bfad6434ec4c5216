"""The copy of a run-time B in the order of `layout`: with groups interleaved."""

from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, PairsLayout, packed_offset
from relayc.pipelines.targets.cpu.strategies.bf16.moves import set_zeros, transposed_groups
from relayc.pipelines.te.read.contraction import Contraction
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size, ceil_div

Point = dict[Var, Index]


class ColumnsCopy:
    """Emits the copy of B in groups (see `layout.packed_shape`) into a flat buffer.

    Attributes:
      group: elements of a group.
      whole_steps: reduction steps in whole groups, where their number is known.
      lanes: reduction steps of columns that are transposed together; 0 where there are too few of them.
    """

    def __init__(self, contraction: Contraction, layout: PairsLayout, blocks: Size, evaluator: Evaluator, buffer: ir.Value) -> None:
        self.c, self.layout, self.blocks, self.evaluator, self.buffer = contraction, layout, blocks, evaluator, buffer
        self.element = contraction.b.node.element
        self.in_columns = contraction.b.offset.coefficient(contraction.column)
        self.in_depth = contraction.b.offset.coefficient(layout.inner[0])
        self.group, size = layout.group, layout.size
        self.whole_steps = size // layout.group * layout.group if isinstance(size, int) else 0
        widths = (COLUMNS * self.group >> i for i in range(3)) if self.in_depth == 1 else ()
        self.lanes = next((width for width in widths if width <= self.whole_steps), 0)

    def emit(self, parallel: bool, work: Size = 0, grain: int = 0) -> None:
        """The loops: blocks of columns in parallel where it is asked for (see `emit.parallel_loop`)."""
        c, layout = self.c, self.layout
        loops = [*c.batch, None, *layout.outer, *layout.merged]
        extents = [v.extent if v is not None else self.blocks for v in loops]
        full = c.column_extent // COLUMNS
        with nest.box(extents, self.evaluator, len(c.batch) + 1 if parallel else 0, work=work, grain=grain) as indices:
            block = indices[len(c.batch)]
            point = {v: index for v, index in zip(loops, indices, strict=True) if v is not None}
            rounds = linearize([point[v] for v in layout.merged], [v.extent for v in layout.merged])
            target = packed_offset(c, layout, self.blocks, point, block) + rounds * layout.pitch * COLUMNS

            def whole() -> None:
                at = block if full == self.blocks else Index.of(Var.below(full, emit.materialize(block), name="block"))
                self._whole(at * COLUMNS, point, target)

            if full == self.blocks:
                whole()
            elif full == 0:
                self._partly(block, point, target)
            else:
                nest.when(emit.below(block, full), self.evaluator, whole, lambda: self._partly(block, point, target))

    def _value(self, column: Index, step: Index, point: Point) -> ir.Value:
        """Element(s) of B; of the last column where a call says how many columns there are, and it has fewer: what follows is not used."""
        c = self.c
        if not isinstance(c.column_extent, int) and self.in_columns != 1:
            column = emit.at_most(column, c.column_extent - 1)
        offset = c.b.offset.at({**point, **c.column_point(column), self.layout.inner[0]: step})
        return self.evaluator.load_from(self.evaluator.memory(c.b.node), self.element, offset)

    def _whole(self, first: Index, point: Point, target: Index) -> None:
        """A block of COLUMNS columns."""
        if not isinstance(self.layout.size, int):
            self._masked(first, emit.index_constant(COLUMNS), point, target)
            return
        size, whole = self.layout.size, self.whole_steps
        if self.in_columns == 1:
            self._interleaved(first, point, target)
        elif self.lanes:
            with nest.blocks(whole, self.lanes, self.evaluator) as start:
                self._transposed(first, start, point, target)
            if size > whole:
                self._elements(first, whole, COLUMNS, point, target)
        else:
            self._elements(first, 0, COLUMNS, point, target)
        self._end(target)

    def _end(self, target: Index) -> None:
        """Writes zeros after the last group that has steps."""
        size, pitch = ceil_div(self.layout.size, self.group) * self.group, self.layout.pitch
        set_zeros(self.buffer, target + size * COLUMNS, (pitch - size) * COLUMNS, self.evaluator)

    def _interleaved(self, first: Index, point: Point, target: Index) -> None:
        """Columns that are neighbours in memory: a group of rows of B by turns."""
        size, whole, group = int(self.layout.size), self.whole_steps, self.group

        def rows(step: Index, count: int) -> None:
            zero = emit.zero(emit.vector_of(COLUMNS, self.element))
            with self.evaluator.lanes(COLUMNS) as lane:
                found = [self._value(first + Index.of(lane), step + i, point) for i in range(count)]
            self._store(found + [zero] * (group - count), target + step * COLUMNS)

        if whole:
            with nest.loop(0, whole // group, self.evaluator) as loop:
                rows(loop * group, group)
        if size > whole:
            rows(Index(whole), size - whole)

    def _store(self, rows: Sequence[ir.Value], target: Index) -> None:
        """Stores rows of a group by turns."""
        vectors.store(vectors.by_turns(rows), self.buffer, target)

    def _masked(self, first: Index, count: ir.Value, point: Point, target: Index) -> None:
        """The first `count` columns of a block, which are neighbours in memory, where a call says how many there are, or how deep they are:
        zeros are in the other columns and after the last step."""
        size, group = self.layout.size, self.group
        whole = size // group

        def rows(at: Index, columns: Callable[[Index], ir.Value]) -> None:
            found = []
            for step in (at * group + i for i in range(group)):
                with self.evaluator.lanes(COLUMNS, emit.first_lanes(columns(step), COLUMNS)) as lane:
                    found.append(self._value(first + Index.of(lane), step, point))
            self._store(found, target + at * (group * COLUMNS))

        def inside(step: Index) -> ir.Value:
            return emit.select(emit.below(step, size), count, emit.index_constant(0))

        for low, high, columns in ((0, whole, lambda _: count), (whole, self.layout.pitch // group, inside)):
            with nest.loop(low, high, self.evaluator, name="group") as loop:
                rows(loop, columns)

    def _transposed(self, first: Index, start: Index, point: Point, target: Index) -> None:
        """Columns whose reduction steps are neighbours in memory: `lanes` steps of each, transposed as groups."""

        def read(column: int) -> ir.Value:
            with self.evaluator.lanes(self.lanes) as lane:
                return self._value(first + column, start + Index.of(lane), point)

        for i, row in enumerate(transposed_groups(map(read, range(COLUMNS)), self.group)):
            vectors.store(row, self.buffer, target + start * COLUMNS + self.group * i * COLUMNS)

    def _partly(self, block: Index, point: Point, target: Index) -> None:
        """A block after whose columns there are zeros."""
        count = emit.larger(emit.materialize(block * -COLUMNS + self.c.column_extent), 0)
        if self.in_columns == 1:
            self._masked(block * COLUMNS, count, point, target)
            return
        if not isinstance(self.c.column_extent, int):
            self._whole(block * COLUMNS, point, target)
            return
        self._elements(block * COLUMNS, 0, count, point, target)
        self._end(target)

    def _elements(self, first: Index, low: int, count: "int | ir.Value", point: Point, target: Index) -> None:
        """Element by element: `count` columns for the steps from `low` (of whole groups) on, zeros in the other columns and beside the last
        step."""
        size, whole, group = int(self.layout.size), self.whole_steps, self.group
        if whole > low:
            with nest.loop(low // group, whole // group, self.evaluator) as number:
                for i in range(group):
                    step = number * group + i
                    at = target + number * (group * COLUMNS) + i
                    self._row(first, count, at, lambda column: self._value(column, step, point))  # noqa: B023 (called now)
        for i in range(group if size > whole else 0):
            columns = count if whole + i < size else 0
            self._row(first, columns, target + whole * COLUMNS + i, lambda column: self._value(column, Index(whole + i), point))  # noqa: B023

    def _row(self, first: Index, count: "int | ir.Value", target: Index, value: Callable[[Index], ir.Value]) -> None:
        """One reduction step of a block: an element of each group from `target` on."""
        for low, high, make in ((0, count, value), (count, COLUMNS, lambda _: emit.zero(self.element))):
            if low == high:
                continue
            with nest.loop(low, high, self.evaluator, below=COLUMNS) as column:
                element = make(first + column)
                emit.create("memref.store", [], [element, self.buffer, emit.materialize(target + column * self.group)])
