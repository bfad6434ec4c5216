"""The check for races in shared memory."""

import re

import numpy as np
import pytest
from gpu_kernels import emulated, kernel, only_function
from oracle import values

from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.targets.gpu.emulate.races import find_uses

SHARED = "#gpu.address_space<workgroup>"
CHECK = {"gpu.check_races": True}


def checked(text: str):
    with PassContext(config=CHECK):
        return emulated(text)["k"]


TRANSPOSE = f"""
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    scf.for %again = %c0 to %c32 step %c8 {{
      scf.for %i = %t1 to %c32 step %c8 {{
        %v = memref.load %x[%i, %t0] : memref<32x32xf16>
        memref.store %v, %s[%i, %t0] : memref<32x33xf16, {SHARED}>
      }}
      BEFORE
      scf.for %i = %t1 to %c32 step %c8 {{
        %v = memref.load %s[%t0, %i] : memref<32x33xf16, {SHARED}>
        memref.store %v, %y[%i, %t0] : memref<32x32xf16>
      }}
      AFTER
    }}"""


def transpose(before: str, after: str) -> str:
    body = TRANSPOSE.replace("BEFORE", before).replace("AFTER", after)
    return kernel("k", "%x: memref<32x32xf16>, %y: memref<32x32xf16>", body, (32, 8), 3, f"%s: memref<32x33xf16, {SHARED}>")


def test_barriers_before_and_after_are_what_a_transposition_needs():
    x, y = values((32, 32), "float16"), np.zeros((32, 32), np.float16)
    checked(transpose("gpu.barrier", "gpu.barrier"))(x, y)
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize(("before", "after"), [("", "gpu.barrier"), ("gpu.barrier", ""), ("", "")])
def test_a_missing_barrier_is_a_race_of_two_operations(before, after):
    x, y = values((32, 32), "float16"), np.zeros((32, 32), np.float16)
    with pytest.raises(RuntimeError, match=r"kernel k, block \d of its grid: expected a barrier between uses of shared memory") as error:
        checked(transpose(before, after))(x, y)
    # Which of the two comes first is up to the order in which warps run.
    found = re.search(r"thread (\d+) at .*memref\.(\w+) .*:\d+:\d+\), and thread (\d+) at .*memref\.(\w+) .*:\d+:\d+\)", str(error.value))
    assert found is not None and found[1] != found[3] and {found[2], found[4]} == {"load", "store"}


def neighbours(between: str, distance: int) -> str:
    """Each thread reads what the one `distance` before it wrote."""
    body = f"""
    %d = arith.constant {distance} : index
    %n = arith.constant 64 : index
    %all = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %v = memref.load %x[%t0] : memref<64xi32>
    memref.store %v, %s[%t0] : memref<64xi32, {SHARED}>
    {between}
    %i0 = arith.addi %t0, %d : index
    %i = arith.remui %i0, %n : index
    %w = memref.load %s[%i] : memref<64xi32, {SHARED}>
    memref.store %w, %y[%t0] : memref<64xi32>"""
    return kernel("k", "%x: memref<64xi32>, %y: memref<64xi32>", body, 64, 1, f"%s: memref<64xi32, {SHARED}>")


def test_lanes_are_in_order_by_barriers_of_their_warp_and_not_by_shuffles():
    x, y = values((64,), "int32"), np.zeros(64, np.int32)
    checked(neighbours("nvvm.bar.warp.sync %all : i32", 0))(x, y)
    np.testing.assert_array_equal(y, x)
    checked(neighbours("nvvm.bar.warp.sync %all : i32", 64))(x, y)
    with pytest.raises(RuntimeError, match="expected a barrier between uses of shared memory"):
        checked(neighbours("nvvm.bar.warp.sync %all : i32", 1))(x, y)  # lane 31 reads what the other warp writes
    shuffle = "%o, %p = gpu.shuffle xor %v, %zero, %width : i32"
    with pytest.raises(RuntimeError, match="expected a barrier between uses of shared memory"):
        checked(neighbours(f"%width = arith.constant 32 : i32\n    {shuffle}", 1))(x, y)
    checked(neighbours("gpu.barrier", 1))(x, y)
    np.testing.assert_array_equal(y, np.roll(x, -1))


