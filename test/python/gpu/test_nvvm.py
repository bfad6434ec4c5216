"""Instructions of NVIDIA's warps and copies, against their pseudocode in the PTX ISA."""

from collections.abc import Callable

import numpy as np
import pytest
from gpu_kernels import emulated, kernel
from oracle import values

from relayc.dialects.discardable import SMALL
from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import func, ir, make_context
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError
from relayc.pipelines.targets.cuda.device.threads import _NUMBERS, _number, _position, _shuffle
from relayc.pipelines.targets.cuda.emulate.mbarriers import UPDATE
from relayc.pipelines.targets.gpu.emulate import emulate_kernels
from relayc.pipelines.targets.gpu.outline import outline_launches

SHARED = "#gpu.address_space<workgroup>"


def shfl(mode: str, lane: int, offset: int, clamps: int) -> tuple[int, bool]:
    """Which lane shfl.sync reads from, and its predicate (PTX ISA, "shfl.sync")."""
    offset, clamp, segments = offset & 31, clamps & 31, clamps >> 8 & 31
    highest, lowest = lane & segments | clamp & ~segments, lane & segments
    source = {"up": lane - offset, "down": lane + offset, "bfly": lane ^ offset, "idx": lowest | offset & ~segments}[mode]
    valid = source >= highest if mode == "up" else source <= highest
    return (source if valid else lane), valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl_with_segments(mode):
    body = f"""
    %all = arith.constant -1 : i32
    %v = memref.load %x[%t0] : memref<32xf32>
    %o = memref.load %z[%t1, %t0] : memref<4x32xi32>
    %c = memref.load %clamps[%t1] : memref<4xi32>
    %r = nvvm.shfl.sync {mode} %all, %v, %o, %c {{return_value_and_is_valid}} : f32 -> !llvm.struct<(f32, i1)>
    %s = llvm.extractvalue %r[0] : !llvm.struct<(f32, i1)>
    %p = llvm.extractvalue %r[1] : !llvm.struct<(f32, i1)>
    memref.store %s, %y[%t1, %t0] : memref<4x32xf32>
    %b = arith.extui %p : i1 to i8
    memref.store %b, %valid[%t1, %t0] : memref<4x32xi8>"""
    arguments = "%x: memref<32xf32>, %z: memref<4x32xi32>, %clamps: memref<4xi32>, %y: memref<4x32xf32>, %valid: memref<4x32xi8>"
    rng = np.random.default_rng(7)
    x, z = values((32,)), rng.integers(0, 32, (4, 32)).astype(np.int32)
    z[:, :] = z[:, :1] if mode != "idx" else z
    clamps = np.array([0 if mode == "up" else 31, *[(32 - w) << 8 | (0 if mode == "up" else 31) for w in (16, 8, 2)]], np.int32)
    y, valid = np.zeros((4, 32), np.float32), np.zeros((4, 32), np.int8)
    emulated(kernel("k", arguments, body, (32, 4)))["k"](x, z, clamps, y, valid)
    for warp in range(4):
        expected = [shfl(mode, lane, int(z[warp, lane]), int(clamps[warp])) for lane in range(32)]
        np.testing.assert_array_equal(valid[warp], [p for _, p in expected])
        np.testing.assert_array_equal(y[warp], x[[source for source, _ in expected]])


def test_shfl_gives_the_value_alone_where_nobody_asks_more():
    body = """
    %all = arith.constant -1 : i32
    %by = arith.constant 5 : i32
    %clamp = arith.constant 31 : i32
    %v = memref.load %x[%t0] : memref<32xf32>
    %r = nvvm.shfl.sync bfly %all, %v, %by, %clamp : f32 -> f32
    memref.store %r, %y[%t0] : memref<32xf32>"""
    x, y = values((32,)), np.zeros(32, np.float32)
    emulated(kernel("k", "%x: memref<32xf32>, %y: memref<32xf32>", body, 32))["k"](x, y)
    np.testing.assert_array_equal(y, x[np.arange(32) ^ 5])


