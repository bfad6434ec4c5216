// RUN: relayc-opt %s --passes graph-pipeline,outline-groups,relay-to-te,te-to-tir | filecheck %s

// Rows of a product that are two dimensions of its data and of its result: one loop of tiles, the weights packed, no scalar loops.
// CHECK-LABEL: func.func private @fused_dense_relu
// CHECK-SAME: memref<1x7x9x64xf32>, %arg1: memref<{{[0-9]+}}x64x{{[0-9]+}}xf32>
// CHECK-NOT: memref.alloc
// CHECK: iter_args({{.*}}vector<
// CHECK: vector.fma
// CHECK: arith.maximumf {{.*}}vector<
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x7x9x64xf32>) -> tensor<1x7x9x96xf32> {
  %w = "relay.constant"() {value = "w", shape = array<i64: 96, 64>, dtype = "float32"} : () -> tensor<96x64xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<1x7x9x64xf32>, tensor<96x64xf32>) -> tensor<1x7x9x96xf32>
  %1 = "relay.nn_relu"(%0) : (tensor<1x7x9x96xf32>) -> tensor<1x7x9x96xf32>
  return %1 : tensor<1x7x9x96xf32>
}
