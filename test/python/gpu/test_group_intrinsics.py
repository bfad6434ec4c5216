"""Products of warp groups that are written with primitives: copies of boxes, products out of shared memory, by emulation and ptxas."""

import inspect
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import relayc
from relayc import te
from relayc.bench import tensor_core_product
from relayc.bench.tensor_core_product import on_warp_groups
from relayc.dialects.mlir import ir
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.cuda.strategies.intrinsics.groups import _SharedOperand
from relayc.pipelines.tir.editing.intrinsics import TensorIntrin
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule, ScheduleError

RNG = np.random.default_rng(13)
EMULATED = Target("cuda", arch="sm_90a", emulate=True)
TYPES = {
    "f16": (np.float16, "float32", 64),
    "bf16": (ml_dtypes.bfloat16, "float32", 64),
    "tf32": (np.float32, "float32", 32),
    "s8": (np.int8, "int32", 128),
}
"""By the names of intrinsics: types of operands and sums, and the elements of a line."""


def product(m, n, k, kind, across=(False, False)):
    """D = A B + A B, of A [m, k], or [k, m] where it lies across the depth, and B [n, k] or [k, n]."""
    dtype, total, _ = TYPES[kind]
    name, (a_across, b_across) = np.dtype(dtype).name, across
    a, b = te.placeholder((k, m) if a_across else (m, k), name, name="A"), te.placeholder((k, n) if b_across else (n, k), name, name="B")
    r = te.reduce_axis((0, k), "k")
    one, other = ((lambda t, i: t[r, i]) if turned else (lambda t, i: t[i, r]) for turned in across)
    c = te.compute((m, n), lambda i, j: te.sum(one(a, i).astype(total) * other(b, j).astype(total), axis=r), name="C")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: c[i, j] + c[i, j], name="D")])