def test_tokens_of_arrivals_are_refused():
    """Waits are by parity."""
    body = """
    %p = llvm.mlir.zero : !llvm.ptr<3>
    %token = nvvm.mbarrier.arrive %p : !llvm.ptr<3> -> i64
    memref.store %token, %x[%t0] : memref<32xi64>"""
    message = r"kernel k at .*: expected waits by parity, found a use of the token of nvvm.mbarrier.arrive"
    with pytest.raises(ValueError, match=message):
        emulated(kernel("k", "%x: memref<32xi64>", body, 32), arch="sm_90a")


def test_reductions_are_of_integers():
    body = """
    %all = arith.constant -1 : i32
    %v = memref.load %x[%t0] : memref<32xf32>
    %r = nvvm.redux.sync fmin %v, %all : f32 -> f32
    memref.store %r, %x[%t0] : memref<32xf32>"""
    with pytest.raises(ValueError, match=r"kernel k at .*: expected a reduction of integers, found fmin"):
        emulated(kernel("k", "%x: memref<32xf32>", body, 32))


def group_product(steps=16, kind="f16", sums="f32", type_="f32, f32, f32, f32", scale="one", ends=""):
    """A product of a warp group with eight columns."""
    type_ = f"!llvm.struct<({type_})>"
    return f"""%d = arith.constant 0 : i64
    %none = llvm.mlir.zero : {type_}
    %r = nvvm.wgmma.mma_async %d, %d, %none, #nvvm.shape<m = 64, n = 8, k = {steps}>, D [<{sums}>, #nvvm.wgmma_scale_out<one>{ends}],
      A [<{kind}>, #nvvm.wgmma_scale_in<{scale}>, <row>], B [<{kind}>, #nvvm.wgmma_scale_in<one>, <col>] : {type_} -> {type_}"""


REFUSED = {
    """%p = llvm.mlir.zero : !llvm.ptr<3>
    %r = nvvm.ldmatrix %p {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 16>,
      eltType = #nvvm.ld_st_matrix_elt_type<b8x16.b6x16_p32>} : (!llvm.ptr<3>) -> i32""": "expected ldmatrix of 8 x 8 elements of 16 bits",
    """%w = arith.constant 0 : i32
    %r = nvvm.mma.sync A[%w] B[%w] C[%w, %w] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
      intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>, multiplicandAPtxType = #nvvm.mma_type<s8>,
      multiplicandBPtxType = #nvvm.mma_type<s8>, shape = #nvvm.shape<m = 8, n = 8, k = 16>}
      : (i32, i32, i32) -> !llvm.struct<(i32, i32)>""": "expected mma.sync of 16 x 8, 32 bytes deep",
    group_product(sums="f16", type_="i32, i32"): "expected wgmma of .* in f32 or .*, found m64n8k16 of f16, f16, f16",
    group_product(scale="neg"): "expected wgmma that is scaled by 1 and wraps",
    group_product(32, "s8", "s32", "i32, i32, i32, i32", ends=", <satfinite>"): "expected wgmma that is scaled by 1 and wraps",
    """%map = llvm.mlir.zero : !llvm.ptr
    %to = llvm.mlir.zero : !llvm.ptr<7>
    %bar = llvm.mlir.zero : !llvm.ptr<3>
    %i = arith.constant 0 : i32
    %hint = arith.constant 0 : i64
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %bar, box[%i] l2_cache_hint = %hint : !llvm.ptr<7>, !llvm.ptr""": (
        "expected a copy of a box, of up to 5 dimensions, or of pixels, of 4, found"
    ),
}


@pytest.mark.parametrize("instruction", REFUSED)
def test_instructions_of_other_kinds_are_refused(instruction):
    with pytest.raises(ValueError, match=f"kernel k at .*: {REFUSED[instruction]}"):
        emulated(kernel("k", "%x: memref<32xf32>", instruction, 128), arch="sm_90a")


