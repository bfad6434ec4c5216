# RUN: %python %s | filecheck %s
# ruff: noqa: E501
"""A product on tensor cores, written with primitives: copies two tiles ahead in a ring of three, fragments in registers, sums that a loop carries."""

from relayc.bench.tensor_core_product import on_tensor_cores, product_of_f16
from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule

# Lines of 32 steps are 40 elements apart, those of sums 72. The sums lie where the tiles were.
# CHECK-LABEL: func.func private @main(
# CHECK: gpu.launch
# CHECK-SAME: workgroup(%[[MEMORY:.*]] : memref<30720xi8, #gpu.address_space<workgroup>>)
# CHECK-DAG: %[[SUMS:.*]] = memref.view %[[MEMORY]][%c0{{.*}}][] : {{.*}} to memref<4608xf32, #gpu.address_space<workgroup>>
# CHECK-DAG: memref.view %[[MEMORY]][%c0{{.*}}][] : {{.*}} to memref<7680xf16, #gpu.address_space<workgroup>>
# CHECK-DAG: memref.view %[[MEMORY]][%c15360][] : {{.*}} to memref<7680xf16, #gpu.address_space<workgroup>>

# Two tiles before the loop, without a barrier.
# CHECK-COUNT-2: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg
# CHECK: nvvm.cp.async.commit.group
# CHECK-NOT: gpu.barrier
# CHECK-COUNT-2: nvvm.cp.async.shared.global
# CHECK: nvvm.cp.async.commit.group

# In the loop one barrier, then the copies two tiles ahead to what was read before, and two steps of sums in registers.
# CHECK: scf.for %[[K:.*]] = %c0 to %c4 step %c1 iter_args(
# CHECK-NEXT: nvvm.cp.async.wait.group 1
# CHECK-NEXT: gpu.barrier
# CHECK: arith.cmpi slt
# CHECK-NEXT: scf.if
# CHECK-COUNT-2: nvvm.cp.async.shared.global
# CHECK: nvvm.cp.async.commit.group
# CHECK-NOT: gpu.barrier
# CHECK-COUNT-4: nvvm.ldmatrix {{.*}}num = 4
# CHECK-NOT: nvvm.ldmatrix
# CHECK-COUNT-8: nvvm.mma.sync
# CHECK-NOT: nvvm.mma.sync
# CHECK-COUNT-4: nvvm.ldmatrix
# CHECK-COUNT-8: nvvm.mma.sync
# CHECK: scf.yield
# CHECK: nvvm.cp.async.wait.group 0

# The sums to shared memory, where no thread reads the tiles any more, and from there to the result.
# CHECK-NEXT: gpu.barrier
# CHECK-COUNT-16: vector.store {{.*}}, %[[SUMS]]{{.*}} vector<2xf32>
# CHECK: gpu.barrier
# CHECK: scf.for
# CHECK: vector.load %[[SUMS]]{{.*}} vector<4xf32>
# CHECK: vector.store {{.*}} : memref<8192xf32>, vector<4xf32>
# CHECK-NOT: gpu.barrier
# CHECK: gpu.terminator
schedule = Schedule(product_of_f16(128, 64, 128))
on_tensor_cores(schedule)
with schedule.mod.context, ir.Location.unknown():
    made = ir.Module.create()
    with ir.InsertionPoint(made.body):
        lower_function(schedule.nest, Target("cuda", arch="sm_80"))
    made.operation.verify()
    print(made)
