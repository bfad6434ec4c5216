"""Tensor intrinsics of the CPU: register tiles of products, under names that say how large a tile is.

dot_f32_{rows}x{columns}: C[i, j] += sum of A[i, k] * B[k, j] over any number of steps k, all f32, for rows by columns of C, whose sums stay
in vector registers meanwhile. The loops are in the order i, j, k. A may lie anyhow; the columns of B and of C lie side by side. It begins
the sums by itself.

dot_bf16_{rows}x{columns}: C[i, j] += sum of A[i, k, p] * B[k, j, p] over any number of pairs k of steps p, A and B bf16 and C f32, on CPUs
with AVX512-BF16, for columns in whole vectors of 16. The loops are in the order i, j, k, p. The pairs of a row of B lie side by side.
"""

from dataclasses import dataclass

from relayc import te
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.blocks.intrinsics import TensorCall, TensorIntrin
from relayc.pipelines.blocks.views import ScheduleError
from relayc.pipelines.cpu.schedule.bf16.dot import Dots
from relayc.pipelines.cpu.schedule.bf16.layout import COLUMNS, Block
from relayc.pipelines.kernel.index import Index, Var
from relayc.pipelines.tir import emit, vectors

MOST_SUMS = 64
"""Vectors of sums of a tile, beyond what any registers hold."""


@dataclass(frozen=True)
class Dot:
    """A register tile of a product."""

    name: str
    rows: int
    columns: int

    def __call__(self, call: TensorCall) -> None:
        """Emits the steps of a tile, with its sums as values that the loop over the steps carries."""
        a, b, c = call["A"], call["B"], call["C"]
        cut = vectors.pieces(self.columns, call.target.lanes(c.element.width))
        if len(cut) * self.rows > MOST_SUMS:
            raise ScheduleError(f"tensor intrinsic {self.name}: expected at most {MOST_SUMS} vectors of sums, found {len(cut) * self.rows}")
        places = [(row, start, lanes) for row in range(self.rows) for start, lanes in cut]
        if call.accumulates:
            sums = [c.load(row, start, lanes=lanes) for row, start, lanes in places]
        else:
            sums = [emit.zero(_type(c.element, lanes)) for _, _, lanes in places]
        steps = a.shape[1]
        var = Var(0, steps - 1, name="k")
        with emit.for_loop(0, steps, 1, var, sums) as loop:
            k = Index.of(var)
            right = {start: b.load(k, start, lanes=lanes) for start, lanes in cut}
            left = [a.load(row, k) for row in range(self.rows)]
            found = []
            for (row, start, lanes), total in zip(places, loop.inner_iter_args, strict=True):
                found.append(emit.multiply_add(emit.broadcast(left[row], lanes), right[start], total))
            emit.yield_values(found)
        for (row, start, _), total in zip(places, loop.results, strict=True):
            c.store(total, row, start)


@dataclass(frozen=True)
class PairsDot:
    """A register tile of a product of pairs of bf16."""

    name: str
    rows: int
    columns: int

    def __call__(self, call: TensorCall) -> None:
        """Emits the steps of a tile."""
        a, b, c = call["A"], call["B"], call["C"]
        if not call.target.has("avx512bf16"):
            raise ScheduleError(f"tensor intrinsic {self.name}: expected a target with avx512bf16, found {call.target}")
        if b.strides[1] != 2:
            raise ScheduleError(f"tensor intrinsic {self.name}: B: expected pairs side by side, found them {b.strides[1]} elements apart")
        dots = Dots(Block(self.rows, 1, self.columns // COLUMNS))
        starts = range(0, self.columns, COLUMNS)
        places = [(row, start) for row in range(self.rows) for start in starts]
        sums = [c.load(row, start, lanes=COLUMNS) for row, start in places] if call.accumulates else list(dots.begin())
        pairs = a.shape[1]
        var = Var(0, pairs - 1, name="k")
        with emit.for_loop(0, pairs, 1, var, sums) as loop:
            k = Index.of(var)
            columns = [b.at(k, start, 0) for start in starts]
            emit.yield_values(dots.step(a.buffer, [a.at(0, k, 0)], a.strides[0], b.buffer, columns, list(loop.inner_iter_args)))
        for (row, start), total in zip(places, loop.results, strict=True):
            c.store(total, row, start)


def _type(element: ir.Type, lanes: int) -> ir.Type:
    return emit.vector_of(lanes, element) if lanes > 1 else element


def _dot_f32(rows: str, columns: str) -> TensorIntrin:
    name = f"dot_f32_{rows}x{columns}"
    return TensorIntrin.register(name, _product(int(rows), int(columns)), Dot(name, int(rows), int(columns)), starts=True, strided=("A",))


def _product(rows: int, columns: int) -> IRModule:
    """C = A B."""
    steps = te.size_var("K")
    a, b = te.placeholder((rows, steps), name="A"), te.placeholder((steps, columns), name="B")
    k = te.reduce_axis((0, steps), "k")
    return te.create_prim_func([a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def _dot_bf16(rows: str, columns: str) -> TensorIntrin:
    name, width = f"dot_bf16_{rows}x{columns}", int(columns)
    if width % COLUMNS or width // COLUMNS * int(rows) > MOST_SUMS:
        raise ScheduleError(
            f"tensor intrinsic {name}: expected columns in vectors of {COLUMNS} and at most {MOST_SUMS} of sums, found others"
        )
    return TensorIntrin.register(name, _product_of_pairs(int(rows), width), PairsDot(name, int(rows), width), starts=True)


def _product_of_pairs(rows: int, columns: int) -> IRModule:
    """C = A B of pairs of bf16."""
    pairs = te.size_var("K")
    a, b = te.placeholder((rows, pairs, 2), "bfloat16", name="A"), te.placeholder((pairs, columns, 2), "bfloat16", name="B")
    k, p = te.reduce_axis((0, pairs), "k"), te.reduce_axis((0, 2), "p")

    f32 = "float32"
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k, p].astype(f32) * b[k, j, p].astype(f32), axis=[k, p]), name="C")
    return te.create_prim_func([a, b, c])


TensorIntrin.register_family("dot_bf16_{rows}x{columns}", r"dot_bf16_([1-9]\d?)x([1-9]\d{0,2})", _dot_bf16)
TensorIntrin.register_family("dot_f32_{rows}x{columns}", r"dot_f32_([1-9]\d?)x([1-9]\d{0,2})", _dot_f32)