def test_votes_matches_reductions_and_elections_of_some_lanes():
    """The even lanes and the odd ones are apart from each other."""
    body = """
    %c2 = arith.constant 2 : index
    %even = arith.constant 0x55555555 : i32
    %v = memref.load %x[%t0] : memref<32xi32>
    %rest = arith.remui %t0, %c2 : index
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %is = arith.cmpi eq, %rest, %c0 : index
    %odd = arith.constant 0xAAAAAAAA : i32
    %big = arith.cmpi sgt, %v, %zero : i32
    %bits, %some, %same, %sum, %least, %one = scf.if %is -> (i32, i1, i32, i32, i32, i1) {
      %a = nvvm.vote.sync ballot %even, %big -> i32
      %b = nvvm.vote.sync any %even, %big -> i1
      %c = nvvm.match.sync any %even, %v : i32 -> i32
      %d = nvvm.redux.sync add %v, %even : i32 -> i32
      %e = nvvm.redux.sync min %v, %even : i32 -> i32
      %f = nvvm.elect.sync %even -> i1
      scf.yield %a, %b, %c, %d, %e, %f : i32, i1, i32, i32, i32, i1
    } else {
      %a = nvvm.vote.sync ballot %odd, %big -> i32
      nvvm.bar.warp.sync %odd : i32
      %b = nvvm.vote.sync all %odd, %big -> i1
      %c = nvvm.match.sync any %odd, %v : i32 -> i32
      %d = nvvm.redux.sync xor %v, %odd : i32 -> i32
      %e = nvvm.redux.sync umax %v, %odd : i32 -> i32
      %f = nvvm.elect.sync %odd -> i1
      scf.yield %a, %b, %c, %d, %e, %f : i32, i1, i32, i32, i32, i1
    }
    %i1 = arith.constant 1 : index
    %i2 = arith.constant 2 : index
    %i3 = arith.constant 3 : index
    %i4 = arith.constant 4 : index
    %i5 = arith.constant 5 : index
    %some32 = arith.extui %some : i1 to i32
    %one32 = arith.extui %one : i1 to i32
    memref.store %bits, %y[%c0, %t0] : memref<6x32xi32>
    memref.store %some32, %y[%i1, %t0] : memref<6x32xi32>
    memref.store %same, %y[%i2, %t0] : memref<6x32xi32>
    memref.store %sum, %y[%i3, %t0] : memref<6x32xi32>
    memref.store %least, %y[%i4, %t0] : memref<6x32xi32>
    memref.store %one32, %y[%i5, %t0] : memref<6x32xi32>"""
    x, y = values((32,), "int32"), np.zeros((6, 32), np.int32)
    emulated(kernel("k", "%x: memref<32xi32>, %y: memref<6x32xi32>", body, 32))["k"](x, y)
    bits = 1 << np.arange(32, dtype=np.int64)
    for first in (0, 1):
        lanes = np.arange(first, 32, 2)
        mine = x[lanes]
        assert (y[0, lanes].astype(np.uint32) == (bits[lanes] * (mine > 0)).sum()).all()
        assert (y[1, lanes] == ((mine > 0).all() if first else (mine > 0).any())).all()
        np.testing.assert_array_equal(y[2, lanes].astype(np.uint32), [(bits[lanes] * (mine == v)).sum() for v in mine])
        assert (y[3, lanes] == (np.bitwise_xor.reduce(mine) if first else mine.sum())).all()
        assert (y[4, lanes].astype(np.uint32) == (mine.astype(np.uint32).max() if first else mine.min().astype(np.uint32))).all()
        np.testing.assert_array_equal(y[5, lanes], lanes == first)


