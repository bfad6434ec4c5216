# RUN: %python %s | filecheck %s
"""Sorts become launches: lines in a block each, tiles and merges of these two by two, parts of which a few elements are selected."""

from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, TensorType, build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile


def show(shape, name, **attributes):
    with make_context(), ir.Location.unknown():
        mod = IRModule(ir.Module.create())
        lines = TensorType(shape, "float32").to_mlir()
        with ir.InsertionPoint(mod.module.body):
            main = func.FuncOp("main", ([lines], []))
        with ir.InsertionPoint(main.add_entry_block()):
            result = build(name, main.arguments[0], **attributes)
            func.ReturnOp([result])
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([lines], [result.type]))
    print(compile(mod, target=Target("cuda", arch="sm_80"), stop_after="tir").module)


# A warp has 16 lines of 20: two threads sort 11 elements each, and merge both runs.
# CHECK-LABEL: func.func private @fused_argsort(
# CHECK-SAME: relay.schedule = "sort threads=256 items=11 parts=1"
# CHECK: %[[OUT:.*]] = memref.collapse_shape %arg1
# CHECK: gpu.launch blocks{{.*}}in (%{{.*}} = %c1, {{.*}}) threads{{.*}}in (%{{.*}} = %c32,{{.*}}workgroup(%[[S:.*]] : memref<353xi64
# CHECK: arith.minui %{{.*}}, %{{.*}} : i64
# CHECK: scf.for %{{.*}} = %c0 to %c1
# CHECK-COUNT-11: memref.store %{{.*}}, %[[S]]
# CHECK: gpu.barrier
# CHECK: scf.while
# CHECK-COUNT-12: memref.load %[[S]]
# CHECK: gpu.barrier
# CHECK: memref.store %{{.*}}, %[[OUT]][
show((3, 20), "argsort")

# Three tiles of each line go to the workspace; a launch in a loop of the host merges two of them, and a last one these with the third.
# CHECK-LABEL: func.func private @fused_sort(
# CHECK-SAME: %[[W:arg2]]: memref<405504xi8>
# CHECK: %[[IN:.*]] = memref.collapse_shape %arg0
# CHECK: %[[OUT:.*]] = memref.collapse_shape %arg1
# CHECK: %[[V:.*]] = memref.view %[[W]]{{.*}} to memref<50688xi64>
# CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c9, {{.*}} threads({{.*}}) in (%{{.*}} = %c256,
# CHECK: memref.store %{{.*}}, %[[V]]
# CHECK: scf.for
# CHECK: gpu.launch
# CHECK: memref.load %[[V]]
# CHECK-COUNT-5: gpu.shuffle xor
# CHECK: memref.store %{{.*}}, %[[V]]
# CHECK: gpu.launch
# CHECK-COUNT-5: gpu.shuffle xor
# CHECK: memref.load %[[IN]]
# CHECK: memref.store %{{.*}}, %[[OUT]]
show((3, 6000), "sort")

# Four blocks of each line keep what comes before the last of the elements found so far, and another one sorts what these leave.
# CHECK-LABEL: func.func private @fused_topk(
# CHECK: %[[IN:.*]] = memref.collapse_shape %arg0
# CHECK: %[[OUT:.*]] = memref.collapse_shape %arg1
# CHECK: %[[V:.*]] = memref.view %arg2{{.*}} to memref<60xi64>
# CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c12,
# CHECK-SAME: workgroup(%[[S:.*]] : memref<2817xi64, {{.*}}, %[[COUNT:.*]] : memref<1xi32
# CHECK: scf.for %{{.*}} step %c1280 iter_args(%[[LAST:.*]] = %c-1_i64)
# CHECK-COUNT-5: memref.atomic_rmw addi %c1_i32, %[[COUNT]]
# CHECK: memref.load %[[COUNT]]
# CHECK: scf.if {{.*}} -> (i64)
# CHECK: memref.store %{{.*}}, %[[V]]
# CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c3,
# CHECK: memref.load %[[V]]
# CHECK-NOT: memref.load %[[IN]]
# CHECK: memref.store %{{.*}}, %[[OUT]]
show((3, 50000), "topk", k=5, ret_type="indices")
