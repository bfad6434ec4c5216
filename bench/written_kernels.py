"""Kernels whose schedules are written with the primitives of relayc.tir; `bench written` compares them with the built-in schedules.

Each has a function of tensor expressions, its schedule, and a reference in numpy. The numbers of a schedule (rows of a tile, length of a
part) are chosen for a core with 32 vector registers of 512 bits, or with 16 of 256 bits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import relayc
from relayc import te
from relayc.bench.metaschedule_kernels import attention_by_numpy, softmax_by_numpy
from relayc.bench.schedule_steps import RegisterTile, product, register_tile
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.target import Target
from relayc.pipelines.tir.schedule.references import LoopRV
from relayc.tir import Schedule

ROW = 64
"""Elements of a row that are computed side by side."""


@dataclass(frozen=True)
class Written:
    """A kernel with a schedule of its own.

    Attributes:
      module: its function; schedule: the schedule of the function.
      inputs: shapes of its arguments, f32 except for the first ones, whose types are in `dtypes`.
      reference: the computation on the inputs, by numpy in f64.
      parameters: positions of arguments that are parameters.
      flops: multiplications and additions, for compute-bound kernels.
      features: features of the CPU that the schedule needs.
    """

    name: str
    module: Callable[[], IRModule]
    schedule: Callable[[Schedule], None]
    inputs: Sequence[tuple[int, ...]]
    reference: Callable[..., np.ndarray]
    parameters: Sequence[int] = ()
    flops: int = 0
    dtypes: Sequence[str] = ()
    features: Sequence[str] = ()

    @property
    def dtype(self) -> str:
        """Of the first argument."""
        return self.dtypes[0] if self.dtypes else "float32"

    def arrays(self, seed: int) -> list[np.ndarray]:
        """Inputs of about 1."""
        rng = np.random.default_rng(seed)
        types = [ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name) for name in self.dtypes]
        types += [np.dtype("float32")] * (len(self.inputs) - len(types))
        return [rng.standard_normal(shape, np.float32).astype(dtype) for shape, dtype in zip(self.inputs, types, strict=True)]


# ---- products


def tiles(rows: int, columns: int, block: int, depth: int) -> Callable[[Schedule], None]:
    """The schedule of a product with an epilogue: tiles of rows by columns in registers, in blocks of rows, and in parts of the reduction
    of `depth` steps, between which the sums are in memory; each part prefetches the next part of the parameter."""

    def schedule(s: Schedule) -> None:
        s.transform_layout("C", ("read", "B"), lambda k, j: [j // columns, k, j % columns], pad_value=0.0)
        i, j = s.get_loops("D")
        i0, i1 = s.split(i, [None, block])
        j0, j1 = s.split(j, [None, columns])
        s.reorder(i0, j0, i1, j1)
        s.set_scope("C", 0, "local")
        s.compute_at("C", j0)
        *_, ci, cj, ck = s.get_loops("C")
        c0, c1 = s.split(ci, [None, rows])
        k0, k1 = s.split(ck, [None, depth])
        s.reorder(k0, c0, k1, c1, cj)
        s.annotate(k1, "prefetch", ["B", k0.name, 1, 2])
        s.unroll(c1)
        s.vectorize(cj)
        s.vectorize(j1)
        s.parallel(i0)
        s.parallel(j0)

    return schedule


def _product(
    m: int, n: int, k: int, schedule: Callable[[Schedule], None], of: Callable[[int, int, int], IRModule] = product, **others: Any
) -> Written:
    return Written(
        f"product {m}x{n}x{k}",
        lambda: of(m, n, k),
        schedule,
        [(m, k), (k, n), (n,)],
        lambda a, b, bias: np.maximum(a @ b + bias, 0),
        (1,),
        2 * m * n * k,
        **others,
    )


def product_of_bf16(m: int, n: int, k: int) -> IRModule:
    """D = max(A B + bias, 0) of bf16 A [m, k], B [k, n] and f32 bias [n]; f32."""
    A, B = te.placeholder((m, k), "bfloat16", name="A"), te.placeholder((k, n), "bfloat16", name="B")
    bias, r, f32 = te.placeholder((n,), name="bias"), te.reduce_axis((0, k), name="k"), "float32"
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r].astype(f32) * B[r, j].astype(f32), axis=r), name="C")
    D = te.compute((m, n), lambda i, j: te.max(C[i, j] + bias[j], 0.0), name="D")
    return te.create_prim_func([A, B, bias, D])


def amx_tiles(rows: int, columns: int, columns_outside: bool) -> Callable[[Schedule], None]:
    """The schedule of a product of bf16 with an epilogue: blocks of rows by columns in tile registers, each followed by the epilogue.

    Args:
      columns_outside: whether the loop over panels of B is outside the loop over rows, or inside.
    """

    def schedule(s: Schedule) -> None:
        s.transform_layout("C", ("read", "B"), lambda k, j: [j // 16, k // 2, j % 16, k % 2], pad_value=0.0)
        i, j = s.get_loops("D")
        i0, i1 = s.split(i, [None, rows])
        j0, j1 = s.split(j, [None, columns])
        outer, inner = (j0, i0) if columns_outside else (i0, j0)
        s.reorder(outer, inner, i1, j1)
        s.set_scope("C", 0, "local")
        s.compute_at("C", inner)
        *_, ci, cj, ck = s.get_loops("C")
        s.split(cj, [None, 16])
        s.split(ck, [None, 2])
        s.tensorize(ci, f"dot_amx_{rows}x{columns}")
        s.vectorize(j1)
        s.parallel(outer)

    return schedule


def _product_of_bf16(m: int, n: int, k: int, schedule: Callable[[Schedule], None]) -> Written:
    return _product(m, n, k, schedule, product_of_bf16, dtypes=("bfloat16", "bfloat16"), features=("amx-tile", "amx-bf16"))


# ---- convolutions


def convolution(channels: int, filters: int, size: int) -> IRModule:
    """relu of a 3x3 convolution of an image with a border of 1, channels in blocks of 16: X [C/16, H + 2, W + 2, 16], W [O, C, 3, 3]."""
    x = te.placeholder((channels // 16, size + 2, size + 2, 16), name="X")
    w = te.placeholder((filters, channels, 3, 3), name="W")
    b, c, ky, kx = (te.reduce_axis((0, e), name) for e, name in ((channels // 16, "b"), (16, "c"), (3, "ky"), (3, "kx")))

    def sums(o: te.Expr, i: te.Expr, j: te.Expr, lane: te.Expr) -> te.Expr | tuple[te.Expr, ...]:
        return te.sum(x[b, i + ky, j + kx, c] * w[o * 16 + lane, b * 16 + c, ky, kx], axis=[b, c, ky, kx])

    shape = (filters // 16, size, size, 16)
    y = te.compute(shape, sums, name="conv")
    return te.create_prim_func([x, w, te.compute(shape, lambda o, i, j, lane: te.max(y[o, i, j, lane], 0.0), name="relu")])


def lines(pixels: int, blocks: int) -> Callable[[Schedule], None]:
    """The schedule of a convolution: tiles of some pixels of a line by some blocks of 16 channels, in registers."""
    channels = 16 * blocks

    def schedule(s: Schedule) -> None:
        s.transform_layout("conv", ("read", "W"), lambda o, c, y, x: [o // channels, c, y, x, o % channels])
        o, i, j, lane = s.get_loops("relu")
        o0, o1 = s.split(o, [None, blocks])
        j0, j1 = s.split(j, [None, pixels])
        s.reorder(o0, i, j0, j1, o1, lane)
        s.set_scope("conv", 0, "local")
        s.compute_at("conv", j0, preserve_unit_loops=True)
        *_, block, line, column, lanes, b, c, ky, kx = s.get_loops("conv")
        s.reorder(line, b, ky, kx, c, column, block, lanes)
        for loop in (column, block, j1, o1):
            s.unroll(loop)
        for loop in (lanes, lane):
            s.vectorize(loop)
        s.parallel(o0)
        s.parallel(i)

    return schedule


def _convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    size = x.shape[1] - 2
    image = x.transpose(0, 3, 1, 2).reshape(-1, size + 2, size + 2)
    parts = (np.tensordot(w[:, :, y, z], image[:, y : y + size, z : z + size], 1) for y in range(3) for z in range(3))
    return np.maximum(sum(parts), 0).reshape(-1, 16, size, size).transpose(0, 2, 3, 1)


# ---- rows


def softmax(rows: int, columns: int) -> IRModule:
    """Of rows, as four computations."""
    x = te.placeholder((rows, columns), name="X")
    k, r = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "r")
    most = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="most")
    power = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - most[i]), name="power")
    total = te.compute((rows,), lambda i: te.sum(power[i, r], axis=r), name="total")
    return te.create_prim_func([x, te.compute((rows, columns), lambda i, j: power[i, j] / total[i], name="Y")])


def layer_norm(rows: int, columns: int) -> IRModule:
    """Of rows, with scale and shift, as three computations."""
    x, scale, shift = te.placeholder((rows, columns), name="X"), te.placeholder((columns,), name="G"), te.placeholder((columns,), name="B")
    k, r = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "r")
    part = te.const(1 / columns, "float32")
    total = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="total")

    def apart(i: te.Expr, j: te.Expr) -> te.Expr:
        return x[i, j] - total[i] * part

    square = te.compute((rows,), lambda i: te.sum(apart(i, r) * apart(i, r), axis=r), name="square")
    epsilon = te.const(1e-5, "float32")
    y = te.compute((rows, columns), lambda i, j: apart(i, j) * te.rsqrt(square[i] * part + epsilon) * scale[j] + shift[j], name="Y")
    return te.create_prim_func([x, scale, shift, y])


def reduce_rows(s: Schedule, block: str) -> None:
    """A reduction along rows: ROW partial results side by side in registers."""
    _, inner = s.split(s.get_loops(block)[-1], [None, ROW])
    partial = s.rfactor(inner, 0)
    s.set_scope(partial, 0, "local")
    *_, a, b = s.get_loops(partial)
    steps, elements = (a, b) if b.name == inner.name else (b, a)
    s.reorder(steps, elements)
    s.vectorize(elements)
    s.vectorize(s.get_loops(block)[-1])


def rowwise(*blocks: str) -> Callable[[Schedule], None]:
    """The schedule of computations along rows: a row at a time on a thread, with ROW partial results of a reduction in registers.

    Args:
      blocks: the blocks computed before Y, consumers before producers.
    """

    def schedule(s: Schedule) -> None:
        i, _ = s.get_loops("Y")
        for block in blocks:
            s.compute_at(block, i)
            s.set_scope(block, 0, "local")
        for block in (b for b in blocks if b in REDUCTIONS):
            reduce_rows(s, block)
        for block in (b for b in (*blocks, "Y") if b not in REDUCTIONS):
            s.vectorize(s.split(s.get_loops(block)[-1], [None, ROW])[1])
        s.parallel(i)

    return schedule


REDUCTIONS = ("most", "total", "square")
"""Blocks that reduce a row."""


def _layer_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    apart = x - x.mean(1, keepdims=True)
    return apart / np.sqrt((apart * apart).mean(1, keepdims=True) + 1e-5) * scale + shift


# ---- attention


def attention(heads: int, queries: int, keys: int, depth: int) -> IRModule:
    """The kernel of nn.attention [1, heads, queries, depth], f32, with the blocks of the operator."""
    program = relayc.Program()
    query, key = (relayc.TensorType((1, heads, n, depth), "float32") for n in (queries, keys))

    @program.function(q=query, k=key, v=key)
    def main(q: Any, k: Any, v: Any) -> Any:
        return program.op.nn.attention(q, k, v, scale=depth**-0.5)

    made = relayc.compile(program.module(), stop_after="te", cache=False)
    assert isinstance(made, IRModule)
    return made


def heads(queries: int, tile: RegisterTile) -> Callable[[Schedule], None]:
    """The schedule of an attention: a head on a thread, with keys transposed once, some queries at a time.

    The scores of the queries for all keys are in memory of the thread; both products are register tiles of two vectors of columns.
    """
    lanes = tile.columns // 2

    def product(s: Schedule, block: str, rows: LoopRV, columns: LoopRV, steps: LoopRV) -> None:
        i0, i1 = s.split(rows, [None, tile.rows])
        j0, j1 = s.split(columns, [None, tile.columns])
        s.reorder(j0, i0, i1, j1, steps)
        s.tensorize(i1, f"dot_f32_{tile.rows}x{tile.columns}")

    def schedule(s: Schedule) -> None:
        scaled, scores, largest, weights, total, context, result, flat, y = (block.name for block in s.get_blocks())
        s.compute_inline(result)
        s.compute_inline(flat)
        _, head, i, _ = s.get_loops(y)
        part, _ = s.split(i, [None, queries])
        keys = s.cache_read(scores, "p1", "local")
        s.transform_layout(scores, ("read", "p1_local"), lambda b, h, j, d: [b, h, j // tile.columns, d, j % tile.columns])
        for block in (context, total, weights, largest, scores, scaled):
            s.compute_at(block, part)
            s.set_scope(block, 0, "local")
        s.compute_at(keys, head)
        *_, j, d = s.get_loops(keys)
        *j0, j1 = s.split(j, [None, 2, lanes])
        d0, d1 = s.split(d, [None, lanes])
        s.reorder(*j0, d0, d1, j1)
        s.tensorize(d1, f"transpose_f32_{lanes}")
        *_, i, j, d = s.get_loops(scores)
        product(s, scores, i, j, d)
        *_, i, j, e = s.get_loops(context)
        product(s, context, i, e, j)
        for block in (largest, total):
            reduce_rows(s, block)
        s.tensorize(s.split(s.get_loops(weights)[-1], [None, ROW])[1], f"softmax_weights_{ROW}")
        for block in (scaled, y):
            s.vectorize(s.split(s.get_loops(block)[-1], [None, ROW])[1])
        s.parallel(head)

    return schedule


def kernels(target: Target) -> list[Written]:
    """What is measured, with the numbers for a target. Products are named m x n x k, attention heads x queries x keys x elements of a
    head."""
    is_wide = target.lanes(32) >= 16
    products = [
        _product(512, 512, 512, tiles(8, 32, 128, 128) if is_wide else tiles(4, 24, 128, 128)),
        _product(128, 3072, 768, tiles(4, 96, 128, 128) if is_wide else tiles(4, 24, 128, 128)),
        _product(1500, 1536, 384, tiles(6, 48, 126, 128) if is_wide else tiles(4, 24, 100, 128)),
        _product_of_bf16(512, 512, 512, amx_tiles(32, 32, False)),
        _product_of_bf16(128, 3072, 768, amx_tiles(32, 32, True)),
        _product_of_bf16(1500, 1536, 384, amx_tiles(32, 32, False)),
    ]
    convolved = Written(
        "convolution 64x64 3x3 56x56",
        lambda: convolution(64, 64, 56),
        lines(14, 2) if is_wide else lines(4, 1),
        [(4, 58, 58, 16), (64, 64, 3, 3)],
        _convolved,
        (1,),
        2 * 64 * 64 * 9 * 56 * 56,
    )
    attended = Written(
        "attention 12x128x128x64",
        lambda: attention(12, 128, 128, 64),
        heads(32, register_tile(target)),
        [(1, 12, 128, 64)] * 3,
        attention_by_numpy,
        (),
        4 * 12 * 128 * 128 * 64,
    )
    rows = [
        Written("softmax 128x768", lambda: softmax(128, 768), rowwise("total", "power", "most"), [(128, 768)], softmax_by_numpy),
        Written("layer_norm 128x768", lambda: layer_norm(128, 768), rowwise("square", "total"), [(128, 768), (768,), (768,)], _layer_norm),
    ]
    return [kernel for kernel in (*products, convolved, attended, *rows) if all(map(target.has, kernel.features))]
