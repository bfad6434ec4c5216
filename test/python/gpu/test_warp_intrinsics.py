"""Products on tensor cores that are written with primitives: tensor intrinsics of warps, copies that run ahead, by emulation and ptxas."""

import contextlib
import inspect
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relayc
from relayc import te
from relayc.bench import tensor_core_product
from relayc.bench.tensor_core_product import on_tensor_cores
from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index
from relayc.pipelines.tir.editing.intrinsics import Fragments
from relayc.pipelines.tir.lower.fragments import Placement, check_region
from relayc.pipelines.tir.lower.function import lower_function
from relayc.pipelines.tir.lower.nested import check_zero
from relayc.pipelines.tir.lower.storage import KeptRegion
from relayc.pipelines.tir.primitives.matching import Binding
from relayc.symbolic import symbol
from relayc.tir import Schedule, ScheduleError, T, TensorIntrin, from_source

RNG = np.random.default_rng(11)
EMULATED = Target("cuda", arch="sm_80", emulate=True)
TYPES = {
    "f16": (np.float16, np.float16, "float32"),
    "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, "float32"),
    "tf32": (np.float32, np.float32, "float32"),
    "s8": (np.int8, np.int8, "int32"),
    "u8": (np.uint8, np.uint8, "int32"),
    "u8s8": (np.uint8, np.int8, "int32"),
}


def product(m, n, k, kind, across):
    """C = A B of small numbers, whose sums are exact; B is [k, n] where it lies across the depth, else [n, k]."""
    *dtypes, total = TYPES[kind]
    names = [np.dtype(dtype).name for dtype in dtypes]
    a, b = te.placeholder((m, k), names[0], name="A"), te.placeholder((k, n) if across else (n, k), names[1], name="B")
    r = te.reduce_axis((0, k), "k")
    at = (lambda j: b[r, j]) if across else (lambda j: b[j, r])
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype(total) * at(j).astype(total), axis=r), name="C")
    return te.create_prim_func([a, b, c])


