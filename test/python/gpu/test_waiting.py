"""Kernels whose threads wait for each other: barriers, shuffles and what goes wrong with them."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_kernels import emulated, kernel, only_function, strategy
from oracle import values
from support import program

from relayc.dialects.mlir import ir, make_context, scf
from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index
from relayc.pipelines.targets.gpu.emulate import memory, pointers
from relayc.pipelines.targets.gpu.emulate.grids import WaitingGrid
from relayc.pipelines.targets.gpu.emulate.sites import Sites, _describe
from relayc.pipelines.targets.gpu.emulate.thread import _slot_bytes
from relayc.pipelines.tir.gpu.launch import barrier, launch
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function

SHARED = "#gpu.address_space<workgroup>"


SUM = f"""
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c500 = arith.constant 500 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %i = %t0 to %c500 step %c128 iter_args(%a = %zero) -> (f32) {{
      %v = memref.load %x[%b0, %i] : memref<9x500xf32>
      %b = arith.addf %a, %v : f32
      scf.yield %b : f32
    }}
    memref.store %sum, %s[%t0] : memref<128xf32, {SHARED}>
    gpu.barrier
    %last = scf.while (%half = %c64) : (index) -> index {{
      %go = arith.cmpi ugt, %half, %c0 : index
      scf.condition(%go) %half : index
    }} do {{
    ^bb0(%half: index):
      %low = arith.cmpi ult, %t0, %half : index
      scf.if %low {{
        %j = arith.addi %t0, %half : index
        %a = memref.load %s[%t0] : memref<128xf32, {SHARED}>
        %b = memref.load %s[%j] : memref<128xf32, {SHARED}>
        %c = arith.addf %a, %b : f32
        memref.store %c, %s[%t0] : memref<128xf32, {SHARED}>
      }}
      gpu.barrier
      %next = arith.divui %half, %c2 : index
      scf.yield %next : index
    }}
    %first = arith.cmpi eq, %t0, %c0 : index
    scf.if %first {{
      %r = memref.load %s[%c0] : memref<128xf32, {SHARED}>
      memref.store %r, %y[%b0] : memref<9xf32>
    }}"""
"""The sum of a row, by a tree in shared memory."""


def test_a_tree_in_shared_memory_sums_rows():
    text = kernel("k", "%x: memref<9x500xf32>, %y: memref<9xf32>", SUM, 128, 9, f"%s: memref<128xf32, {SHARED}>")
    x, y = values((9, 500)), np.zeros(9, np.float32)
    emulated(text)["k"](x, y)
    # 500 additions of normal numbers in f32, in another order.
    np.testing.assert_allclose(y, x.sum(1, dtype=np.float64), atol=1e-4)


TRANSPOSE = f"""
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %r0 = arith.muli %b1, %c32 : index
    %q0 = arith.muli %b0, %c32 : index
    scf.for %i = %t1 to %c32 step %c8 {{
      %r = arith.addi %r0, %i : index
      %q = arith.addi %q0, %t0 : index
      %v = memref.load %x[%r, %q] : memref<64x96xf16>
      memref.store %v, %s[%i, %t0] : memref<32x33xf16, {SHARED}>
    }}
    gpu.barrier
    scf.for %i = %t1 to %c32 step %c8 {{
      %r = arith.addi %q0, %i : index
      %q = arith.addi %r0, %t0 : index
      %v = memref.load %s[%t0, %i] : memref<32x33xf16, {SHARED}>
      memref.store %v, %y[%r, %q] : memref<96x64xf16>
    }}"""
TRANSPOSE_ARGUMENTS = "%x: memref<64x96xf16>, %y: memref<96x64xf16>", (32, 8, 1), (3, 2, 1), f"%s: memref<32x33xf16, {SHARED}>"


def transpose(body: str = TRANSPOSE) -> str:
    arguments, threads, grid, shared = TRANSPOSE_ARGUMENTS
    return kernel("k", arguments, body, threads, grid, shared)


def test_tiles_are_transposed_through_shared_memory():
    x, y = values((64, 96), "float16"), np.zeros((96, 64), np.float16)
    emulated(transpose())["k"](x, y)
    np.testing.assert_array_equal(y, x.T)


def test_without_its_barrier_the_transposition_reads_what_nobody_wrote():
    x, y = values((64, 96), "float16"), np.zeros((96, 64), np.float16)
    only_warps = "%all = arith.constant -1 : i32\n    nvvm.bar.warp.sync %all : i32"
    emulated(transpose(TRANSPOSE.replace("gpu.barrier", only_warps)))["k"](x, y)
    assert np.isnan(y).any()


def shuffled(mode: str, x: np.ndarray, offset: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """What gpu.shuffle gives in the first `width` lanes, as its documentation says it."""
    lanes = np.arange(width)
    source = {"xor": lanes ^ offset, "up": lanes - offset, "down": lanes + offset, "idx": np.full(width, offset)}[mode]
    valid = (source >= 0) & (source < width)
    return x[np.where(valid, source, lanes)], valid


@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
def test_lanes_shuffle(mode):
    body = f"""
    %o = arith.index_cast %t1 : index to i32
    %offset = arith.constant 5 : i32
    %width = arith.constant 32 : i32
    %one = arith.constant 1 : i32
    %v = memref.load %x[%t1, %t0] : memref<3x32xf32>
    %l = memref.load %z[%t1, %t0] : memref<3x32xi64>
    %by = arith.muli %offset, %o : i32
    %r, %p = gpu.shuffle {mode} %v, %by, %width : f32
    %q, %p2 = gpu.shuffle {mode} %l, %by, %width : i64
    memref.store %r, %y[%t1, %t0] : memref<3x32xf32>
    memref.store %q, %w[%t1, %t0] : memref<3x32xi64>
    %b = arith.extui %p : i1 to i8
    memref.store %b, %valid[%t1, %t0] : memref<3x32xi8>"""
    arguments = "%x: memref<3x32xf32>, %z: memref<3x32xi64>, %y: memref<3x32xf32>, %w: memref<3x32xi64>, %valid: memref<3x32xi8>"
    x, z = values((3, 32)), values((3, 32), "int64")
    y, w, valid = np.zeros_like(x), np.zeros_like(z), np.zeros((3, 32), np.int8)
    emulated(kernel("k", arguments, body, (32, 3, 1)))["k"](x, z, y, w, valid)
    for warp in range(3):
        expected, there = shuffled(mode, np.arange(32), 5 * warp, 32)
        np.testing.assert_array_equal(y[warp], x[warp][expected])
        np.testing.assert_array_equal(w[warp], z[warp][expected])
        np.testing.assert_array_equal(valid[warp], there)


def test_values_that_lanes_exchange_take_multiples_of_eight_bytes():
    with ir.Context(), ir.Location.unknown():
        f16, f32 = ir.F16Type.get(), ir.F32Type.get()
        types = [f32, *(ir.VectorType.get([lanes], f32) for lanes in (1, 2, 3, 4)), ir.VectorType.get([5], f16)]
        assert [_slot_bytes(type_) for type_ in types] == [8, 8, 8, 16, 16, 16]


@pytest.mark.parametrize("width", [1, 2, 8, 16])
def test_some_lanes_shuffle(width):
    body = f"""
    %width = arith.constant {width} : i32
    %some = arith.constant {width} : index
    %offset = arith.constant {width // 2} : i32
    %low = arith.cmpi ult, %t0, %some : index
    %v = memref.load %x[%t0] : memref<32xf32>
    %r = scf.if %low -> (f32) {{
      %a, %p = gpu.shuffle xor %v, %offset, %width : f32
      scf.yield %a : f32
    }} else {{
      scf.yield %v : f32
    }}
    memref.store %r, %y[%t0] : memref<32xf32>"""
    x, y = values((32,)), np.zeros(32, np.float32)
    emulated(kernel("k", "%x: memref<32xf32>, %y: memref<32xf32>", body, 32))["k"](x, y)
    np.testing.assert_array_equal(y, np.concatenate([shuffled("xor", x, width // 2, width)[0], x[width:]]))


def test_the_last_warp_of_a_block_may_have_fewer_lanes():
    body = """
    %width = arith.constant 32 : i32
    %one = arith.constant 1 : i32
    %v = memref.load %x[%t0] : memref<40xi32>
    %r, %p = gpu.shuffle up %v, %one, %width : i32
    %s = arith.select %p, %r, %v : i32
    memref.store %s, %y[%t0] : memref<40xi32>"""
    x, y = values((40,), "int32"), np.zeros(40, np.int32)
    emulated(kernel("k", "%x: memref<40xi32>, %y: memref<40xi32>", body, 40))["k"](x, y)
    np.testing.assert_array_equal(y, [x[0], *x[:31], x[32], *x[32:39]])


# ---- what goes wrong


def test_a_barrier_that_some_threads_do_not_reach_is_an_error():
    body = """
    %c7 = arith.constant 7 : index
    %c2 = arith.constant 2 : index
    %last = arith.cmpi eq, %b0, %c2 : index
    %low0 = arith.cmpi ult, %t0, %c7 : index
    %true = arith.constant true
    %not = arith.xori %last, %true : i1
    %low = arith.ori %low0, %not : i1
    scf.if %low {
      gpu.barrier
    }
    %v = memref.load %x[%b0] : memref<4xf32>
    memref.store %v, %y[%b0] : memref<4xf32>"""
    run = emulated(kernel("stuck", "%x: memref<4xf32>, %y: memref<4xf32>", body, 64, 4))["stuck"]
    x, y = values((4,)), np.zeros(4, np.float32)
    for _ in range(2):  # the process goes on, and fails as before
        with pytest.raises(RuntimeError, match=r"kernel stuck, block 2 of its grid: .* thread 0 .* gpu.barrier.*, and thread 7 at its end"):
            run(x, y)


def test_threads_at_different_barriers_are_an_error():
    body = """
    %c7 = arith.constant 7 : index
    %low = arith.cmpi ult, %t0, %c7 : index
    scf.if %low {
      gpu.barrier
    } else {
      gpu.barrier
    }
    %v = memref.load %x[%t0] : memref<64xf32>
    memref.store %v, %x[%t0] : memref<64xf32>"""
    with pytest.raises(
        RuntimeError, match=r"kernel k, block 0 .*: expected all threads at one barrier, found thread 0 at .*:\d+.*, and thread 7 at"
    ):
        emulated(kernel("k", "%x: memref<64xf32>", body))["k"](values((64,)))


def test_lanes_that_do_not_shuffle_are_waited_for_in_vain():
    body = """
    %c7 = arith.constant 7 : index
    %width = arith.constant 32 : i32
    %v = memref.load %x[%t0] : memref<64xf32>
    %low = arith.cmpi ult, %t0, %c7 : index
    %r = scf.if %low -> (f32) {
      %a, %p = gpu.shuffle xor %v, %width, %width : f32
      scf.yield %a : f32
    } else {
      scf.yield %v : f32
    }
    memref.store %r, %x[%t0] : memref<64xf32>"""
    with pytest.raises(RuntimeError, match=r"thread 0 waiting for ever at .*gpu.shuffle.*, and thread 7 at its end"):
        emulated(kernel("k", "%x: memref<64xf32>", body))["k"](values((64,)))


def test_a_program_whose_kernel_fails_raises_its_error():
    def schedule(kernel, target, tuning):
        """Copies the one argument; the last thread of a block takes no part in its barrier."""
        with kernel_function(kernel) as body, launch([1], 64) as block:
            number = block.thread.value
            first = scf.IfOp(emit.compare("ne", number, emit.index_constant(63)))
            with ir.InsertionPoint(first.then_block):
                barrier()
                emit.yield_values([])
            emit.create("memref.store", [], [body.evaluator.at(kernel.args[0], [Index.of(block.thread)]), body.outputs[0], number])
        return Scheduled(body.function)

    x = values((64,))
    with strategy(schedule):
        module = compile(program(lambda a: [build("nn.relu", a)], [x]), target=Target("cuda", emulate=True))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"kernel fused_relu, block 0 .* thread 0 .*gpu.barrier.*, and thread 63 at its end"):
            module["main"](x)


def test_no_launch_follows_one_that_failed():
    fails = kernel("k", "%x: memref<64xf32>, %n: index", "%c7 = arith.constant 7 : index\nREST")
    first, second = "%low = arith.cmpi ult, %t0, %n : index\n    scf.if %low {\n      gpu.barrier\n    }", "gpu.barrier\n    STORE"
    store = "%one = arith.constant 1.0 : f32\n    memref.store %one, %x[%t0] : memref<64xf32>"
    launch_of = fails[fails.index("  gpu.launch") : fails.index("  return")]
    text = fails.replace(launch_of, launch_of.replace("REST", first) + launch_of.replace("REST", second.replace("STORE", store)))
    run, x = emulated(text)["k"], np.zeros(64, np.float32)
    with pytest.raises(RuntimeError, match=r"kernel k_0, block 0 of its grid: .* thread 0 .*gpu.barrier.* thread 5 at its end"):
        run(x, 5)
    assert not x.any()
    run(x, 64)
    assert x.all()


@pytest.mark.parametrize(
    ("kind", "dtype", "initial", "expected"),
    [
        ("addi", "int32", 0, np.sum),
        ("maxs", "int64", -1000, np.max),
        ("addf", "float32", 0, np.sum),
        ("addf", "float64", 0, np.sum),
        ("addf", "float16", 0, np.sum),
        ("maximumf", "float32", -1000, np.max),
    ],
)
def test_atomic_operations_of_blocks_that_run_at_once(kind, dtype, initial, expected):
    """Small integers, which floats add without rounding in any order."""
    element = {"int32": "i32", "int64": "i64", "float16": "f16", "float32": "f32", "float64": "f64"}[dtype]
    body = f"""
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%b0, %t0] : memref<40x32x{element}>
    %old = memref.atomic_rmw {kind} %v, %y[%c0] : ({element}, memref<1x{element}>) -> {element}"""
    x, y = np.sign(values((40, 32))).astype(dtype), np.full(1, initial, dtype)
    emulated(kernel("k", f"%x: memref<40x32x{element}>, %y: memref<1x{element}>", body, 32, 40))["k"](x, y)
    assert y[0] == expected(x)


@pytest.mark.parametrize(
    ("threads", "shared", "message"),
    [
        (2048, f"%s: memref<1xf32, {SHARED}>", "kernel k: expected blocks of at most 1024 threads, found 2048"),
        (64, f"%s: memref<65537xf32, {SHARED}>", "kernel k: expected at most 262144 bytes of shared memory, found 262148"),
    ],
)
def test_what_no_block_can_have_is_refused(threads, shared, message):
    with pytest.raises(ValueError, match=message):
        emulated(kernel("k", "", "gpu.barrier", threads, 1, shared))


def test_a_block_may_have_so_much_shared_memory():
    with make_context(), ir.Location.unknown():
        found = memory.BlockMemory("k", [ir.MemRefType.get([65536], ir.F32Type.get())], 64)
    assert (found.shared, found.dynamic) == ([0], 262144)


def test_operations_that_errors_name():
    """What their attributes are is in their text, of which there are 160 characters at most."""
    with only_function(
        "func.func @f(%i: index) -> index { %0 = affine.apply affine_map<(d) -> (d + 5)>(%i) return %0 : index }"
    ) as function:
        sites, (operation, _) = Sites(), function.regions[0].blocks[0].operations
        sites.number_all(function.operation, [operation.operation])
    assert "affine.apply affine_map<(d0) -> (d0 + 5)>(%arg0)" in sites.texts[0]
    unknown = SimpleNamespace(location="loc(unknown)")
    assert _describe(unknown, " x" * 80) == "x" + " x" * 79 and _describe(unknown, "x" * 160) == "x" * 160
    assert _describe(unknown, "x" * 161) == "x" * 160 + "..."


@pytest.mark.parametrize("threads", [memory.MOST_THREADS, memory.MOST_THREADS + 1])
def test_blocks_have_so_many_threads(threads):
    found = SimpleNamespace(name="k", most_threads=threads, shared=())
    with nullcontext() if threads == 1024 else pytest.raises(ValueError, match=r"kernel k: .* at most 1024 threads, found 1025"):
        assert WaitingGrid(found, "g", SimpleNamespace(free=str), None, None).thread_name == "k.thread"


def test_the_largest_block_and_the_most_shared_memory_are_not_refused():
    emulated(kernel("k", "", "gpu.barrier", 1024))["k"]()
    emulated(kernel("k", "", "gpu.barrier", 64, 1, f"%s: memref<65536xf32, {SHARED}>"))["k"]()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("nvvm.cluster.arrive", "kernel k.*: expected operations that the emulation knows, found nvvm.cluster.arrive"),
        (
            '%f = arith.constant 1.0 : f32\n%r = "nvvm.convert.float.to.tf32"(%f) {rnd = #nvvm.fp_rnd_mode<rn>} : (f32) -> i32',
            "kernel k at .*: expected rounding to the nearest, ties away, found ",
        ),
        ("cf.br ^next\n^next:", "kernel k.*: expected structured control flow, found 2 blocks"),
    ],
)
def test_what_the_emulation_does_not_know_is_an_error(body, message):
    with pytest.raises(ValueError, match=message):
        emulated(kernel("k", "", body))


def test_dynamic_shared_memory_lies_behind_the_static():
    body = f"""
    %c0 = arith.constant 0 : index
    %all = gpu.dynamic_shared_memory : memref<?xi8, {SHARED}>
    %d = memref.view %all[%c0][] : memref<?xi8, {SHARED}> to memref<64xf32, {SHARED}>
    %v = memref.load %x[%t0] : memref<64xf32>
    %w = arith.addf %v, %v : f32
    memref.store %v, %s[%t0] : memref<64xf32, {SHARED}>
    memref.store %w, %d[%t0] : memref<64xf32, {SHARED}>
    gpu.barrier
    %last = arith.constant 63 : index
    %i = arith.subi %last, %t0 : index
    %a = memref.load %s[%i] : memref<64xf32, {SHARED}>
    %b = memref.load %d[%i] : memref<64xf32, {SHARED}>
    %c = arith.subf %b, %a : f32
    memref.store %c, %y[%t0] : memref<64xf32>"""
    text = kernel("k", "%x: memref<64xf32>, %y: memref<64xf32>", body, 64, 3, f"%s: memref<64xf32, {SHARED}>")
    text = text.replace("  gpu.launch", "  %bytes = arith.constant 256 : i32\n  gpu.launch", 1)
    text = text.replace(" workgroup(", " dynamic_shared_memory_size %bytes workgroup(", 1)
    x, y = values((64,)), np.zeros(64, np.float32)
    with PassContext(config={"gpu.check_races": True}):
        emulated(text)["k"](x, y)
    np.testing.assert_array_equal(y, x[::-1])


def test_blocks_of_threads_that_only_a_call_knows_do_not_wait():
    text = kernel("k", "%n: index", "gpu.barrier").replace("(%s0 = %s0c", "(%s0 = %n")
    with pytest.raises(ValueError, match="kernel k: expected blocks of a known number of threads"):
        emulated(text)


@pytest.mark.parametrize(
    ("offset", "place"), [(0, None), (1, "[1]"), ((1 << 31) - 1, "[2147483647]"), (1 << 31, "[%{}]"), (1 << 40, "[%{}]"), ("%n", "[%arg1]")]
)
def test_addresses_have_offsets_of_32_bits_or_of_a_value(offset, place):
    with only_function("func.func @f(%p: !llvm.ptr, %n: i64) { return }") as function:
        (block,) = function.regions[0].blocks
        base, number = block.arguments
        with ir.InsertionPoint.at_block_begin(block):
            found = pointers.at(base, number if offset == "%n" else offset)
        if place is None:
            assert found == base
            return
        made = str(found.owner)
        assert "%arg0[" in made and made.endswith(": (!llvm.ptr, i64) -> !llvm.ptr, i8") == (place.startswith("[%"))
        if offset != "%n" and offset >> 31:
            assert f"{offset} : i64" in str(function)
        else:
            assert place in made
