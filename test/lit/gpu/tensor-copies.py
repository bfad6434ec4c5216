# RUN: %python %s | filecheck %s
# ruff: noqa: E501
"""A product of warp groups, written with primitives: copies of boxes two tiles ahead in a ring of three, products that run into the next iteration."""

from relayc.bench.tensor_core_product import on_warp_groups, product_of_f16
from relayc.dialects.mlir import ir
from relayc.pipelines.context.target import Target
from relayc.pipelines.tir.lower.function import lower_function
from relayc.tir import Schedule

# Maps of the tensors, whose boxes are 128 lines of 64 elements. Three tiles of each, where the sums lie afterwards, and three barriers.
# CHECK-LABEL: func.func private @main(
# CHECK-COUNT-2: relay.tensor_map{{.*}} {box = array<i64: 64, 128>, swizzle = 128 : i64, window = array<i64>}
# CHECK: gpu.launch
# CHECK-SAME: workgroup(%[[MEMORY:.*]] : memref<98304xi8, #gpu.address_space<workgroup>>, %{{.*}} : memref<3xi64, #gpu.address_space<workgroup>>)

# The first thread begins the barriers.
# CHECK: scf.if
# CHECK-COUNT-3: nvvm.mbarrier.init
# CHECK: nvvm.fence.mbarrier.init
# CHECK: nvvm.fence.proxy
# CHECK: gpu.barrier

# Two tiles before the loop, by one thread of the first warp: 2 x 16 KiB each.
# CHECK-COUNT-2: scf.if
# CHECK: nvvm.mbarrier.arrive.expect_tx
# CHECK-COUNT-2: nvvm.cp.async.bulk.tensor
# CHECK: nvvm.mbarrier.arrive.expect_tx
# CHECK-COUNT-2: nvvm.cp.async.bulk.tensor
# CHECK-NOT: gpu.barrier

# In the loop threads wait for the tile, multiply, wait for the products of the iteration before, and then for each other.
# CHECK: scf.for %{{.*}} = %c0{{.*}} to %c8{{.*}} step %c1{{.*}} iter_args(
# CHECK: nvvm.mbarrier.try_wait.parity
# CHECK: nvvm.wgmma.fence.aligned
# CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 128, k = 16>
# CHECK-NOT: nvvm.wgmma.mma_async
# CHECK: nvvm.wgmma.commit.group.sync.aligned
# CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 1
# CHECK-NEXT: gpu.barrier
# CHECK-COUNT-3: scf.if
# CHECK: nvvm.mbarrier.arrive.expect_tx
# CHECK-COUNT-2: nvvm.cp.async.bulk.tensor
# CHECK: scf.yield
# CHECK: nvvm.wgmma.wait.group.sync.aligned 0

# The sums to shared memory, where no products read any more, and from there to the result.
# CHECK-NEXT: nvvm.fence.proxy
# CHECK-NEXT: gpu.barrier
# CHECK-COUNT-32: vector.store {{.*}} vector<2xf32>
# CHECK: gpu.barrier
# CHECK: vector.load {{.*}} vector<4xf32>
# CHECK: gpu.terminator
schedule = Schedule(product_of_f16(256, 256, 512))
on_warp_groups(schedule)
with schedule.mod.context, ir.Location.unknown():
    made = ir.Module.create()
    with ir.InsertionPoint(made.body):
        lower_function(schedule.nest, Target("cuda", arch="sm_90a"))
    made.operation.verify()
    print(made)
