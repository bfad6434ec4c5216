// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

// Only a call knows how many lines there are and how long they are. Where a copy with the padding around it is a small part of the work,
// rows of a tile go over the ends of lines: a table says where each begins, in elements of the copy, and no step asks what is inside.
// CHECK-LABEL: func.func private @fused_conv2d(
// CHECK-SAME: %[[MEMORY:[a-z0-9]+]]: memref<?xi8>
// CHECK: %[[COPY:.*]] = memref.view %[[MEMORY]]{{.*}} to memref<?xf32>
// CHECK: %[[TABLE:.*]] = memref.view %[[MEMORY]]{{.*}} to memref<?xi64>
// CHECK: memref.store {{.*}}, %[[TABLE]]
// CHECK: memref.load %[[TABLE]]
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: arith.{{select|cmpi}}
// CHECK: memref.load %[[COPY]]
// CHECK: vector.fma
// CHECK: return

func.func @main(%x: tensor<1x8x?x?x8xf32, ["h", "w"]>) -> tensor<1x8x?x?x8xf32, ["h", "w"]> {
  %k = "relay.constant"() {value = "k", shape = array<i64: 64, 64, 3, 3>, dtype = "float32"} : () -> tensor<64x64x3x3xf32>
  %0 = "relay.nn_conv2d"(%x, %k) {padding = array<i64: 1, 1, 1, 1>, data_layout = "NCHW8c", out_layout = "NCHW8c"} : (tensor<1x8x?x?x8xf32, ["h", "w"]>, tensor<64x64x3x3xf32>) -> tensor<1x8x?x?x8xf32, ["h", "w"]>
  return %0 : tensor<1x8x?x?x8xf32, ["h", "w"]>
}
