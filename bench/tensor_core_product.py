"""Products on the tensor cores of a GPU, written with primitives: the programs of docs/schedules.md, "Tensor cores of a GPU"."""

from relayc import te
from relayc.dialects.relay.module import IRModule
from relayc.pipelines.tir.schedule.references import LoopRV
from relayc.symbolic import Size
from relayc.tir import Schedule


def product_of_f16(m: Size, n: Size, k: Size) -> IRModule:
    """D = max(A B^T + bias, 0) of f16 A [m, k] and B [n, k], f32 bias [n], in f32."""
    A, B = te.placeholder((m, k), "float16", name="A"), te.placeholder((n, k), "float16", name="B")
    bias, r, f32 = te.placeholder((n,), name="bias"), te.reduce_axis((0, k), name="k"), "float32"
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r].astype(f32) * B[j, r].astype(f32), axis=r), name="C")
    return te.create_prim_func([A, B, bias, te.compute((m, n), lambda i, j: te.max(C[i, j] + bias[j], 0.0), name="D")])


def by_threads(s: Schedule, rows: LoopRV, columns: LoopRV, *, elements: int) -> None:
    """2 x 2 warps go over a tile together, each thread over some elements at a time."""
    _, z, y, x, lanes = s.split(s.fuse(rows, columns), [None, 2, 2, 32, elements])
    for loop, axis in ((z, "threadIdx.z"), (y, "threadIdx.y"), (x, "threadIdx.x")):
        s.bind(loop, axis)
    s.vectorize(lanes)


def by_warps(s: Schedule, rows: LoopRV, columns: LoopRV) -> tuple[LoopRV, LoopRV]:
    """Each of 2 x 2 warps has a quarter of a tile; gives the loops over that."""
    (z, rows), (y, columns) = s.split(rows, [2, None]), s.split(columns, [2, None])
    s.reorder(z, y, rows, columns)
    s.bind(z, "threadIdx.z")
    s.bind(y, "threadIdx.y")
    return rows, columns


def on_tensor_cores(s: Schedule) -> None:
    """Blocks of 64 x 64 sums, 32 steps at a time."""
    padded = [str(block) for block in s.pad_einsum("C", [64, 64, 32])]  # of what is not divided
    if "C_pad" in padded:
        s.compute_inline("C_pad")
    i, j = s.get_loops("D")
    (i0, i1), (j0, j1) = s.split(i, [None, 64]), s.split(j, [None, 64])
    s.reorder(i0, j0, i1, j1)
    s.bind(i0, "blockIdx.y")
    s.bind(j0, "blockIdx.x")
    by_threads(s, i1, j1, elements=4)

    sums = s.cache_read("D", 0, "shared")  # from where threads take four neighbours each
    s.storage_align(sums, 0, 0, 32, 8)
    s.tensorize(by_warps(s, *s.compute_at(sums, j0))[0], "mma_store_f32_32x32")

    s.set_scope("C", 0, "warp")  # in registers of a warp's threads
    s.compute_at("C", j0)
    *_, ci, cj, ck = s.get_loops("C")
    ci, cj = by_warps(s, ci, cj)
    k0, k1, k2 = s.split(ck, [None, 2, 16])
    s.reorder(k0, k1, ci, cj, k2)
    s.unroll(k1)
    for number, pad, load in ((0, "A_pad", "ldmatrix_a_f16_32x16"), (1, "B_pad", "ldmatrix_b_f16_32x16")):
        tile = s.cache_read("C", number, "shared")
        s.storage_align(tile, 0, 0, 32, 8)
        by_threads(s, *s.compute_at(tile, k0), elements=8)
        if pad in padded:
            s.compute_inline(pad)
        fragments = s.cache_read("C", number, "warp")
        s.tensorize(s.compute_at(fragments, k1)[0], load)
    s.tensorize(ci, "mma_f16_32x32x16")
    s.annotate(k0, "software_pipeline_stage", [0, 0, 2])  # the copies of A and B two tiles ahead of their use
    s.annotate(k0, "software_pipeline_async_stages", [0])


def over_groups(s: Schedule, rows: LoopRV) -> LoopRV:
    """Each of two groups of four warps has half of the rows of a tile; gives the loop over them."""
    y, rows = s.split(rows, [2, None])
    s.bind(y, "threadIdx.y")
    return rows


def on_warp_groups(s: Schedule) -> None:
    """Blocks of 128 x 128 sums, 64 steps at a time, by two groups."""
    padded = [str(block) for block in s.pad_einsum("C", [128, 128, 64])]
    if "C_pad" in padded:
        s.compute_inline("C_pad")
    i, j = s.get_loops("D")
    (i0, i1), (j0, j1) = s.split(i, [None, 128]), s.split(j, [None, 128])
    s.reorder(i0, j0, i1, j1)
    s.bind(i0, "blockIdx.y")
    s.bind(j0, "blockIdx.x")
    _, y, x, lanes = s.split(s.fuse(i1, j1), [None, 2, 128, 4])
    for loop, axis in ((y, "threadIdx.y"), (x, "threadIdx.x")):
        s.bind(loop, axis)
    s.vectorize(lanes)

    sums = s.cache_read("D", 0, "shared")
    s.storage_align(sums, 0, 0, 32, 8)
    s.tensorize(over_groups(s, s.compute_at(sums, j0)[0]), "wgmma_store_f32_64x128")

    s.set_scope("C", 0, "warpgroup")
    s.compute_at("C", j0)
    *_, ci, cj, ck = s.get_loops("C")
    ci = over_groups(s, ci)
    k0, k1 = s.split(ck, [None, 64])
    s.reorder(k0, ci, cj, k1)
    for number, pad in ((0, "A_pad"), (1, "B_pad")):
        tile = s.cache_read("C", number, "shared")
        lines, _ = s.compute_at(tile, k0)
        if pad in padded:
            s.compute_inline(pad)
        s.annotate(lines, "tensor_copy", True)
    s.tensorize(ci, "wgmma_f16_64x128x64")
    s.annotate(k0, "software_pipeline_stage", [0, 0, 2])  # the boxes of A and B two tiles ahead of the products