def test_atomic_operations_race_with_others_only():
    body = f"""
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %first = arith.cmpi eq, %t0, %c0 : index
    scf.if %first {{
      memref.store %zero, %s[%c0] : memref<1xi32, {SHARED}>
    }}
    gpu.barrier
    %v = memref.load %x[%t0] : memref<64xi32>
    %old = memref.atomic_rmw addi %v, %s[%c0] : (i32, memref<1xi32, {SHARED}>) -> i32
    BETWEEN
    %sum = memref.load %s[%c0] : memref<1xi32, {SHARED}>
    memref.store %sum, %y[%t0] : memref<64xi32>"""
    x, y = values((64,), "int32"), np.zeros(64, np.int32)
    arguments, shared = "%x: memref<64xi32>, %y: memref<64xi32>", f"%s: memref<1xi32, {SHARED}>"
    checked(kernel("k", arguments, body.replace("BETWEEN", "gpu.barrier"), 64, 1, shared))(x, y)
    assert (y == x.sum()).all()
    with pytest.raises(RuntimeError, match=r"thread 0 at .*memref\.(load|atomic_rmw)"):
        checked(kernel("k", arguments, body.replace("BETWEEN", ""), 64, 1, shared))(x, y)


def test_pointers_beside_each_other_are_no_race():
    body = """
    %start = memref.extract_aligned_pointer_as_index %s : memref<64xi64, SHARED> -> index
    %c8 = arith.constant 8 : index
    %offset = arith.muli %t0, %c8 : index
    %index = arith.addi %start, %offset : index
    %address = arith.index_cast %index : index to i64
    %place = llvm.inttoptr %address : i64 to !llvm.ptr<3>
    %v = memref.load %x[%t0] : memref<64xi64>
    %pointer = llvm.inttoptr %v : i64 to !llvm.ptr
    llvm.store %pointer, %place : !llvm.ptr, !llvm.ptr<3>
    %read = llvm.load %place : !llvm.ptr<3> -> !llvm.ptr
    %w = llvm.ptrtoint %read : !llvm.ptr to i64
    memref.store %w, %y[%t0] : memref<64xi64>""".replace("SHARED", SHARED)
    x, y = values((64,), "int64"), np.zeros(64, np.int64)
    checked(kernel("k", "%x: memref<64xi64>, %y: memref<64xi64>", body, 64, 1, f"%s: memref<64xi64, {SHARED}>"))(x, y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize(
    ("transfer", "is_found"),
    [
        ("vector.load %x[%i, %i] : memref<8x8xf32>, vector<4x4xf32>", True),
        ("vector.transfer_read %x[%i, %i], %p {in_bounds = [true, true]} : memref<8x8xf32>, vector<4x4xf32>", True),
        ("vector.transfer_read %x[%i, %i], %p {in_bounds = [true, false]} : memref<8x8xf32>, vector<4x4xf32>", False),
        ("vector.transfer_read %x[%i, %i], %p : memref<8x8xf32>, vector<4x4xf32>", False),
        ("vector.transfer_read %x[%i, %i], %p, %m {in_bounds = [true, true]} : memref<8x8xf32>, vector<4x4xf32>", False),
    ],
)
def test_transfers_of_bytes_that_are_known_are_checked(transfer, is_found):
    arguments = f"%x: memref<8x8xf32, {SHARED}>, %i: index, %p: f32, %m: vector<4x4xi1>"
    text = f"func.func @f({arguments}) {{\n%v = {transfer.replace('8x8xf32', f'8x8xf32, {SHARED}')}\nreturn }}"
    with only_function(text) as function:
        assert bool(find_uses(function.operation)) is is_found