def one_group(
    kind="f16",
    across=(False, False),
    columns=24,
    depth=None,
    ahead=1,
    tiles=1,
    rows=64,
    hints=True,
    copies=True,
    name=None,
    each=None,
    unrolled=True,
):
    """A schedule with blocks of one group: some rows and columns, `depth` steps at a time, in products of a line of 128 bytes each.

    Args:
      tiles: of columns that follow each other in a block.
      name: of the intrinsic.
      each: the steps of one intrinsic, where they are not those of a line.
    """
    line = TYPES[kind][2]
    depth, total = depth or line, "i32" if kind == "s8" else "f32"
    each = each or min(depth, line)
    name = name or f"wgmma_{'trans_a_' * across[0]}{'trans_b_' * across[1]}{kind}_{rows}x{columns}x{each}"

    def schedule(s):
        padded = [str(block) for block in s.pad_einsum("C", [rows, columns * tiles, depth])]
        if "C_pad" in padded:
            s.compute_inline("C_pad")
        i, j = s.get_loops("D")
        (i0, i1), (j0, j1, j2) = s.split(i, [None, rows]), s.split(j, [None, tiles, columns])
        s.reorder(i0, j0, j1, i1, j2)
        s.bind(i0, "blockIdx.y")
        s.bind(j0, "blockIdx.x")
        _, x, lanes = s.split(s.fuse(i1, j2), [None, 128, 4])
        s.bind(x, "threadIdx.x")
        s.vectorize(lanes)
        sums = s.cache_read("D", 0, "shared")
        s.tensorize(s.compute_at(sums, j1)[0], f"wgmma_store_{total}_{rows}x{columns}")
        s.set_scope("C", 0, "warpgroup")
        s.compute_at("C", j1)
        *_, ci, cj, k = s.get_loops("C")
        k0, k1, k2 = s.split(k, [None, depth // each, each])
        s.reorder(k0, k1, ci, cj, k2)
        if unrolled:
            s.unroll(k1)
        for number, pad in ((0, "A_pad"), (1, "B_pad")):
            tile = s.cache_read("C", number, "shared")
            loop, _ = s.compute_at(tile, k0)
            if pad in padded:
                s.compute_inline(pad)
            if copies:
                s.annotate(loop, "tensor_copy", True)
        s.tensorize(ci, name)
        if hints:
            s.annotate(k0, "software_pipeline_stage", [0, 0, ahead])

    return schedule


@pytest.mark.parametrize(
    ("kind", "across", "shape", "options"),
    [
        ("bf16", (False, False), (130, 40, 136), {"ahead": 3}),  # beside the result, more stages than turns
        ("f16", (True, True), (72, 72, 200), {"columns": 64, "depth": 32, "ahead": 2}),
        ("bf16", (False, True), (64, 128, 320), {"columns": 64, "depth": 128, "rows": 64, "tiles": 2}),  # a ring that goes on
        ("tf32", (False, False), (64, 24, 100), {"columns": 8, "depth": 32, "tiles": 3}),
        ("s8", (False, False), (66, 48, 272), {"columns": 48, "ahead": 2}),
        ("f16", (False, False), (1, 16, 64), {"columns": 16, "rows": 128}),  # one row, one turn
        ("f16", (False, False), (64, 16, 128), {"columns": 16, "each": 32}),  # half of a line at a time
    ],
)
def test_tiles_of_groups_are_products(kind, across, shape, options):
    """Of integers up to 3, whose sums every type has exactly; races are checked for."""
    dtype, total, _ = TYPES[kind]
    m, n, k = shape
    a, b = (
        RNG.integers(-3, 4, size[::-1] if turned else size).astype(dtype) for size, turned in zip(((m, k), (n, k)), across, strict=True)
    )
    with PassContext(config={"gpu.check_races": True}):
        kernel = relayc.compile_kernel(product(m, n, k, kind, across), schedule=one_group(kind, across, **options), target=EMULATED)
    x, y = (v.astype(total).T if turned else v.astype(total) for v, turned in zip((a, b), across, strict=True))
    np.testing.assert_array_equal(kernel(a, b), 2 * (x @ y.T))


def test_tiles_of_two_lines_are_copied_line_by_line():
    a, b = (RNG.integers(-3, 4, (n, 128)).astype(np.float16) for n in (64, 8))
    kernel = relayc.compile_kernel(product(64, 8, 128, "f16"), schedule=one_group(columns=8, depth=128), target=EMULATED, keep_ir=True)
    np.testing.assert_array_equal(kernel(a, b), 2 * (a.astype(np.float32) @ b.T.astype(np.float32)))
    # The second one takes the sums of the first: it begins when that has ended.
    line = ["fence.aligned", *["mma_async"] * 4, "commit.group.sync.aligned", "wait.group.sync.aligned"]
    assert re.findall(r"nvvm\.wgmma\.([a-z_.]*)", kernel.ir["tir"]) == 2 * line


@pytest.mark.parametrize("name", ["wgmma_f16_64x256x16", "wgmma_s8_64x24x32", "wgmma_s8_64x256x32", "mma_f16_16x8x16"])
def test_products_of_the_most_columns_start_their_sums(name):
    assert TensorIntrin.get(name).starts


def test_operands_that_lie_across_the_depth_are_described_so():
    """d0 is a row, d1 a column and d2 a step. (Sizes that no other test has, as an intrinsic is described once.)"""
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        name = f"wgmma_{'trans_a_' * a}{'trans_b_' * b}bf16_192x56x48"
        described = str(TensorIntrin.get(name).description.modules[0])
        shapes = [(48, 192) if a else (192, 48), (48, 56) if b else (56, 48)]
        assert [tuple(map(int, found)) for found in re.findall(r"arg\d: tensor<(\d+)x(\d+)xbf16>", described)] == shapes
        maps = re.findall(r"affine_map<\(d0, d1, d2\) -> \((.*?)\)>", described)
        assert maps == ["d2, d0" if a else "d0, d2", "d2, d1" if b else "d1, d2", "d0, d1"]


def test_the_last_bits_of_floats_are_cut_off():
    """Of tf32 there are 10 bits behind the leading one."""
    a, b = RNG.standard_normal((64, 32), np.float32), RNG.standard_normal((8, 32), np.float32)
    kernel = relayc.compile_kernel(product(64, 8, 32, "tf32"), schedule=one_group("tf32", columns=8), target=EMULATED)
    x, y = ((v.view(np.int32) & ~0x1FFF).view(np.float32).astype(np.float64) for v in (a, b))
    # Products are exact; sums of 32 in f32 are off by 31 roundings of 2^-24 at most.
    bound = 31 * 2.0**-24 * (np.abs(x) @ np.abs(y).T) * 2
    assert (np.abs(kernel(a, b) - 2 * (x @ y.T)) <= bound).all()
    assert (np.abs(kernel(a, b) - 2 * (a.astype(np.float64) @ b.T.astype(np.float64))) > bound).any()


def test_products_of_one_turn_begin_without_sums():
    """They are zeros, which no thread puts together from registers first."""
    kernel = relayc.compile_kernel(product(64, 24, 64, "f16"), schedule=one_group(), target=EMULATED, keep_ir=True)
    assert "nvvm.wgmma.mma_async" in kernel.ir["tir"] and "llvm.insertvalue" not in kernel.ir["tir"]


def test_rows_and_steps_may_be_unknown():
    rows, chunks = te.var("n"), te.var("k")
    kernel = relayc.compile_kernel(product(rows, 24, chunks * 8 + 8, "f16"), schedule=one_group(), target=EMULATED)
    for m, k in ((0, 8), (130, 72), (1, 320)):
        a, b = (RNG.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (24, k)))
        np.testing.assert_array_equal(kernel(a, b), 2 * (a.astype(np.float32) @ b.T.astype(np.float32)))


def lowered(schedule, shape=(64, 24, 128), arch="sm_90a", kind="f16"):
    s = Schedule(product(*shape, kind))
    schedule(s)
    with s.mod.context, ir.Location.unknown(), ir.InsertionPoint(ir.Module.create().body):
        lower_function(s.nest, Target("cuda", arch=arch))


def with_part(change):
    """The schedule with a change behind it."""

    def schedule(s):
        one_group()(s)
        change(s)

    return schedule


def rows_in_parts(s):
    """The last of three parts of 64 rows has fewer."""
    s.annotate(s.split(s.get_loops("A_shared")[-2], [None, 24])[0], "tensor_copy", True)


@pytest.mark.parametrize(
    ("schedule", "options", "message"),
    [
        (one_group(), {"arch": "sm_80"}, "loop .*: annotation tensor_copy: expected a target with tma, found cuda -arch=sm_80"),
        (one_group(), {"arch": "sm_100"}, "wgmma_f16_64x24x64: expected a target with wgmma, found cuda -arch=sm_100"),
        (one_group(copies=False), {}, "buffer A_shared: expected it in shared memory by a loop with the annotation tensor_copy"),
        (one_group(hints=False), {}, "tensor_copy: expected it in stage 0 of a loop with the annotation software_pipeline_stage"),
        (one_group(), {"shape": (64, 24, 100)}, "of lines at multiples of 16 bytes, found them 200 bytes apart"),
        (one_group(), {"shape": (64, 24, te.var("k") * 8)}, "expected a tensor that is not empty to copy boxes of, found"),
        (one_group(depth=32), {}, "buffer A_shared: expected whole lines of 128 bytes, 64 elements"),
        (one_group(each=32, unrolled=False), {}, r"block C_o: A: .* or from a certain element of one, found it from 32\*\w+ \+ 0 on"),
        (one_group("s8", columns=40), {"kind": "s8"}, "wgmma_s8_64x40x128: expected columns up to 256 and of 16 beyond 24"),
        (one_group(name="wgmma_f16_64x24x8", depth=64), {}, "expected .* steps that are a multiple of 16, found 24 and 8"),
        (one_group(name="wgmma_trans_b_s8_64x24x128"), {}, "expected elements of 16 bits, which alone may lie across the depth, found s8"),
        (with_part(lambda s: s.storage_align("A_shared", 0, 0, 32, 8)), {}, "buffer A_shared: expected no storage_align"),
        (with_part(lambda s: s.set_scope("C", 0, "warp")), {}, "buffer .*: expected scope warpgroup, as C of the tensor intrinsic"),
        (with_part(lambda s: s.annotate(s.get_loops("A_shared")[-2], "tensor_copy", "yes")), {}, "expected a truth value, found 'yes'"),
        (with_part(rows_in_parts), {}, "expected whole boxes, .* found guards of block A_shared"),
        (
            with_part(lambda s: s.cache_read("A_shared", 0, "global")),
            {},
            "expected a copy of an argument of the kernel, found one of A_global",
        ),
    ],
)
def test_what_is_not_legal_is_an_error(schedule, options, message):
    with pytest.raises(ScheduleError, match=message):
        lowered(schedule, **options)


@pytest.mark.parametrize(
    ("strides", "offset", "within", "across", "message"),
    [
        ((64, 1), Index(1024), 0, True, ""),
        ((64, 1), Index(512), 16, False, ""),
        ((128, 1), Index(), 0, False, "w: A: expected lines that follow each other, from every eighth on, found them 128 elements apart"),
        ((64, 1), Index(256), 0, False, "w: A: expected lines that follow each other, .* found them 64 elements apart from 256 on"),
        ((64, 1), Index(), 8, False, "w: A: expected it from a multiple of 32 bytes on, found it 16 bytes after the start of a line"),
        ((64, 1), Index(), 16, True, "w: A: expected it from the first element of a line on, found it 32 bytes after the start of a line"),
    ],
)
def test_lines_of_an_operand_that_instructions_read(strides, offset, within, across, message):
    """Lines of 64 elements of two bytes, of which eight are 1024 bytes."""
    operand = SimpleNamespace(name="A", strides=strides, offset=offset, within=within, lines=SimpleNamespace(elements=64))
    with pytest.raises(ScheduleError, match=message) if message else nullcontext():
        _SharedOperand(operand, across, 2).check("w")


def test_the_page_shows_the_schedule_that_is_tested():
    page = (Path(__file__).parents[3] / "docs" / "schedules.md").read_text()
    for function in (on_warp_groups, tensor_core_product.over_groups):
        assert inspect.getsource(function) in page
