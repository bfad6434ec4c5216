# RUN: %python %s | filecheck %s
"""A running sum becomes a launch with a block of threads for each line: scans of warps, whose sums meet in shared memory. Of few long lines
blocks have a part each, whose total a launch before leaves in the workspace."""

from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, TensorType, build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile

# CHECK-LABEL: func.func private @fused_cumsum(
# CHECK: gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c4, {{.*}} workgroup(%[[S:.*]] : memref<8xf32
# CHECK: scf.for %{{.*}} = %c0 to %c300 step %c256 iter_args(%[[BEFORE:.*]] = %cst)
# CHECK: memref.load %arg0[%[[B]], %[[I:.*]]]
# CHECK-COUNT-5: gpu.shuffle up
# CHECK: memref.store %{{.*}}, %[[S]]
# CHECK: gpu.barrier
# CHECK-COUNT-8: memref.load %[[S]]
# CHECK: gpu.barrier
# CHECK: gpu.shuffle up
# CHECK: arith.addf %[[BEFORE]], %{{.*}} : f32
# CHECK: memref.store %{{.*}}, %arg1[%[[B]], %[[I]]]
# CHECK: scf.yield %{{.*}} : f32
# CHECK-LABEL: func.func private @fused_cumsum(
# CHECK: %[[T:.*]] = memref.view %arg2{{.*}} to memref<4xf32>
# CHECK: gpu.launch blocks(%{{.*}}) in (%{{.*}} = %c4,
# CHECK: memref.load %arg0
# CHECK-COUNT-5: gpu.shuffle up
# CHECK: memref.store %{{.*}}, %[[T]]
# CHECK: gpu.launch blocks(%{{.*}}) in (%{{.*}} = %c4,
# CHECK: memref.load %[[T]]
# CHECK: memref.load %arg0
# CHECK: memref.store %{{.*}}, %arg1
for shape in ((4, 300), (1, 20000)):
    with make_context(), ir.Location.unknown():
        mod = IRModule(ir.Module.create())
        lines = TensorType(shape, "float32").to_mlir()
        with ir.InsertionPoint(mod.module.body):
            main = func.FuncOp("main", ([lines], [lines]))
        with ir.InsertionPoint(main.add_entry_block()):
            func.ReturnOp([build("cumsum", main.arguments[0], axis=1)])
    print(compile(mod, target=Target("cuda", arch="sm_80"), stop_after="tir").module)
