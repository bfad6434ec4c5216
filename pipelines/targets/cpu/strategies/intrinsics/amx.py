"""Products on AMX tiles: dot_amx_{rows}x{columns}.

The sums of a block of tiles stay in tile registers while the loop over the steps runs, 32 of them an instruction. All tiles of a function
have one shape, as it has one configuration. Where rows or steps are missing, tiles are read from copies of what is there: of the rows of A
step by step, and of the last steps of both operands, with zeros behind them.
"""

from dataclasses import dataclass
from functools import partial

from relayc import te
from relayc.dialects.mlir import ir, lasting_context
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.bf16.amx import MAX_ROWS, MAX_STEP, SUMS, AmxSums
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock
from relayc.pipelines.targets.cpu.strategies.bf16.nest import Values
from relayc.pipelines.tir.editing.intrinsics import TensorCall, TensorIntrin
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.buffers import buffer_of_thread
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import ceil_div


@dataclass(frozen=True)
class TilesDot:
    """A block of tiles of a product of pairs of bf16.

    Rows, columns and steps may be fewer; columns only where B has room for all.
    """

    name: str
    rows: int
    columns: int

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return self.rows // ceil_div(self.rows, MAX_ROWS)

    def __call__(self, call: TensorCall) -> None:
        """Emits the steps of a block of tiles."""
        self._check(call)
        rows = call.counts["rows"]
        if _number(rows) is None and all(call[name].has_room("rows", self.rows) for name in "AC"):
            rows = Index(self.rows)
        number = _number(rows)
        if number is not None:
            self._emit(call, ceil_div(number, self.height), rows)
        else:
            self._as_many_as_needed(call, self.rows // self.height, rows)

    def _as_many_as_needed(self, call: TensorCall, tiles: int, rows: Index) -> None:
        """A branch for each number of tiles that has the rows of a call."""
        if tiles == 1:
            self._emit(call, 1, rows)
            return
        more = emit.compare("sgt", emit.materialize(rows), emit.index_constant((tiles - 1) * self.height))
        nest.when(more, Evaluator({}), lambda: self._emit(call, tiles, rows), lambda: self._as_many_as_needed(call, tiles - 1, rows))

    def _emit(self, call: TensorCall, tiles: int, rows: Index) -> None:
        columns = call.counts["columns"]
        wide = ceil_div(_number(columns) or self.columns, COLUMNS)
        if not call["B"].has_room("columns", wide * COLUMNS):
            raise ScheduleError(f"tensor intrinsic {self.name}: B: expected room for {wide} tiles of {COLUMNS} columns, found {columns}")
        _Product(call, SumBlock(self.height, tiles, wide), rows).emit()

    def _check(self, call: TensorCall) -> None:
        where = f"tensor intrinsic {self.name}"
        if not call.target.has("amx-bf16"):  # which has amx-tile
            raise ScheduleError(f"{where}: expected a target with amx-tile and amx-bf16, found {call.target}")
        for name, apart in (("A", call["A"].strides[1]), ("B", call["B"].strides[2])):
            if apart != 2:
                raise ScheduleError(f"{where}: {name}: expected pairs side by side, found them {apart} elements apart")


def _number(index: Index) -> int | None:
    """An index that is a number."""
    return index.const if index.is_constant and isinstance(index.const, int) else None


class _Product:
    """A block of tiles at a point.

    Args:
      block: of which the last row of tiles may have fewer rows.
      rows: that there are.
    """

    def __init__(self, call: TensorCall, block: SumBlock, rows: Index) -> None:
        self.a, self.b, self.c, self.accumulates = call["A"], call["B"], call["C"], call.accumulates
        self.block, self.rows, self.columns, self.depth = block, rows, call.counts["columns"], call.counts["depth"]
        depth = _number(self.depth)
        self.step = min(depth, MAX_STEP) if depth is not None and depth % 2 == 0 else MAX_STEP
        self.tiles = AmxSums(block, self.step)
        self.evaluator = Evaluator({})
        height = block.row_tiles * block.rows
        full = _number(rows) == height
        self.reads_all, self.writes_all_rows = (full or operand.has_room("rows", height) for operand in (self.a, self.c))
        full = _number(self.columns) == block.width
        self.writes_all_columns = full or self.c.has_room("columns", block.width)
        self.writes_all = self.writes_all_rows and self.writes_all_columns

    def emit(self) -> None:
        """Emits the steps, starting from 0 or from the contents of C."""
        begin = self.tiles.begin() if not (self.accumulates and self.writes_all) else self._held()
        whole, left = self._divided(self.depth, self.step)
        var = Var(0, 0, name="k")
        with emit.for_loop(0, emit.materialize(whole), 1, var, begin) as loop:
            emit.yield_values(self._step(Index.of(var) * (self.step // 2), loop.inner_iter_args))
        sums = loop.results
        if not (left.is_constant and left.const == 0):
            once = Var(0, 0)
            with emit.for_loop(0, emit.materialize(emit.at_most(left, 1)), 1, once, sums) as loop:
                emit.yield_values(self._last_step(whole * (self.step // 2), left, loop.inner_iter_args))
            sums = loop.results
        self._store(sums)

    @staticmethod
    def _divided(index: Index, divisor: int) -> tuple[Index, Index]:
        """Quotient and remainder."""
        if index.is_constant:
            return Index(index.const // divisor), Index(index.const % divisor)
        value, by = emit.materialize(index), emit.index_constant(divisor)
        whole = Index.of(Var(0, 0, emit.arith("divui", value, by), name="steps"))
        return whole, Index.of(Var.below(divisor, emit.arith("remui", value, by), name="left"))

    def _held(self) -> Values:
        """The contents of C."""
        load, of = self.tiles.load, self.tiles.sum_type
        return [load(of, self.c.buffer, self.c.at(i * self.block.rows, j, 0), self.c.strides[0]) for i, j in self._places()]

    def _places(self) -> list[tuple[int, int]]:
        """(row of tiles, column of tiles)."""
        return [(i, j) for i in range(self.block.row_tiles) for j in range(self.block.column_tiles)]

    def _valid(self, tile: int) -> Index:
        """Rows that there are of a row of tiles."""
        rows = self.rows - tile * self.block.rows
        return Index(self.block.rows) if tile < self.block.row_tiles - 1 else rows

    # ---- steps

    def _step(self, k: Index, sums: Values) -> Values:
        """The sums after the steps from pair `k` on."""
        *others, last = range(self.block.row_tiles)
        left = [partial(self._tile_of_a, i, k) for i in others] + [partial(self._tile_of_a if self.reads_all else self._rows_of, last, k)]
        right = [partial(self._tile_of_b, j, k) for j in range(self.block.column_tiles)]
        return self.tiles.multiply_add(left, right, sums)

    def _tile_of_b(self, tile: int, k: Index) -> ir.Value:
        return self.tiles.load(self.tiles.b_type, self.b.buffer, self.b.at(tile, k, 0, 0), self.b.strides[1])

    def _tile_of_a(self, tile: int, k: Index) -> ir.Value:
        return self.tiles.load(self.tiles.a_type, self.a.buffer, self.a.at(tile * self.block.rows, k, 0), self.a.strides[0])

    def _rows_of(self, tile: int, k: Index) -> ir.Value:
        """A tile of A with only some valid rows; the others affect only sums that are not used."""
        copy = buffer_of_thread(self.block.rows * self.step, self.a.element)
        with nest.loop(0, emit.materialize(self._valid(tile)), self.evaluator, below=self.block.rows, name="row") as row:
            for start, lanes in vectors.pieces(self.step, MAX_STEP):
                at = self.a.at(row + tile * self.block.rows, k, start)
                vectors.store(vectors.load(self.a.buffer, at, lanes), copy, row * self.step + start)
        return self.tiles.load(self.tiles.a_type, copy, Index(), self.step)

    def _last_step(self, k: Index, left: Index, sums: Values) -> Values:
        """The sums after the `left` steps from pair `k` on, fewer than an instruction has."""
        rows = [self._last_rows(i, k, left) for i in range(self.block.row_tiles)]
        columns = [self._last_pairs(j, k, left) for j in range(self.block.column_tiles)]
        tiles = self.tiles
        xs = [partial(tiles.load, tiles.a_type, copy, Index(), self.step) for copy in rows]
        ys = [partial(tiles.load, tiles.b_type, copy, Index(), 2 * COLUMNS) for copy in columns]
        return tiles.multiply_add(xs, ys, sums)

    def _last_rows(self, tile: int, k: Index, left: Index) -> ir.Value:
        """A copy of a tile of A with the last steps, and zeros behind."""
        copy = buffer_of_thread(self.block.rows * self.step, self.a.element)
        count = Index(self.block.rows) if self.reads_all else self._valid(tile)
        with nest.loop(0, emit.materialize(count), self.evaluator, below=self.block.rows, name="row") as row:
            mask = emit.first_lanes(emit.materialize(left), self.step)
            with self.evaluator.lanes(self.step, mask) as lane:
                at = self.a.at(row + tile * self.block.rows, k, 0) + Index.of(lane)
                value = self.evaluator.load_from(self.a.buffer, self.a.element, at)
            vectors.store(value, copy, row * self.step)
        return copy

    def _last_pairs(self, tile: int, k: Index, left: Index) -> ir.Value:
        """A copy of a tile of B with the last steps, and zeros behind."""
        width, most = 2 * COLUMNS, self.step // 2
        copy = buffer_of_thread(most * width, self.b.element)
        pairs, half = self._divided(left, 2)
        with nest.loop(0, emit.materialize(pairs), self.evaluator, below=most, name="pair") as pair:
            vectors.store(vectors.load(self.b.buffer, self.b.at(tile, k + pair, 0, 0), width), copy, pair * width)
        # A pair with only its first step.
        with nest.loop(emit.materialize(pairs), emit.materialize(pairs + half), self.evaluator, below=most, name="pair") as pair:
            value = vectors.load(self.b.buffer, self.b.at(tile, k + pair, 0, 0), width)
            zero = emit.zero(value.type)
            vectors.store(vectors.shuffle(value, zero, [i + i % 2 * width for i in range(width)]), copy, pair * width)
        with nest.loop(emit.materialize(pairs + half), most, self.evaluator, name="pair") as pair:
            vectors.store(emit.zero(emit.vector_of(width, self.b.element)), copy, pair * width)
        return copy

    # ---- results

    def _store(self, sums: Values) -> None:
        """Stores the sums, or adds them to C if they did not start from its contents."""
        scratch: ir.Value | None = None
        for (i, j), total in zip(self._places(), sums, strict=True):
            rows = Index(self.block.rows) if self.writes_all_rows else self._valid(i)
            columns = Index(COLUMNS) if self.writes_all_columns else self.columns - j * COLUMNS
            full = [(_number(n) or 0) >= most for n, most in ((rows, self.block.rows), (columns, COLUMNS))]
            if all(full) and not (self.accumulates and not self.writes_all):
                self.tiles.store(total, self.c.buffer, self.c.at(i * self.block.rows, j, 0), self.c.strides[0])
                continue
            scratch = buffer_of_thread(self.block.rows * COLUMNS, self.c.element) if scratch is None else scratch
            self.tiles.store(total, scratch, Index(), COLUMNS)
            mask = None if full[1] else emit.first_lanes(emit.materialize(columns), COLUMNS)
            self._move(scratch, i, j, rows, mask)

    def _move(self, scratch: ir.Value, i: int, j: int, rows: Index, mask: ir.Value | None) -> None:
        """Some rows and columns of a tile of sums, from a buffer to C."""
        with (
            nest.loop(0, emit.materialize(rows), self.evaluator, below=self.block.rows, name="row") as row,
            self.evaluator.lanes(COLUMNS, mask) as lane,
        ):
            target = self.c.at(row + i * self.block.rows, j, 0) + Index.of(lane)
            value = self.evaluator.load_from(scratch, self.c.element, row * COLUMNS + Index.of(lane))
            if self.accumulates:
                value = emit.arith("addf", self.evaluator.load_from(self.c.buffer, self.c.element, target), value)
            self.evaluator.store(value, self.c.buffer, target)


def _dot_amx(rows: str, columns: str) -> TensorIntrin:
    name, height, width = f"dot_amx_{rows}x{columns}", int(rows), int(columns)
    tiles = ceil_div(height, MAX_ROWS)
    if height % tiles or width % COLUMNS or tiles * (width // COLUMNS) > SUMS:
        raise ScheduleError(
            f"tensor intrinsic {name}: expected at most {SUMS} tiles of {COLUMNS} columns, of the same rows, at most {MAX_ROWS}"
            ", found another block"
        )
    less = {"rows": {"i": 1}, "columns": {"t": COLUMNS, "j": 1}, "depth": {"k": 2, "p": 1}}
    implementation = TilesDot(name, height, width)
    return TensorIntrin.register(name, _product(height, width), implementation, starts=True, uses_tiles=True, partial=less)


def _product(rows: int, columns: int) -> IRModule:
    """C = A B of pairs of bf16, columns in tiles."""
    pairs, wide = te.size_var("K"), columns // COLUMNS
    a, b = te.placeholder((rows, pairs, 2), "bfloat16", name="A"), te.placeholder((wide, pairs, COLUMNS, 2), "bfloat16", name="B")
    k, p = te.reduce_axis((0, pairs), "k"), te.reduce_axis((0, 2), "p")

    def product(i: te.Expr, t: te.Expr, j: te.Expr) -> te.Expr | tuple[te.Expr, ...]:
        return te.sum(a[i, k, p].astype("float32") * b[t, k, j, p].astype("float32"), axis=[k, p])

    return te.create_prim_func([a, b, te.compute((rows, wide, COLUMNS), product, name="C")], context=lasting_context())


TensorIntrin.register_family("dot_amx_{rows}x{columns}", r"dot_amx_([1-9]\d?)x([1-9]\d{0,2})", _dot_amx)
