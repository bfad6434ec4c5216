"""Register tiles of products on vectors: dot_f32_{rows}x{columns} and dot_bf16_{rows}x{columns}."""

from collections.abc import Callable
from dataclasses import dataclass

from relayc import te
from relayc.dialects.mlir import lasting_context
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cpu.strategies.bf16.dot import Dots
from relayc.pipelines.targets.cpu.strategies.bf16.layout import COLUMNS, SumBlock
from relayc.pipelines.tir.editing.intrinsics import TensorCall, TensorIntrin
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.values import nest, vectors
from relayc.pipelines.tir.values.evaluator import Evaluator

MOST_SUMS = 64
"""Maximum vectors of sums of a tile, more than any register file has."""


@dataclass(frozen=True)
class Dot:
    """A register tile of a product.

    Rows, columns and steps may be fewer; columns only by a number, or where B and C have room for all.
    """

    name: str
    rows: int
    columns: int

    def __call__(self, call: TensorCall) -> None:
        """Emits the steps of a tile, with its sums as values that the loop over the steps carries."""
        sums = len(self._cut(call)) * self.rows
        if sums > MOST_SUMS:
            raise ScheduleError(f"tensor intrinsic {self.name}: expected at most {MOST_SUMS} vectors of sums, found {sums}")
        in_parts(call.counts["rows"], self.rows, lambda first, rows: self._tile(call, first, rows))

    def _cut(self, call: TensorCall) -> list[tuple[int, int]]:
        """(start, lanes) of the vectors of a row."""
        return vectors.pieces(self._columns(call), call.target.lanes(call["C"].element.width))

    def _columns(self, call: TensorCall) -> int:
        count = call.counts["columns"]
        if count.is_constant and isinstance(count.const, int):
            return count.const
        if all(call[name].has_room("columns", self.columns) for name in "BC"):
            return self.columns
        raise ScheduleError(f"tensor intrinsic {self.name}: expected B and C with room for {self.columns} columns, found {count}")

    def _tile(self, call: TensorCall, first: Index, rows: int) -> None:
        a, b, c, cut = call["A"], call["B"], call["C"], self._cut(call)
        places = [(first + row, start, lanes) for row in range(rows) for start, lanes in cut]
        if call.accumulates:
            sums = [c.load(row, start, lanes=lanes) for row, start, lanes in places]
        else:
            sums = [emit.broadcast(emit.zero(c.element), lanes) for _, _, lanes in places]
        depth = emit.materialize(call.counts["depth"])
        with nest.carrying(0, depth, Evaluator({}), sums, below=a.shape[1], name="k") as (k, loop):
            right = {start: b.load(k, start, lanes=lanes) for start, lanes in cut}
            left = [a.load(first + row, k) for row in range(rows)]
            pairs = [(x, start, lanes) for x in left for start, lanes in cut]
            emit.yield_values(
                [
                    emit.multiply_add(emit.broadcast(x, lanes), right[start], total)
                    for (x, start, lanes), total in zip(pairs, loop.inner_iter_args, strict=True)
                ]
            )
        for (row, start, _), total in zip(places, loop.results, strict=True):
            c.store(total, row, start)