def one_warp(
    kind="f16",
    across=False,
    columns=16,
    ahead=1,
    asynchronous=True,
    lanes=None,
    store=True,
    threads=True,
    pitch=None,
    rows=16,
    scope="shared",
    row_axis="blockIdx.y",
    sums="warp",
    chunk_bytes=None,
):
    """A schedule with blocks of one warp, some rows by some columns, in the steps of one instruction."""
    elements = 16 // np.dtype(TYPES[kind][0]).itemsize
    steps, total = 2 * elements, "i32" if elements == 16 else "f32"
    kind_a, kind_b = ("u8", "s8") if kind == "u8s8" else (kind, kind)
    tile_b = f"b_trans_{kind_b}_{steps}x{columns}" if across else f"b_{kind_b}_{columns}x{steps}"

    def schedule(s):
        out = s.cache_write("C", 0, sums)
        i, j = s.get_loops(out)
        (i0, i1), (j0, j1) = s.split(i, [None, rows]), s.split(j, [None, columns])
        s.reorder(i0, j0, i1, j1)
        s.bind(i0, row_axis)
        s.bind(j0, "blockIdx.x")
        s.compute_at("C", j0)
        if store:
            s.tensorize(i1, f"mma_store_{total}_{rows}x{columns}")
        *_, ci, cj, k = s.get_loops("C")
        k0, k1 = s.split(k, [None, steps])
        s.reorder(k0, ci, cj, k1)
        for number, load in ((0, f"a_{kind_a}_{rows}x{steps}"), (1, tile_b)):
            tile = s.cache_read("C", number, scope)
            if pitch is not None:
                s.storage_align(tile, 0, 0, 32, pitch)
            if chunk_bytes is not None and (number == 1 or not across):
                s.storage_swizzle(tile, 0, 0, chunk_bytes)
            part = s.fuse(*s.compute_at(tile, k0))
            _, thread, lane = s.split(part, [None, 32, lanes or (elements if number == 0 or columns > 8 else elements // 2)])
            if threads:
                s.bind(thread, "threadIdx.x")
            s.vectorize(lane)
            fragments = s.cache_read("C", number, "warp")
            s.tensorize(s.get_loops(fragments)[-2], f"ldmatrix_{load}")
        s.tensorize(ci, f"mma_{kind}_{rows}x{columns}x{steps}")
        if scope == "shared":
            s.annotate(k0, "software_pipeline_stage", [0, ahead, 0, ahead, ahead])
        if scope == "shared" and asynchronous:
            s.annotate(k0, "software_pipeline_async_stages", [0])

    return schedule


@pytest.mark.parametrize(
    ("kind", "across", "columns", "ahead", "asynchronous", "rows", "chunk_bytes"),
    [
        ("bf16", True, 16, 2, True, 16, None),
        ("s8", False, 8, 3, True, 16, None),
        ("f16", True, 8, 1, False, 32, None),
        ("f16", True, 16, 1, True, 16, 16),
        ("tf32", False, 8, 2, True, 16, 16),
        ("tf32", True, 16, 1, True, 16, 32),
        ("tf32", True, 8, 1, False, 32, None),
        ("u8", False, 16, 1, True, 16, 16),
        ("u8s8", False, 8, 1, True, 32, None),
    ],
)
def test_tiles_of_warps_are_products(kind, across, columns, ahead, asynchronous, rows, chunk_bytes):
    """Of floats up to 3, whose sums of 96 products every type has exactly, and any bytes; races are checked for."""
    *dtypes, total = TYPES[kind]
    m, n, k = 32, 16, 96
    limits = [(np.iinfo(d).min, np.iinfo(d).max + 1) if np.dtype(d).kind in "iu" else (-3, 4) for d in dtypes]
    shapes = ((m, k), (k, n) if across else (n, k))
    a, b = (RNG.integers(*limit, shape).astype(dtype) for limit, shape, dtype in zip(limits, shapes, dtypes, strict=True))
    schedule = one_warp(kind, across, columns, ahead, asynchronous, rows=rows, chunk_bytes=chunk_bytes)
    with PassContext(config={"gpu.check_races": True}):
        kernel = relayc.compile_kernel(product(m, n, k, kind, across), schedule=schedule, target=EMULATED)
    np.testing.assert_array_equal(kernel(a, b), a.astype(total) @ (b if across else b.T).astype(total))


def lowered(schedule, arch="sm_80", k=96, kind="f16", m=32):
    s = Schedule(product(m, 16, k, kind, False))
    schedule(s)
    lowered_for_gpu(s, arch)


def lowered_for_gpu(s, arch="sm_80"):
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        lower_function(s.nest, Target("cuda", arch=arch))


def with_hint(key, value):
    """The schedule with another hint at the loop over the steps."""

    def schedule(s):
        one_warp()(s)
        s.annotate(s.get_loops("A_shared")[2], key, value)

    return schedule


@pytest.mark.parametrize(
    ("schedule", "options", "message"),
    [
        (one_warp(store=False), {}, "buffer C_warp: expected tensor intrinsics with fragments alone to use .*, found block C_warp"),
        (one_warp(threads=False), {}, "block C_o: expected 32 threads along threadIdx.x, a warp, for its tensor intrinsic, found 1"),
        (
            one_warp(threads=False, row_axis="threadIdx.x"),
            {"m": 16 * 32},
            "block C_o: expected no loop around it that is bound to threadIdx.x, as a warp computes .*, found ax0_0",
        ),
        (one_warp(sums="warpgroup"), {}, "buffer C_warpgroup: expected scope warp, as .* lies in registers, found warpgroup"),
        (one_warp(pitch=4, asynchronous=False), {}, "S: expected lines at multiples of 16 bytes, .* and 36 apart"),
        (one_warp(scope="global"), {}, "ldmatrix_a_f16_16x16: S: expected a shared buffer, found one of another scope"),
        (one_warp(pitch=4), {}, "block A_shared: .* between multiples of 8 elements, found neighbours 36, 1 elements"),
        (one_warp(lanes=1), {}, "block A_shared: expected a copy .* of 4, 8 or 16 bytes at a time, found 2: vectorize says how many"),
        (one_warp(), {"k": 40}, "block A_shared_warp: expected what tensor intrinsic ldmatrix_a_f16_16x16 computes: expected a tile"),
        (one_warp(), {"arch": "sm_75"}, "loop .*: expected a target with cp-async for asynchronous stages, found cuda -arch=sm_75"),
        (one_warp(asynchronous=False), {"arch": "sm_75"}, "mma_f16_16x16x16: expected a target with mma-bf16, found cuda -arch=sm_75"),
        (with_hint("software_pipeline_stage", [0, 1]), {}, "software_pipeline_stage: expected a number for each of the 5 parts"),
        (with_hint("software_pipeline_stage", [0, 1, 0, 2, 2]), {}, r"expected 0 for copies that run ahead .* found \[0, 1,"),
        (with_hint("software_pipeline_stage", [0, 0, 0, 1, 1]), {}, "found block A_shared, which writes one that is not read there"),
        (with_hint("software_pipeline_async_stages", [1]), {}, r"software_pipeline_async_stages: expected \[0\], the stage of copies"),
    ],
)
def test_what_is_not_legal_is_an_error(schedule, options, message):
    with pytest.raises(ScheduleError, match=message):
        lowered(schedule, **options)


def test_a_loop_of_one_iteration_on_threads_may_be_around_what_a_warp_computes():
    lowered(one_warp(row_axis="threadIdx.x"), m=16)


def test_the_first_of_the_warps_stores_what_all_of_them_compute():
    s = Schedule(product(32, 16, 96, "f16", False))
    one_warp(asynchronous=False)(s)
    s.bind(s.split(s.get_loops("A_shared")[3], [None, 2])[1], "threadIdx.y")
    with s.mod.context, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            lower_function(s.nest, Target("cuda", arch="sm_80"))
        behind_products = str(module).rpartition("nvvm.mma.sync")[2]
    assert re.search(r"arith\.cmpi slt, %\w+, %c1 : index\s+scf\.if %\w+ {\s", behind_products)


def binding(*steps):
    """The operand S of two dimensions in a buffer of three."""
    return Binding("S", None, (16, 8), (Index(),) * 3, steps, False, {})


@pytest.mark.parametrize(
    ("steps", "axis"),
    [
        (((0, 0, 0), (0, 0, 1)), "line"),
        (((1, 1, 0), (0, 0, 1)), "line"),
        (((0, 1, 0), (0, 0, 2)), "depth"),
        (((0, 1, 0), (0, 1, 0)), "depth"),
    ],
)
def test_a_fragment_is_along_dimensions_of_its_buffer(steps, axis):
    fragments = Fragments("rows", (("line", 16), ("depth", 8)), 4, "f32")
    with pytest.raises(ScheduleError, match=f"S: expected a dimension of the buffer for {axis}, found steps"):
        Placement.of(fragments, binding(*steps))


@pytest.mark.parametrize(
    ("extents", "is_whole"), [((3, 32, 16), True), ((3, 32, 12), False), ((3, 24, 8), False), ((3, 16, symbol("n")), False)]
)
def test_a_buffer_of_fragments_has_whole_ones(extents, is_whole):
    placement = Placement.of(Fragments("rows", (("line", 16), ("depth", 8)), 4, "f32", 128), binding((0, 1, 0), (0, 0, 1)))
    assert (str(placement), placement.scope) == ("rows in tiles of 1 x 16 x 8", "warpgroup")
    with (
        contextlib.nullcontext()
        if is_whole
        else pytest.raises(ScheduleError, match="buffer S: expected extents of whole fragments, rows in")
    ):
        check_region("S", KeptRegion((), (Index(),) * 3, extents, True), placement)


def test_sums_that_do_not_start_at_zero_are_an_error():
    """In a text: the primitive compares what it replaces with all that the intrinsic computes."""
    s, zero = Schedule(product(32, 16, 96, "f16", False)), "arith.constant 0.000000e+00 : f32"
    one_warp()(s)
    assert str(s.mod).count(zero) == 1
    with pytest.raises(ScheduleError, match=r"block C_o: expected sums in registers of a warp that start at 0, found 1\.0"):
        lowered_for_gpu(Schedule(IRModule.parse(str(s.mod).replace(zero, zero.replace("0.0", "1.0")))))


@pytest.mark.parametrize(("start", "message"), [("0.0", ""), ("1.0", "found 1.0"), ("X[vi]", "found None"), ("X[vi] * 0.0", "found None")])
def test_sums_in_registers_of_a_warp_start_at_the_number_0(start, message):
    s = Schedule(
        from_source(f"""
def main(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.block("Y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = {start}
            Y[vi] = Y[vi] + X[vi]
""")
    )
    (block,) = s.nest.outer_blocks()
    with pytest.raises(ScheduleError, match=f"expected sums .* that start at 0, {message}") if message else contextlib.nullcontext():
        check_zero(block)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ldmatrix_a_trans_s8_32x16", "expected elements of 16 or 32 bits, which alone are transposed, found s8"),
        ("mma_f16s8_16x8x16", "expected two types of integers or one type of both operands, found f16, s8"),
        ("ldmatrix_a_f16_24x16", r"expected a multiple of 16 \(line\), found 24"),
        ("ldmatrix_b_f16_12x16", r"expected a multiple of 8 \(line\), found 12"),
        ("ldmatrix_a_f16_16x24", r"expected a multiple of 16 \(depth\), found 24"),
        ("mma_store_f32_24x8", r"expected a multiple of 16 \(row\), found 24"),
        ("mma_store_f32_16x12", r"expected a multiple of 8 \(column\), found 12"),
    ],
)
def test_tiles_that_are_no_whole_fragments(name, message):
    with pytest.raises(ScheduleError, match=f"tensor intrinsic {name}: {message}"):
        TensorIntrin.get(name)


@T.prim_func
def steps_back(X: T.Buffer((9, 32), "float32"), Y: T.Buffer((9, 32), "float32")):
    """A row is read in the iteration after the one that copies it."""
    S = T.alloc_buffer((9, 32), "float32", scope="shared")
    for i in T.serial(9):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = X[vi, vj]
        for j in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = S[T.max(vi - 1, 0), vj]


def test_copies_that_another_iteration_reads_cannot_run_ahead():
    s = Schedule(steps_back)
    s.annotate(s.get_loops("S")[0], "software_pipeline_stage", [0, 1])
    with pytest.raises(ScheduleError, match="buffer S: expected that block Y reads what is copied in the same iteration"):
        lowered_for_gpu(s)


def test_the_page_shows_the_schedule_that_is_tested():
    page = (Path(__file__).parents[3] / "docs" / "schedules.md").read_text()
    for function in (on_tensor_cores, tensor_core_product.by_threads, tensor_core_product.by_warps):
        assert inspect.getsource(function) in page
