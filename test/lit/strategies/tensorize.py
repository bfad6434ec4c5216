# RUN: %python %s | filecheck %s
"""A tensorized product as tir: a register tile in the loops over tiles, whose sums the loop over the steps carries."""

from relayc import te
from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule

A, B = te.placeholder((8, 64), name="A"), te.placeholder((64, 32), name="B")
k = te.reduce_axis((0, 64), name="k")
C = te.compute((8, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
schedule = Schedule(te.create_prim_func([A, B, C]))
i, j, steps = schedule.get_loops("C")
outer, inner = schedule.split(i, [None, 2])
schedule.tensorize(inner, "dot_f32_2x32")

with schedule.mod.context, ir.Location.unknown():
    made = ir.Module.create()
    with ir.InsertionPoint(made.body):
        lower_function(schedule.nest, Target("cpu -mcpu=x86-64-v4"))
    print(made)

# It begins the sums by itself, and stores them once.
# CHECK: func.func private @main(
# CHECK: scf.for %[[TILE:.*]] = %c0 to %c4 step %c1 {
# CHECK-NOT: memref.store
# CHECK: %[[SUMS:.*]]:4 = scf.for %[[K:.*]] = %c0 to %c64 step %c1 iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, {{.*}}) {
# CHECK-COUNT-2: vector.load {{.*}} : memref<2048xf32>, vector<16xf32>
# CHECK-COUNT-2: memref.load {{.*}} : memref<512xf32>
# CHECK-COUNT-4: vector.fma
# CHECK: scf.yield
# CHECK-COUNT-4: vector.store {{.*}} : memref<256xf32>, vector<16xf32>
# CHECK-NOT: vector.store
