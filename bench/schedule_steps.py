"""The steps of docs/schedules.md: a matrix product with bias and relu, from naive loops to near the peak of the machine.

Each step adds lines to the schedule of those before it, on loops and blocks by their names; only the last one is a schedule by itself. The
page quotes the code and the docstrings of this file, `bench schedules` measures the steps, tests run them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from relayc import te
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.context.target import Target
from relayc.tir import Schedule


@dataclass(frozen=True)
class RegisterTile:
    """How many rows and columns of sums are in registers at once."""

    rows: int
    columns: int


WIDE = RegisterTile(8, 32)
"""Of the page: of 32 registers of 16 elements, as AVX-512 has them."""


def register_tile(target: Target) -> RegisterTile:
    """The tile for a machine: two vectors of columns, and as many rows that half of the registers are sums."""
    return RegisterTile(target.num_vector_registers // 4, 2 * target.lanes(32))


def product(m: int, n: int, k: int) -> IRModule:
    """D = max(A B + bias, 0) of f32 A [m, k], B [k, n] and bias [n]."""
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    bias = te.placeholder((n,), name="bias")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((m, n), lambda i, j: te.max(C[i, j] + bias[j], 0.0), name="D")
    return te.create_prim_func([A, B, bias, D])


def naive(s: Schedule, tile: RegisterTile) -> None:
    """The naive loops

    Three loops around a multiplication and an addition, then two around bias and relu, as in the tensor expressions. The additions to an
    element of `C` form a chain (the lowering keeps the sum in a register while `k` runs), so each addition waits four cycles for the one
    before it. `B` is read down its columns: each element comes from another cache line, whose other 15 elements are not used.
    """


def split(s: Schedule, tile: RegisterTile) -> None:
    """split: loops for a tile

    Rows are split into groups of 8 and columns into groups of 32. The order of computation is the same, and so is the time, but the tile
    has loops now.
    """
    s.split("i", [None, tile.rows])
    s.split("j", [None, tile.columns])


def reorder(s: Schedule, tile: RegisterTile) -> None:
    """reorder: the sums of a tile together

    `k` runs outside of the tile: each step adds a column of 8 elements of `A` times a row of 32 of `B` to a tile of 8 x 32 sums. The row
    is contiguous in memory, and the sums of a tile do not depend on each other. The sums are in memory, though in the first-level cache:
    two loads and a store for each multiplication.
    """
    s.reorder("i_0", "j_0", "k", "i_1", "j_1")


def vectorize(s: Schedule, tile: RegisterTile) -> None:
    """vectorize: a row of the tile as vectors

    The 32 columns become lanes: on AVX-512 two vectors of 16. One instruction multiplies and adds 16 elements; `A[vi, vk]` is broadcast to
    all lanes. A row of sums still goes to memory and back in each step of `k`.
    """
    s.vectorize("j_1")


def unroll(s: Schedule, tile: RegisterTile) -> None:
    """unroll: the sums in registers

    The 8 rows are unrolled: 16 multiply-adds on vectors, without a branch between them. The sums of a step of `k` now have constant
    indices, so the lowering keeps them in registers while `k` runs: 16 of the 32 vector registers. 16 independent sums are more than the
    8 that two units with a latency of four cycles need, and a step loads 2 vectors and 8 scalars for 16 multiply-adds.
    """
    s.unroll("i_1")


def epilogue(s: Schedule, tile: RegisterTile) -> None:
    """reverse_compute_at: the epilogue in the tile

    Bias and relu are computed for a tile right after its sums, in the same iteration of `j_0`, while the sums are in the first-level
    cache. Before this step `C` was written and read as a whole, 1 MiB each way. The new loops over the tile run like those of the product.
    """
    rows, columns = s.reverse_compute_at("D", "j_0")
    s.unroll(rows)
    s.vectorize(columns)


def registers(s: Schedule, tile: RegisterTile) -> None:
    """set_scope: no memory for the sums

    Only one tile of `C` is alive at a time, so `C` becomes a buffer of one thread. All accesses are at constant indices within the tile,
    so the tile is in registers only: the sums go from the last multiply-add to bias and relu, and only `D` is written.
    """
    s.set_scope("C", 0, "local")


def pack(s: Schedule, tile: RegisterTile) -> None:
    """transform_layout: packed weights

    A row of a tile is 128 bytes of `B`, and the next step of `k` reads 2 KiB further on: 512 places on 256 pages, which share a few sets
    of the first-level cache. In the packed layout the 32 columns of a tile are a contiguous panel, which is read sequentially, so the
    hardware prefetches it. `B` is a parameter: it is packed once, when the kernel is compiled. (For another argument `cache_read` makes a
    copy first, in every call.)
    """
    s.transform_layout("C", ("read", "B"), lambda k, j: [j // tile.columns, k, j % tile.columns])


def block(s: Schedule, tile: RegisterTile) -> None:
    """split and reorder: blocks for the caches

    Before this step, every 8 rows read all of `B`, from the second-level cache at best. Now 64 rows use a panel of `B` before the next
    panel: the panel is read from memory or an outer cache once for 64 rows instead of once for 8. At 512 x 512 x 512 all of `B` fits in
    the second-level cache, and little changes; at 1024 and more the step saves a good part of the time.
    """
    s.split("i_0", [None, 64 // tile.rows])
    s.reorder("i_0_0", "j_0", "i_0_1")


def parallel(s: Schedule, tile: RegisterTile) -> None:
    """parallel: threads

    The threads share the blocks of rows. The blocks write different rows of `D`, and each thread has its own tile of `C`. On one thread
    nothing changes.
    """
    s.parallel("i_0_0")


def sampled(s: Schedule, tile: RegisterTile) -> None:
    """sample_perfect_tile: numbers that can be searched

    The whole schedule, with numbers as knobs: the blocks of rows, the rows of a tile, and the length of a part of `k`. The sums of a block
    of rows are in memory between the parts of `k`, so a part of a panel (16 KiB for a length of 128) stays in the first-level cache for
    all tiles of a block. Numbers without a decision are drawn at random.
    """
    s.transform_layout("C", ("read", "B"), lambda k, j: [j // tile.columns, k, j % tile.columns])
    i, j = s.get_loops("D")
    blocks, tiles, rows = s.sample_perfect_tile(i, 3, 16, name="rows")
    i0, i1, i2 = s.split(i, [blocks, tiles, rows])
    j0, j1 = s.split(j, [None, tile.columns])
    s.reorder(i0, j0, i1, i2, j1)
    s.set_scope("C", 0, "local")
    s.compute_at("C", j0)
    *_, ci, cj, ck = s.get_loops("C")
    c0, c1 = s.split(ci, [None, rows])
    k0, k1 = s.split(ck, s.sample_perfect_tile(ck, 2, 256, name="depth"))
    s.reorder(k0, c0, k1, c1, cj)
    s.unroll(c1)
    s.vectorize(cj)
    s.vectorize(j1)
    s.parallel(i0)


Step = Callable[[Schedule, RegisterTile], None]

STEPS: tuple[Step, ...] = (naive, split, reorder, vectorize, unroll, epilogue, registers, pack, block, parallel, sampled)
"""The beginning and the ten steps, in the order of the page."""


def schedule_after(step: Step, tile: RegisterTile) -> Callable[[Schedule], None]:
    """The schedule that a step leaves: the lines of all steps up to it, or its own where it is the last one, a schedule by itself."""
    lines = (step,) if step is sampled else STEPS[: STEPS.index(step) + 1]

    def schedule(s: Schedule) -> None:
        for added in lines:
            added(s, tile)

    schedule.__name__ = step.__name__
    return schedule


def decisions(step: Step, m: int, k: int, tile: RegisterTile) -> Mapping[str, Any]:
    """The numbers of a step for a product of m rows of depth k: blocks of 64 rows, parts of 128, as far as they divide."""
    if step is not sampled:
        return {}
    rows, depth = (next(d for d in sizes if size % d == 0) for size, sizes in ((m, (64, 32, 16, 8)), (k, (128, 64, 32, 16, 8))))
    return {"rows": (m // rows, rows // tile.rows, tile.rows), "depth": (k // depth, depth)}