@dataclass(frozen=True)
class PairsDot:
    """A register tile of a product of pairs of bf16, of which rows may be fewer."""

    name: str
    rows: int
    columns: int

    def __call__(self, call: TensorCall) -> None:
        """Emits the steps of a tile."""
        if not call.target.has("avx512bf16"):
            raise ScheduleError(f"tensor intrinsic {self.name}: expected a target with avx512bf16, found {call.target}")
        apart = call["B"].strides[1]
        if apart != 2:
            raise ScheduleError(f"tensor intrinsic {self.name}: B: expected pairs side by side, found them {apart} elements apart")
        in_parts(call.counts["rows"], self.rows, lambda first, rows: self._tile(call, first, rows))

    def _tile(self, call: TensorCall, first: Index, rows: int) -> None:
        a, b, c = call["A"], call["B"], call["C"]
        dots = Dots(SumBlock(rows, 1, self.columns // COLUMNS))
        starts = range(0, self.columns, COLUMNS)
        places = [(first + row, start) for row in range(rows) for start in starts]
        sums = [c.load(row, start, lanes=COLUMNS) for row, start in places] if call.accumulates else list(dots.begin())
        with nest.carrying(0, a.shape[1], Evaluator({}), sums, name="k") as (k, loop):
            columns = [b.at(k, start, 0) for start in starts]
            emit.yield_values(dots.step(a.buffer, [a.at(first, k, 0)], a.strides[0], b.buffer, columns, list(loop.inner_iter_args)))
        for (row, start), total in zip(places, loop.results, strict=True):
            c.store(total, row, start)


def in_parts(count: Index, most: int, part: Callable[[Index, int], None]) -> None:
    """Calls `part` with a start and a number that together cover `count` of at most `most`: with all of them, or where only a call knows
    how many they are with 8, 4, 2, 1 in a branch each."""
    if count.is_constant and isinstance(count.const, int):
        part(Index(), count.const)
        return
    evaluator, left, start = Evaluator({}), emit.materialize(count), emit.index_constant(0)
    size = 1 << (most.bit_length() - 1)
    while size:
        bit = emit.arith("andi", left, emit.index_constant(size))
        first = Index.of(Var(0, most - size, start, name="row"))
        nest.when(emit.compare("ne", bit, emit.index_constant(0)), evaluator, lambda: part(first, size))  # noqa: B023
        start = emit.arith("addi", start, bit)
        size //= 2


def _dot_f32(rows: str, columns: str) -> TensorIntrin:
    name, height, width = f"dot_f32_{rows}x{columns}", int(rows), int(columns)
    partial = {"rows": {"i": 1}, "columns": {"j": 1}, "depth": {"k": 1}}
    return TensorIntrin.register(name, _product(height, width), Dot(name, height, width), starts=True, strided=("A",), partial=partial)


def _product(rows: int, columns: int) -> IRModule:
    """C = A B."""
    steps = te.size_var("K")
    a, b = te.placeholder((rows, steps), name="A"), te.placeholder((steps, columns), name="B")
    k = te.reduce_axis((0, steps), "k")
    return te.create_prim_func(
        [a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")], context=lasting_context()
    )


def _dot_bf16(rows: str, columns: str) -> TensorIntrin:
    name, height, width = f"dot_bf16_{rows}x{columns}", int(rows), int(columns)
    if width % COLUMNS or width // COLUMNS * height > MOST_SUMS:
        raise ScheduleError(
            f"tensor intrinsic {name}: expected columns in vectors of {COLUMNS} and at most {MOST_SUMS} of sums, found others"
        )
    partial = {"rows": {"i": 1}}
    return TensorIntrin.register(name, _product_of_pairs(height, width), PairsDot(name, height, width), starts=True, partial=partial)


def _product_of_pairs(rows: int, columns: int) -> IRModule:
    """C = A B of pairs of bf16."""
    pairs = te.size_var("K")
    a, b = te.placeholder((rows, pairs, 2), "bfloat16", name="A"), te.placeholder((pairs, columns, 2), "bfloat16", name="B")
    k, p = te.reduce_axis((0, pairs), "k"), te.reduce_axis((0, 2), "p")

    f32 = "float32"
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k, p].astype(f32) * b[k, j, p].astype(f32), axis=[k, p]), name="C")
    return te.create_prim_func([a, b, c], context=lasting_context())


TensorIntrin.register_family("dot_bf16_{rows}x{columns}", r"dot_bf16_([1-9]\d?)x([1-9]\d{0,2})", _dot_bf16)
TensorIntrin.register_family("dot_f32_{rows}x{columns}", r"dot_f32_([1-9]\d?)x([1-9]\d{0,2})", _dot_f32)