def test_some_warps_meet_at_a_barrier_of_their_own():
    """The first warp reads what the second has written and only announced; the third takes no part."""
    body = f"""
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %id = arith.constant 3 : i32
    %n = arith.constant 64 : i32
    %reads = arith.cmpi eq, %t1, %c0 : index
    %writes = arith.cmpi eq, %t1, %c1 : index
    scf.if %reads {{
      nvvm.barrier id = %id number_of_threads = %n
      %v = memref.load %s[%t0] : memref<32xf32, {SHARED}>
      memref.store %v, %y[%t0] : memref<32xf32>
    }}
    scf.if %writes {{
      %v = memref.load %x[%t0] : memref<32xf32>
      memref.store %v, %s[%t0] : memref<32xf32, {SHARED}>
      nvvm.barrier.arrive id = %id number_of_threads = %n
    }}"""
    x, y = values((32,)), np.zeros(32, np.float32)
    emulated(kernel("k", "%x: memref<32xf32>, %y: memref<32xf32>", body, (32, 3), 1, f"%s: memref<32xf32, {SHARED}>"))["k"](x, y)
    np.testing.assert_array_equal(y, x)


COPIES = f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %some = arith.constant 12 : i32
    %q = arith.muli %t0, %c4 : index
    %to0 = memref.extract_aligned_pointer_as_index %s : memref<3x128xf32, {SHARED}> -> index
    %from0 = memref.extract_aligned_pointer_as_index %x : memref<5x128xf32> -> index
    %sixteen = arith.constant 16 : index
    %row = arith.constant 512 : index
    %o = arith.muli %t0, %sixteen : index
    // Copies of row n go to row n mod 3; two of them are on their way while one is read.
    scf.for %i = %c0 to %c5 step %c1 {{
      %r = arith.remui %i, %c3 : index
      %to1 = arith.muli %r, %row : index
      %to2 = arith.addi %to0, %to1 : index
      %to3 = arith.addi %to2, %o : index
      %to4 = arith.index_cast %to3 : index to i64
      %to = llvm.inttoptr %to4 : i64 to !llvm.ptr<3>
      %from1 = arith.muli %i, %row : index
      %from2 = arith.addi %from0, %from1 : index
      %from3 = arith.addi %from2, %o : index
      %from4 = arith.index_cast %from3 : index to i64
      %from = llvm.inttoptr %from4 : i64 to !llvm.ptr<1>
      nvvm.cp.async.shared.global %to, %from, 16, cache = cg, %some : !llvm.ptr<3>, !llvm.ptr<1>, i32
      nvvm.cp.async.commit.group
      %later = arith.cmpi uge, %i, %c2 : index
      scf.if %later {{
        nvvm.cp.async.wait.group KEEP
        %n = arith.subi %i, %c2 : index
        %m = arith.remui %n, %c3 : index
        %v = vector.load %s[%m, %q] : memref<3x128xf32, {SHARED}>, vector<4xf32>
        vector.store %v, %y[%n, %q] : memref<5x128xf32>, vector<4xf32>
      }}
    }}
    nvvm.cp.async.wait.group 0
    scf.for %n = %c3 to %c5 step %c1 {{
      %m = arith.remui %n, %c3 : index
      %v = vector.load %s[%m, %q] : memref<3x128xf32, {SHARED}>, vector<4xf32>
      vector.store %v, %y[%n, %q] : memref<5x128xf32>, vector<4xf32>
    }}"""


@pytest.mark.parametrize("keep", [2, 3])
def test_copies_arrive_when_their_group_is_waited_for(keep):
    x, y = values((5, 128)), np.zeros((5, 128), np.float32)
    arguments = "%x: memref<5x128xf32>, %y: memref<5x128xf32>"
    text = kernel("k", arguments, COPIES.replace("KEEP", str(keep)), 32, 1, f"%s: memref<3x128xf32, {SHARED}>")
    emulated(text)["k"](x, y)
    expected = x.copy()
    expected[:, 3::4] = 0  # 12 of 16 bytes are copied
    if keep == 2:
        np.testing.assert_array_equal(y, expected)
    else:  # one wait less than needed: what is read has not been written, or is of the row three before
        assert np.isnan(y[0]).all() and (y != expected).any()


WGMMA_COLUMNS = 96


def across_the_depth(matrix: np.ndarray, leading: int, stride: int) -> np.ndarray:
    """Shared memory with a matrix [lines, 16 steps of the depth] of two bytes that lies across the depth, permuted by 128 bytes (PTX ISA,
    "Asynchronous Warpgroup Level Canonical Layouts": MN-major; chunk c of line i of eight is at c ^ i)."""
    found = np.zeros(1 << 13, np.uint8)
    for line, step in np.ndindex(matrix.shape):
        at = line // 64 * leading + step // 8 * stride + step % 8 * 128 + line % 64 * 2
        chunk, row = at // 16 % 8, at // 128 % 8
        place = at - chunk * 16 + (chunk ^ row) * 16
        found[place : place + 2] = np.frombuffer(matrix[line, step].tobytes(), np.uint8)
    return found


def test_a_product_of_a_warp_group_reads_matrices_across_the_depth():
    """The distances are other ones than schedules have: from 64 lines to the next, and from eight steps of the depth to the next."""
    distances = ((1024, 2048), (1024, 3072))
    fixed = [1 << 62 | stride // 16 << 32 | leading // 16 << 16 for leading, stride in distances]
    sums = f"!llvm.struct<({', '.join(['f32'] * (WGMMA_COLUMNS // 2))})>"
    stores = "".join(
        f"""
    %i{i} = arith.constant {i} : index
    %v{i} = llvm.extractvalue %last[{i}] : {sums}
    memref.store %v{i}, %y[%t0, %i{i}] : memref<128x{WGMMA_COLUMNS // 2}xf32>"""
        for i in range(WGMMA_COLUMNS // 2)
    )
    body = f"""
    %step = arith.constant 16 : index
    %many = arith.constant {1 << 14} : index
    %chunk = arith.constant 2048 : index
    %begin = arith.muli %t0, %step : index
    scf.for %at = %begin to %many step %chunk {{
      %some = vector.load %x[%at] : memref<{1 << 14}xi8>, vector<16xi8>
      vector.store %some, %s[%at] : memref<{1 << 14}xi8, {SHARED}>, vector<16xi8>
    }}
    gpu.barrier
    %address = memref.extract_aligned_pointer_as_index %s : memref<{1 << 14}xi8, {SHARED}> -> index
    %second = arith.constant {1 << 13} : index
    %next = arith.addi %address, %second : index
    %fixed_a = arith.constant {fixed[0]} : i64
    %fixed_b = arith.constant {fixed[1]} : i64
    %mask = arith.constant 262143 : i64
    %four = arith.constant 4 : i64
    %a0 = arith.index_cast %address : index to i64
    %a1 = arith.andi %a0, %mask : i64
    %a2 = arith.shrui %a1, %four : i64
    %a = arith.ori %a2, %fixed_a : i64
    %c0 = arith.index_cast %next : index to i64
    %c1 = arith.andi %c0, %mask : i64
    %c2 = arith.shrui %c1, %four : i64
    %c = arith.ori %c2, %fixed_b : i64
    %none = llvm.mlir.zero : {sums}
    nvvm.wgmma.fence.aligned
    %last = nvvm.wgmma.mma_async %a, %c, %none, #nvvm.shape<m = 64, n = {WGMMA_COLUMNS}, k = 16>,
      D [<f32>, #nvvm.wgmma_scale_out<one>], A [<f16>, #nvvm.wgmma_scale_in<one>, <col>], B [<f16>, #nvvm.wgmma_scale_in<one>, <row>]
      : {sums} -> {sums}
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0{stores}"""
    a, b = values((64, 16), "float16"), values((WGMMA_COLUMNS, 16), "float16", seed=1)
    x = np.concatenate([across_the_depth(m, *d) for m, d in zip((a, b), distances, strict=True)]).view(np.int8)
    y = np.zeros((128, WGMMA_COLUMNS // 2), np.float32)
    arguments = f"%x: memref<{1 << 14}xi8>, %y: memref<128x{WGMMA_COLUMNS // 2}xf32>"
    emulated(kernel("k", arguments, body, 128, 1, f"%s: memref<{1 << 14}xi8, {SHARED}>"), arch="sm_90a")["k"](x, y)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    for thread, number in np.ndindex(y.shape):
        row = thread // 32 * 16 + thread % 32 // 4 + number // 2 % 2 * 8
        column = number // 4 * 8 + thread % 4 * 2 + number % 2
        # Products are exact in f32, the sum of 16 is rounded some times.
        assert abs(y[thread, number] - expected[row, column]) <= 2.0**-20 * (np.abs(a[row]) @ np.abs(b[column]))


NUMBERS = [
    *(f"gpu.{kind} {axis}" for kind in ("thread_id", "block_id", "block_dim", "grid_dim", "global_id") for axis in "xyz"),
    "gpu.lane_id",
    *(f"gpu.{name} : index" for name in ("subgroup_id", "num_subgroups", "subgroup_size")),
]
REGISTERS = [
    *(f"{kind}.{axis}" for kind in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"),
    *("laneid", "warpid", "nwarpid", "warpsize"),
]


def changed(text: str, change: Callable[[ir.Operation], None]) -> str:
    """The text of a module in which each operation of the gpu dialect is changed."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        found: list[ir.Operation] = []
        module.operation.walk(lambda op: (found.append(op), ir.WalkResult.ADVANCE)[1])
        for op in found:
            if op.name.startswith("gpu."):
                with ir.InsertionPoint(op):
                    change(op)
        return str(module)


def test_where_a_thread_is():
    """Blocks of 5 x 4 x 3 threads, whose second warp has 28 lanes, in a grid of 2 x 3 x 2."""
    lines = [f"%n{i} = {op}" for i, op in enumerate(NUMBERS * 3)]
    for i, name in enumerate(REGISTERS, len(lines)):
        lines += [f"%r{i} = nvvm.read.ptx.sreg.{name} : i32", f"%n{i} = arith.index_cast %r{i} : i32 to index"]
    count = 3 * len(NUMBERS) + len(REGISTERS)
    for i in range(count):
        lines += [f"%c{i} = arith.constant {i} : index", f"%v{i} = arith.index_cast %n{i} : index to i32"]
        lines += [f"memref.store %v{i}, %y[%n12, %n13, %n14, %c{i}] : memref<10x12x6x{count}xi32>"]  # gpu.global_id
    y = np.full((10, 12, 6, count), -1, np.int32)
    text = kernel("k", f"%y: memref<10x12x6x{count}xi32>", "\n    ".join(lines), (5, 4, 3), (2, 3, 2))
    # The emulation of the operations; what they are for a block whose size is known, and for any block.
    blocks = iter([*[None] * len(NUMBERS), *[(5, 4, 3)] * len(NUMBERS), *[()] * len(NUMBERS)])

    def lower(op: ir.Operation) -> None:
        if op.name in _NUMBERS and (block := next(blocks)) is not None:
            op.results[0].replace_all_uses_with(_number(op, _position(block or None)))

    emulated(changed(text, lower))["k"](y)
    everywhere = np.stack(np.meshgrid(*map(np.arange, (10, 12, 6)), indexing="ij"), -1)
    block, grid = np.array([5, 4, 3]), np.array([2, 3, 2])
    thread, number = everywhere % block, everywhere // block
    size, shape = np.broadcast_to(block, everywhere.shape), np.broadcast_to(grid, everywhere.shape)
    linear = thread @ np.array([1, 5, 20])
    warps = [linear % 32, linear // 32, np.full(linear.shape, 2), np.full(linear.shape, 32)]
    expected = [*(part[..., i] for part in (thread, number, size, shape, everywhere) for i in range(3)), *warps]
    expected = [*expected * 3, *(part[..., i] for part in (thread, number, size, shape) for i in range(3)), *warps]
    for name, found, wanted in zip([*NUMBERS * 3, *REGISTERS], np.moveaxis(y, -1, 0), expected, strict=True):
        np.testing.assert_array_equal(found, wanted, name)


def test_lanes_that_all_agree():
    """vote.uni and match.all, of warps in which all lanes, some, or none have the value 3."""
    body = """
    %all = arith.constant -1 : i32
    %three = arith.constant 3 : i32
    %v = memref.load %x[%t1, %t0] : memref<3x32xi32>
    %is = arith.cmpi eq, %v, %three : i32
    %a = nvvm.vote.sync uni %all, %is -> i1
    %m = nvvm.match.sync all %all, %v : i32 -> !llvm.struct<(i32, i1)>
    %b = llvm.extractvalue %m[1] : !llvm.struct<(i32, i1)>
    %lanes = llvm.extractvalue %m[0] : !llvm.struct<(i32, i1)>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %p = arith.extui %a : i1 to i32
    %q = arith.extui %b : i1 to i32
    memref.store %p, %y[%t1, %t0, %c0] : memref<3x32x3xi32>
    memref.store %q, %y[%t1, %t0, %c1] : memref<3x32x3xi32>
    memref.store %lanes, %y[%t1, %t0, %c2] : memref<3x32x3xi32>"""
    x = np.stack([np.full(32, 3), np.arange(32) % 2 + 3, np.arange(32) + 4]).astype(np.int32)
    y = np.zeros((3, 32, 3), np.int32)
    emulated(kernel("k", "%x: memref<3x32xi32>, %y: memref<3x32x3xi32>", body, (32, 3)))["k"](x, y)
    for found, wanted in zip(y, ([1, 1, -1], [0, 0, 0], [1, 0, 0]), strict=True):
        np.testing.assert_array_equal(found, np.broadcast_to(wanted, (32, 3)))


SHUFFLED = ("i64", "i8", "f16", "vector<2xf16>", "vector<3xf16>")


def lower_shuffle(op: ir.Operation) -> None:
    if op.name == "gpu.shuffle":
        _shuffle(op)
        op.erase()


def test_values_of_all_widths_are_shuffled_in_words():
    """Each lane gives its number, and a multiple of it where there are several elements; lanes of 16 exchange with those 3 higher."""
    lines = ["%three = arith.constant 3 : i32", "%sixteen = arith.constant 16 : i32", "%n = arith.index_cast %t0 : index to i32"]
    for i, type_ in enumerate(SHUFFLED):
        element = type_.rstrip(">").split("x")[-1] if "<" in type_ else type_
        bits = f"i{element[1:]}"
        to_bits = "extsi %n : i32 to i64" if bits == "i64" else f"trunci %n : i32 to {bits}"
        lines += [f"%bb{i} = arith.{to_bits}"]
        casted = f"arith.uitofp %bb{i} : {bits} to {element}" if element[0] == "f" else f"arith.addi %bb{i}, %bb{i} : {bits}"
        lines += [f"%ee{i} = {casted}"]
        add = "addf" if element[0] == "f" else "addi"
        count = int(type_[7]) if "<" in type_ else 0
        lines += [f"%p{i}_0 = arith.{add} %ee{i}, %ee{i} : {element}"]
        lines += [f"%p{i}_{k} = arith.{add} %p{i}_{k - 1}, %ee{i} : {element}" for k in range(1, count)]
        if count:
            lines += [f"%gg{i} = vector.from_elements {', '.join(f'%p{i}_{k}' for k in range(count))} : {type_}"]
        lines += [f"%ss{i}, %ok{i} = gpu.shuffle down {f'%gg{i}' if count else f'%p{i}_0'}, %three, %sixteen : {type_}"]
        lines += [
            f"%l{i} = "
            + (f"vector.extract %ss{i}[{count - 1}] : {element} from {type_}" if count else f"arith.{add} %ss{i}, %z{i} : {element}")
        ]
        lines.insert(0, f"%z{i} = arith.constant {'0.0' if element[0] == 'f' else '0'} : {element}")
        out = "fptosi" if element[0] == "f" else "trunci" if element == "i64" else "extui"
        lines += [
            f"%o{i} = arith.{out} %l{i} : {element} to i32",
            f"%c{i} = arith.constant {i} : index",
            f"memref.store %o{i}, %y[%t0, %c{i}] : memref<32x5xi32>",
        ]
        lines += [f"%v{i} = arith.extui %ok{i} : i1 to i32", f"memref.store %v{i}, %valid[%t0, %c{i}] : memref<32x5xi32>"]
    text = kernel("k", "%y: memref<32x5xi32>, %valid: memref<32x5xi32>", "\n    ".join(lines), 32)
    lanes = np.arange(32)
    valid = lanes % 16 + 3 < 16
    found = np.zeros((2, 32, 5), np.int32)
    emulated(changed(text, lower_shuffle))["k"](found[0], found[1])
    for i, type_ in enumerate(SHUFFLED):
        # The elements are the lane, or twice the lane where the type is that of integers; the last of `count` is (count + 1) times one.
        one = np.where(valid, lanes + 3, lanes) * (1 if "f" in type_ else 2)
        expected = one * (int(type_[7]) + 1 if "<" in type_ else 2)
        np.testing.assert_array_equal(found[0, :, i], expected % 256 if "i8" in type_ else expected, type_)
        np.testing.assert_array_equal(found[1, :, i], valid, type_)


@pytest.mark.parametrize(
    ("shuffle", "message"),
    [
        ("%w = arith.constant 33 : i32\n%s, %o = gpu.shuffle xor %w, %w, %w : i32", "width: expected a power of two up to 32, found 33"),
        ("%w = arith.constant 12 : i32\n%s, %o = gpu.shuffle xor %w, %w, %w : i32", "width: expected a power of two up to 32, found 12"),
        ("%w = arith.constant 0 : i32\n%s, %o = gpu.shuffle xor %w, %w, %w : i32", "width: expected a power of two up to 32, found "),
        (
            "%w = arith.constant 32 : i32\n%v = arith.constant 1 : i24\n%s, %o = gpu.shuffle xor %v, %w, %w : i24",
            "expected a value of 8 to 64 bits or a vector of such, found i24",
        ),
    ],
)
def test_what_no_shuffle_is_of_is_an_error(shuffle: str, message: str):
    with pytest.raises(DeviceCodeError, match=f"gpu.shuffle: {message}"):
        changed(kernel("k", "", shuffle, 32), lower_shuffle)


def test_a_lane_may_exchange_with_itself():
    """Segments of one lane are clamped at 31, with a mask of 31 that tells segments apart (PTX ISA, "shfl.sync")."""
    shuffle = "%w = arith.constant 1 : i32\n%s, %o = gpu.shuffle idx %w, %w, %w : i32"
    assert f"arith.constant {31 << 8 | 31} : i32" in changed(kernel("k", "", shuffle, 32), lower_shuffle)


def test_threads_may_arrive_at_a_barrier_from_different_operations():
    body = f"""
    %c32 = arith.constant 32 : index
    %c63 = arith.constant 63 : index
    %other = arith.subi %c63, %t0 : index
    %v = memref.load %x[%t0] : memref<64xf32>
    memref.store %v, %s[%t0] : memref<64xf32, {SHARED}>
    %is_first = arith.cmpi ult, %t0, %c32 : index
    scf.if %is_first {{
      nvvm.barrier
    }} else {{
      nvvm.barrier
    }}
    %w = memref.load %s[%other] : memref<64xf32, {SHARED}>
    memref.store %w, %x[%t0] : memref<64xf32>"""
    x = values((64,))
    found = x.copy()
    emulated(kernel("k", "%x: memref<64xf32>", body, 64, 1, f"%s: memref<64xf32, {SHARED}>"))["k"](found)
    np.testing.assert_array_equal(found, x[::-1])


def test_what_instructions_call_is_compiled_as_kernels_are():
    """Only the scheduler, which runs once in a while, is compiled quickly."""
    body = """%bar = llvm.mlir.zero : !llvm.ptr<3>
    %0 = nvvm.mbarrier.arrive %bar : !llvm.ptr<3> -> i64"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(kernel("k", "%x: memref<32xf32>", body, 32))
        outline_launches(module)
        emulate_kernels(module, False)
        small = {symbol_name(op): SMALL.on(op) for op in module.body.operations if isinstance(op, func.FuncOp)}
    assert not small[UPDATE] and any(is_small for name, is_small in small.items() if name.startswith("__relayc_gpu"))
