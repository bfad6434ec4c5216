# RUN: %python %s | filecheck %s
# ruff: noqa: E501
"""Loops that are bound to threads become launches."""

from relayc import te
from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule, ScheduleError


def show(tensors, write):
    s = Schedule(te.create_prim_func(tensors))
    with s.mod.context, ir.Location.unknown():
        made = ir.Module.create()
        with ir.InsertionPoint(made.body):
            try:
                write(s)
                lower_function(s.nest, Target("cuda", arch="sm_80"))
            except ScheduleError as error:
                print("error:", error)
                return
        made.operation.verify()
        print(made)


def row_sums(rows, columns):
    x = te.placeholder((rows, columns), name="X")
    k = te.reduce_axis((0, columns), "k")
    total = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")
    return x, total


def elementwise(extent):
    x = te.placeholder((extent,), name="X")
    return [x, te.compute((extent,), lambda i: x[i] * 2.0, name="Y")]


# Blocks of threads, and a guard where the last block is not full.
# CHECK-LABEL: func.func private @main(%arg0: memref<1000xf32>, %arg1: memref<1000xf32>)
# CHECK: gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c4, %{{.*}}) threads(%[[T:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c256,
# CHECK: %[[I:.*]] = affine.apply #{{.*}}(%[[T]], %[[B]])
# CHECK: %[[IN:.*]] = arith.cmpi slt, %[[I]], %c1000
# CHECK-NEXT: scf.if %[[IN]]
# CHECK: memref.load %arg0[
# CHECK: gpu.terminator
def threads(s):
    blocks, inner = s.split("i", [None, 256])
    s.bind(blocks, "blockIdx.x")
    s.bind(inner, "threadIdx.x")


show(elementwise(1000), threads)


# 16 bytes for each thread; the launch is left out where there is nothing.
# CHECK-LABEL: func.func private @main(%arg0: memref<?xf32>, %arg1: memref<?xf32>, %arg2: index
# CHECK: scf.if
# CHECK-NEXT: gpu.launch
# CHECK: vector.load %arg0[%{{.*}}] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
# CHECK: vector.store {{.*}} : memref<?xf32>, vector<4xf32>
def vectors(s):
    blocks, inner, lanes = s.split("i", [None, 256, 4])
    s.bind(blocks, "blockIdx.x")
    s.bind(inner, "threadIdx.x")
    s.vectorize(lanes)


show(elementwise(te.var("n") * 4), vectors)


