"""The schedule of products of a small operand of few rows with a large one that is contiguous along the depth: matrix times vector, say.

Such a product is bound by the memory that the large operand is read from, and lanes along the few rows would be idle. So lanes run along
the depth: the large operand is read once, where it lies, or from where computed indices say (a gather). A tile holds the vectors of sums of
some rows and some columns. A tree of additions across lanes makes one vector of these, and the sums wait in a buffer of the thread for the
epilogue of their block of columns.

Where the number of rows is symbolic, a call with more than a few of them runs the loops of `blocked`, which are in the same function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.contraction.microkernel import COLUMN, LEFT, Columns, Microkernel, Point, Sums, element
from relayc.pipelines.targets.cpu.strategies.contraction.nest import ContractionNest, emit_first
from relayc.pipelines.targets.cpu.strategies.contraction.plan import OperandSource, Plan, element_bytes
from relayc.pipelines.targets.cpu.strategies.contraction.strategy import contraction_nests, multiply_adds
from relayc.pipelines.targets.cpu.strategies.contraction.tile import RegisterTile, cycles, default_tile, lanes_of
from relayc.pipelines.te.read.access import Accesses, MergedLoop, collapse
from relayc.pipelines.te.read.contraction import Contraction, ProductOperand, match, reading_of
from relayc.pipelines.te.read.graph import Kernel, Node, memory_of
from relayc.pipelines.tir.strategy.packing import Packing
from relayc.pipelines.tir.strategy.scheduled import KernelFunction, Scheduled, is_param
from relayc.pipelines.tir.strategy.tuning import Tuning, powers_of_two
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import flat, local_buffer
from relayc.symbolic import Dim, Size, bounds, ceil_div, guess, minimum

RowsCode = Callable[[Sequence[Index], Index], None]
"""Emits the code of a tile of rows: their indices, and the first one's place among the rows of the buffer of sums."""

MOST_ROWS = 16
"""Rows of the small operand, where their number is known: beyond, lanes along them are not idle."""
MOST_ROWS_OF_CALL = 12
"""The maximum if the number of rows depends on the call."""
TILE_ROWS = 8
"""Rows of a tile, at most: more would leave registers for one column only."""
TILE_COLUMNS = 8
"""Columns of a tile, at most: each is a stream of memory of its own."""
HEIGHTS_OF_CALL = (1, 2, 4)
"""Rows of a tile where only a call knows their number; the last tile repeats the last row."""
BLOCK = 64
"""Columns of a task, whose sums wait in the first-level cache."""
MOST_BLOCK = 1 << 12
"""The maximum if it is set explicitly."""
COPIED = 1.5
"""Cycles to copy an element of the small operand, which has to be contiguous along the depth, too."""
MERGE = 2.5
"""Cycles that the sums of an element take to be added up across lanes, stored, and read again by the epilogue."""