# A tile in shared memory: a barrier before it is written again, and one before it is read.
# CHECK-LABEL: func.func private @main(%arg0: memref<64x32xf32>
# CHECK: gpu.launch {{.*}} workgroup(%[[A:.*]] : memref<256xf32, #gpu.address_space<workgroup>>, %[[W:.*]] : memref<256xf32, #gpu.address_space<workgroup>>)
# CHECK: scf.for
# CHECK-NEXT: gpu.barrier
# CHECK: memref.store %{{.*}}, %[[A]]
# CHECK: memref.store %{{.*}}, %[[W]]
# CHECK: gpu.barrier
# CHECK: scf.for
# CHECK-NOT: gpu.barrier
# CHECK: memref.load %[[A]]
# CHECK: memref.load %[[W]]
# CHECK: memref.store %{{.*}}, %{{.*}} : memref<3072xf32>
def product():
    a, b = te.placeholder((64, 32), name="A"), te.placeholder((32, 48), name="B")
    k = te.reduce_axis((0, 32), "k")
    return [a, b, te.compute((64, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def tiles(s):
    i, j, k = s.get_loops("C")
    i0, i1 = s.split(i, [None, 16])
    j0, j1 = s.split(j, [None, 16])
    k0, k1 = s.split(k, [None, 16])
    s.reorder(i0, j0, i1, j1, k0, k1)
    for loop, axis in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x")):
        s.bind(loop, axis)
    for name in ("A", "B"):
        copy = s.cache_read("C", name, "shared")
        x, y = s.compute_at(copy, k0)
        s.bind(x, "threadIdx.y")
        s.bind(y, "threadIdx.x")


show(product(), tiles)


# A warp for each row: shuffles, and the first thread stores.
# CHECK-LABEL: func.func private @main(%arg0: memref<10x64xf32>, %arg1: memref<10xf32>)
# CHECK: gpu.launch
# CHECK: scf.for
# CHECK-COUNT-5: gpu.shuffle  xor
# CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
# CHECK: scf.if %[[FIRST]]
# CHECK: memref.store %{{.*}}, %arg1
def warps(s):
    i, k = s.get_loops("S")
    s.bind(i, "blockIdx.x")
    _, lane = s.split(k, [None, 32])
    s.bind(lane, "threadIdx.x")


show(row_sums(10, 64), warps)


# A block of threads for each row: warps, then shared memory.
# CHECK-LABEL: func.func private @main(%arg0: memref<10x512xf32>, %arg1: memref<10xf32>)
# CHECK: gpu.launch {{.*}} workgroup(%[[S:.*]] : memref<128xf32, #gpu.address_space<workgroup>>)
# CHECK-COUNT-5: gpu.shuffle  xor
# CHECK: gpu.barrier
# CHECK: memref.store %{{.*}}, %[[S]]
# CHECK: gpu.barrier
# CHECK-COUNT-4: memref.load %[[S]]
# CHECK: memref.store %{{.*}}, %arg1
def block_of_threads(s):
    i, k = s.get_loops("S")
    s.bind(i, "blockIdx.x")
    _, lane = s.split(k, [None, 128])
    s.bind(lane, "threadIdx.x")


show(row_sums(10, 512), block_of_threads)


# 24 threads are no part of a warp that shuffles: they meet in shared memory.
# CHECK-LABEL: func.func private @main(%arg0: memref<10x48xf32>, %arg1: memref<10xf32>)
# CHECK: gpu.launch {{.*}} workgroup(%[[S:.*]] : memref<24xf32, #gpu.address_space<workgroup>>)
# CHECK-NOT: gpu.shuffle
# CHECK: gpu.barrier
# CHECK: memref.store %{{.*}}, %[[S]]
# CHECK: gpu.barrier
# CHECK: arith.cmpi ult, %{{.*}}, %c8
def few_threads(s):
    i, k = s.get_loops("S")
    s.bind(i, "blockIdx.x")
    _, lane = s.split(k, [None, 24])
    s.bind(lane, "threadIdx.x")


show(row_sums(10, 48), few_threads)


# What no launch can have is an error.
# CHECK: error: loops i_1 of 2048: expected at most 1024 threads of a block, found 2048
def too_many(s):
    s.bind(s.split("i", [None, 2048])[1], "threadIdx.x")


show(elementwise(4096), too_many)


# CHECK: error: loop i: expected a loop bound to threads of the GPU, found one of threads of a CPU
def of_a_cpu(s):
    s.parallel("i")


show(elementwise(64), of_a_cpu)


# CHECK: error: loop i: expected an extent that is a number where it is bound to threadIdx.x, found n
def unknown(s):
    s.bind("i", "threadIdx.x")


show(elementwise(te.var("n")), unknown)


# CHECK: error: buffer Y: expected scope shared, as block Z reads what another thread writes by block Y, found local
def neighbours():
    x = te.placeholder((64,), name="X")
    y = te.compute((64,), lambda i: x[i] * 2.0, name="Y")
    return [x, te.compute((64,), lambda i: y[63 - i], name="Z")]


def private(s):
    (i,) = s.get_loops("Z")
    one = s.add_unit_loop(i)
    s.compute_at("Y", one)
    s.set_scope("Y", 0, "local")
    for loop in (s.get_loops("Y")[-1], i):
        s.bind(loop, "threadIdx.x")


show(neighbours(), private)


# CHECK: error: buffer Y: expected a local buffer in one nest, found it in several: block Y, block Z
def apart(s):
    s.set_scope("Y", 0, "local")


show(neighbours(), apart)