@dataclass(frozen=True)
class InnerParameters:
    """Tunable numbers.

    Attributes:
      sums: vectors of sums of a tile, at most: the most rows that a tile may have, too.
      columns: of a tile, at most.
      block: columns of a task.
    """

    sums: int
    columns: int
    block: int

    def heights(self, rows: Size) -> list[int]:
        """Rows of the tiles that cover so many rows, the higher ones first; for a symbolic number, the rows that tiles may have."""
        if not isinstance(rows, int):
            return [height for height in HEIGHTS_OF_CALL if height <= self.sums]
        count = max(1, ceil_div(rows, min(TILE_ROWS, self.sums)))
        return [rows // count + (i < rows % count) for i in range(count)]

    def width(self, height: int) -> int:
        """Columns of a tile of so many rows."""
        return max(1, min(self.columns, self.sums // height))


def schedule_inner_products(kernel: Kernel, target: Target, tuning: Tuning) -> Scheduled | None:
    """Schedules a product with an operand that has few rows, or may have few; None for any other kernel."""
    nests = inner_product_nests(kernel, target, tuning)
    if nests and nests[-1].most_rows is not None:
        others = contraction_nests(kernel, target, tuning)
        return emit_first([*nests, *others]) if others else None
    return emit_first(nests) if nests else None


def inner_product_nests(kernel: Kernel, target: Target, tuning: Tuning) -> list["InnerProducts"]:
    """The loops of such a product: one nest where the number of rows is known, else one for each operand that may have few."""
    every = match(kernel)
    found = [c for c in every if _is_possible(c, every, kernel, target)]
    known = [c for c in found if isinstance(c.row_extent, int)]
    if known:
        found = [min(known, key=lambda c: _cycles(c, kernel, target))]
    return [_nest(kernel, c, every, target, tuning) for c in found]


def _is_possible(c: Contraction, every: Sequence[Contraction], kernel: Kernel, target: Target) -> bool:
    """Whether B is large and lies along the depth, and A has few rows, or may have few, which lanes along them serve no better; `every` are
    the roles that the operands can take."""
    if c.a.checks or len(c.columns) != 1 or len(c.rows) > 1 or c.node.element.width < 16 or c.b.node.element.width < 8:
        return False
    if is_param(kernel, c.b.node) or not _is_along_depth(c.b, c) or _shown(c, every) is None:
        return False
    rows, lanes = c.row_extent, lanes_of(c, target)
    if guess(c.reduction[-1].extent) < lanes:
        return False
    if isinstance(rows, Dim):
        return bounds(rows)[0] <= MOST_ROWS_OF_CALL and not is_param(kernel, c.a.node)
    if rows == 1:
        return True
    return rows <= MOST_ROWS and _cycles(c, kernel, target) < _cycles_along_rows(c, every, target)


def _is_along_depth(operand: ProductOperand, c: Contraction) -> bool:
    reading = reading_of(operand)
    return reading is not None and reading.is_contiguous_along(c.reduction[-1])


def _shown(c: Contraction, every: Sequence[Contraction]) -> Contraction | None:
    """The contraction with roles such that adjacent columns are adjacent in the result; None if there are none."""
    one_loop = (f for f in every if len(f.columns) == 1 and len(f.rows) <= 1)
    return next((f for f in one_loop if f.store_stride(f.column) == 1 and (f is c or f.column is c.rows[-1].var)), None)


def _cycles(c: Contraction, kernel: Kernel, target: Target) -> float:
    """Cycles of a batch."""
    p, lanes, inner, rows = default_parameters(c, target), lanes_of(c, target), guess(c.reduction[-1].extent), guess(c.row_extent)
    steps = guess(c.depth) // max(1, inner) * ceil_div(inner, lanes)
    heights = p.heights(rows)
    width = p.width(heights[0])
    copied = COPIED * rows * guess(c.depth) if _source_of_a(c, kernel) is OperandSource.COPY else 0.0
    return copied + guess(c.column_extent) * sum(steps * cycles(height, width) / width + MERGE * height for height in heights)


def _cycles_along_rows(c: Contraction, every: Sequence[Contraction], target: Target) -> float:
    """The cycles if lanes run along the rows."""
    other = next(f for f in every if f is not c)
    tile = default_tile(other, target)
    whole, left = divmod(guess(c.row_extent), tile.width)
    last = cycles(tile.rows, len(vectors.pieces(left, tile.lanes))) if left else 0.0
    return ceil_div(guess(c.column_extent), tile.rows) * guess(c.depth) * (whole * cycles(tile.rows, tile.vectors) + last)


def _source_of_a(c: Contraction, kernel: Kernel) -> OperandSource:
    if memory_of(c.a.node) is not None and _is_along_depth(c.a, c):
        return OperandSource.MEMORY
    return OperandSource.PARAMETER if is_param(kernel, c.a.node) else OperandSource.COPY


def default_parameters(c: Contraction, target: Target) -> InnerParameters:
    """Sums in half of the registers, and no more than one vector holds when they are added up."""
    columns = c.column_extent if isinstance(c.column_extent, int) else TILE_COLUMNS
    return InnerParameters(min(lanes_of(c, target), target.num_vector_registers // 2), min(TILE_COLUMNS, columns), BLOCK)


def _nest(kernel: Kernel, c: Contraction, every: Sequence[Contraction], target: Target, tuning: Tuning) -> "InnerProducts":
    shown, default = _shown(c, every), default_parameters(c, target)
    assert shown is not None
    values: dict[str, Callable[[InnerParameters], list[int]]] = {
        "sums": lambda p: powers_of_two(1, default.sums),
        "columns": lambda p: powers_of_two(1, default.columns),
        "block": lambda p: powers_of_two(p.columns, MOST_BLOCK),
    }
    p = tuning.replace(default, ("sums", "columns", "block"), lambda p: _fitted(p, default), values)
    tile = RegisterTile(p.heights(c.row_extent)[0], 1, lanes_of(c, target))
    plan = Plan(kernel, c, tile, _source_of_a(c, kernel), OperandSource.MEMORY, *multiply_adds(c, tuning), target, False)
    return InnerProducts(plan, shown, p, _ahead(c, p.width(tile.rows), target))


def _ahead(c: Contraction, width: int, target: Target) -> tuple[Node, Size]:
    """Prefetches of a tile of `width` columns: the data that the next tile reads at the same step, if B does not fit any cache. Hardware
    prefetching handles a few long rows, but not rows of a page or less."""
    reading = reading_of(c.b)
    assert reading is not None
    source = memory_of(reading.node)
    assert source is not None
    item, distance = element_bytes(source), width * reading.offset.coefficient(c.column)
    is_far = guess(source.size) * item > target.l3_bytes // 2
    return source, distance if is_far and 0 < guess(distance) * item <= target.l2_bytes // 4 else 0


def _fitted(p: InnerParameters, default: InnerParameters) -> InnerParameters:
    """The possible numbers nearest to these."""
    columns = min(p.columns, default.columns)
    return InnerParameters(min(p.sums, default.sums), columns, max(columns, p.block))


class InnerProducts(ContractionNest):
    """Tasks are blocks of columns, of all rows.

    Buffers of a thread: `sums` has those of a block, in the order of rows and columns of `shown`.

    Attributes:
      shown: the contraction in the roles in which its results are stored.
      heights: rows of the tiles, as `InnerParameters.heights` says.
      rows: how many there are, at most.
      ahead: what is asked for ahead of its use, and by how many elements; 0 for not at all.
    """

    def __init__(self, plan: Plan, shown: Contraction, parameters: InnerParameters, ahead: tuple[Node, Size]) -> None:
        self.shown, self.p = shown, parameters
        c = plan.contraction
        self.heights = parameters.heights(c.row_extent)
        self.rows = c.row_extent if isinstance(c.row_extent, int) else MOST_ROWS_OF_CALL
        few = None if isinstance(c.row_extent, int) else self.rows
        copied = c.batches * minimum(c.row_extent, self.rows) * c.depth * element_bytes(c.a.node)
        super().__init__(plan, copied if plan.a is OperandSource.COPY else 0, few)
        loops = [MergedLoop([v], v.extent) for v in c.reduction]
        if memory_of(c.b.node) is not None and memory_of(c.a.node) is not None:
            loops = collapse(c.reduction, Accesses([(o.node, o.offset) for o in (c.a, c.b)]))
        self.depth_loops = loops
        self.is_turned = shown.column is not c.column
        """Whether the rows become columns when results are stored."""
        self.pitch = self.rows if self.is_turned else parameters.block
        self.rows_copy: ir.Value | None = None
        self.ahead = ahead
        self.row = c.rows[-1].var if c.rows else Var(0, 0, name="row")

    def packings(self) -> dict[int, Packing]:
        c = self.c
        if self.plan.a is not OperandSource.PARAMETER:
            return {}
        loops = [(v, v.extent) for v in c.batch] + [(self.row, c.row_extent)] + [(v, v.extent) for v in c.reduction]
        shape = [extent for _, extent in loops]
        return {c.a.node.position: Packing.reading("rows", c.a.node.shape, c.a.indices, loops, shape, batch=len(c.batch), rows=1)}

    # ---- loops

    def _loops(self, body: KernelFunction, packed: ir.Value | None) -> None:
        c, plan = self.c, self.plan
        self.micro = Microkernel(self.shown, self.tile, self.evaluator, body.outputs[0])
        if plan.a is OperandSource.PARAMETER:
            self.rows_copy = flat(body.arguments[c.a.node.position])
        elif plan.a is OperandSource.COPY:
            self.rows_copy = self._copies(body, c.a.node.element)
            self._copy_rows(self.rows_copy)
        block = MergedLoop([Var(0, 0, name="block")], ceil_div(c.column_extent, self.p.block))
        batch = [MergedLoop([v], v.extent) for v in c.batch]
        with self._tasks([*batch, block], self._allocate) as point:
            self._task(point[block.var], point)

    def _allocate(self) -> None:
        """The buffer of a thread, padded by a full vector."""
        self.sums = local_buffer(self.rows * self.p.block + self.tile.lanes, self.c.node.element)

    def _copied_at(self, point: Point) -> Index:
        """Where the element of A for a point is in a copy: row by row."""
        c = self.c
        return (c.batch_at(point) * c.row_extent + point.get(self.row, Index())) * c.depth + c.step(point)

    def _copy_rows(self, out: ir.Value) -> None:
        """The copy of A, as a whole before all tiles."""
        c = self.c
        with self._tasks([MergedLoop([v], v.extent) for v in c.batch], work=c.batches * c.row_extent * c.depth) as point:
            row = Var.below(c.row_extent, name="row")
            steps = [Var(0, v.high, name=v.name) for v in c.reduction]
            with nest.serial([row, *steps], self.evaluator):
                at = {**point, self.row: Index.of(row), **{v: Index.of(s) for v, s in zip(c.reduction, steps, strict=True)}}
                self.evaluator.store(element(c.a, at, self.evaluator), out, self._copied_at(at))

    def _task(self, block: Index, point: Point) -> None:
        """A block of columns: the sums of its tiles, then the epilogue."""
        first, extent, size = block * self.p.block, self.c.column_extent, self.p.block
        is_whole = isinstance(extent, int) and extent % size == 0
        count = Index(size) if is_whole else emit.at_most(first * -1 + extent, size)

        def code(height: int, rows: Callable[[RowsCode], None], number: Size) -> None:
            self._columns(first, count, point, self.p.width(height), rows)
            (self._finish_turned if self.is_turned else self._finish)(first, count, number, point)

        extent = self.c.row_extent
        if isinstance(extent, int):
            code(self.heights[0], self._known_rows, extent)
        else:
            self._rows_of_call(self.heights, code)

    def _known_rows(self, code: RowsCode) -> None:
        start = 0
        for height in self.heights:
            with self.evaluator.scope():
                code([Index(start + i) for i in range(height)], Index(start))
            start += height

    def _rows_of_call(self, heights: Sequence[int], code: Callable[[int, Callable[[RowsCode], None], Size], None]) -> None:
        """Emits `code(height, rows, number of rows)` for the height of which a call has one tile, or else for the greatest; `rows` emits a
        loop over tiles."""
        height, *higher = heights
        extent = self.c.row_extent

        def rows(inner: RowsCode) -> None:
            with nest.loop(0, ceil_div(extent, height), self.evaluator, below=ceil_div(self.rows, height), name="rows") as tile:
                start = tile * height
                inner([emit.at_most(start + i, extent - 1) for i in range(height)], start)

        if not higher:
            code(height, rows, extent)
            return
        one = lambda inner: inner([Index(i) for i in range(height)], Index())  # noqa: E731 (an argument, not a definition)
        is_height = emit.compare("eq", emit.index_constant(extent), emit.index_constant(height))
        nest.when(is_height, self.evaluator, lambda: code(height, one, height), lambda: self._rows_of_call(higher, code))

    def _columns(self, first: Index, count: Index, point: Point, width: int, rows: Callable[[RowsCode], None]) -> None:
        """The tiles of a block of `count` columns, of so many columns; the last one starts early, or has fewer columns."""

        def tile(start: Index, columns: int) -> None:
            rows(lambda some, slot: self._tile(some, slot, first, start, columns, point))

        def tiles(low: ir.Value | int, high: ir.Value | int, last: ir.Value | None, columns: int) -> None:
            with nest.loop(low, high, self.evaluator, step=columns, below=self.p.block, name="column") as start:
                if last is not None:
                    start = self.evaluator.opaque(emit.arith("minsi", emit.materialize(start), last), 0, self.p.block - 1)
                tile(start, columns)

        if count.is_constant:
            whole = count.const // width * width
            tiles(0, whole, None, width)
            if count.const > whole:
                with self.evaluator.scope():
                    tile(Index(whole), int(count.const - whole))
            return
        some = emit.materialize(count)
        last = emit.arith("subi", some, emit.index_constant(width))
        end = emit.select(emit.compare("sge", last, emit.index_constant(0)), some, emit.index_constant(0))
        tiles(0, end, last, width)
        tiles(end, some, None, 1)

    # ---- a tile

    def _tile(self, rows: Sequence[Index], slot: Index, first: Index, start: Index, columns: int, point: Point) -> None:
        """The sums of some rows, whose sums begin in row `slot` of the buffer, and of some columns of a block."""
        left = [{**point, self.row: row} for row in rows]
        right = [{**point, self.c.column: first + start + j} for j in range(columns)]
        pairs = [(p, q) for q in right for p in left] if self.is_turned else [(p, q) for p in left for q in right]
        with self.evaluator.lanes(self.tile.lanes):
            zero = emit.zero(emit.vector_of(self.tile.lanes, self.c.node.element))
        found = self._over(self.depth_loops, {}, pairs, [zero] * len(pairs))
        sums = vectors.sums_across(found)
        major, minor, size = (start, slot, len(rows)) if self.is_turned else (slot, start, columns)
        if size == self.pitch:
            size = len(pairs)
        for k in range(0, len(pairs), size):
            part = vectors.shuffle(sums, sums, range(k, k + size))
            vectors.store(part, self.sums, (major + k // size) * self.pitch + minor)

    def _over(self, loops: Sequence[MergedLoop], at: Point, pairs: Sequence[tuple[Point, Point]], sums: list[ir.Value]) -> list[ir.Value]:
        """The sums of pairs of a row and a column after loops over the depth, the innermost one in vectors."""
        loop, *rest = loops
        extent, lanes = loop.extent, self.tile.lanes
        if rest:
            inner = lambda k, sums: self._over(rest, {**at, **loop.at(k)}, pairs, sums)  # noqa: E731
            return nest.carried(extent, "k", self.evaluator, sums, inner)
        whole = extent // lanes * lanes
        for low, high, is_masked in ((0, whole, False), (whole, extent, True)):
            if low == high:
                continue
            with nest.carrying(low, high, self.evaluator, sums, step=lanes, below=extent, name="k") as (var, steps):
                mask = emit.first_lanes(emit.materialize(var * -1 + extent), lanes) if is_masked else None
                with self.evaluator.along(lanes, mask) as lane:
                    here = {**at, **loop.at(var + lane)}
                    emit.yield_values([self._added(p, q, here, s) for (p, q), s in zip(pairs, steps.inner_iter_args, strict=True)])
            sums = list(steps.results)
        return sums

    def _added(self, row: Point, column: Point, at: Point, total: ir.Value) -> ir.Value:
        """The sum of a pair with the products of some steps."""
        c, left = self.c, {**row, **at}
        if self.rows_copy is None:
            a = element(c.a, left, self.evaluator)
        else:
            place = self._copied_at(left)
            buffer, type_ = self.rows_copy, c.a.node.element
            a = self.evaluator.once(("row", place.key), lambda: self.evaluator.load_from(buffer, type_, place))
        with self.evaluator.asking_ahead(*self.ahead):
            b = element(c.b, {**column, **at}, self.evaluator)
        return emit.multiply_add(emit.convert(a, c.a.casts), emit.convert(b, c.b.casts), total)

    # ---- epilogue

    def _finish(self, first: Index, count: Index, rows: Size, point: Point) -> None:
        """The epilogue of some rows, row by row, in vectors of columns; what is left over of a block is a masked vector."""
        lanes = self.tile.lanes

        def code(low: ir.Value | Size, high: ir.Value | Size, row: Index, is_whole: bool) -> None:
            with nest.loop(low, high, self.evaluator, step=lanes, below=self.p.block, name="column") as start:
                left = {} if is_whole else {LEFT: start * -1 + count}
                at = {**point, self.row: row, COLUMN: first + start, **left}
                self._finish_row(at, [(0, lanes)], row * self.pitch + start)

        with nest.loop(0, rows, self.evaluator, below=self.rows, name="row") as row:
            if count.is_constant and count.const % lanes == 0:
                code(0, count.const, row, True)
                return
            value, width = emit.materialize(count), emit.index_constant(lanes)
            whole = emit.arith("subi", value, emit.arith("remui", value, width))
            code(0, whole, row, True)
            code(whole, value, row, False)

    def _finish_turned(self, first: Index, count: Index, rows: Size, point: Point) -> None:
        """The epilogue of some rows column by column, in vectors of rows."""
        left: Point = {}
        if isinstance(rows, int):
            pieces = vectors.pieces(rows, self.tile.lanes)
        else:
            lanes = min(self.tile.lanes, 1 << (self.rows - 1).bit_length())
            left, pieces = {LEFT: Index(rows)}, [(start, lanes) for start in range(0, self.rows, lanes)]
        with nest.loop(0, emit.materialize(count), self.evaluator, below=self.p.block, name="column") as column:
            at = {**point, self.c.column: first + column, COLUMN: Index(), **left}
            self._finish_row(at, pieces, column * self.pitch)

    def _finish_row(self, point: Point, columns: Columns, place: Index) -> None:
        sums = Sums(self.sums, self.pitch, self.c.node.element).load(1, columns, place, self.evaluator)
        first = self.micro.initial([point], columns)
        self.micro.finish([point], columns, {key: vectors.add(first[key], value) for key, value in sums.items()}, None)
