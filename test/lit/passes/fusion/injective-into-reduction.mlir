// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.injective-into-reduction | filecheck %s --check-prefix OFF

// A reduction takes what computes its input, moved or not.
// CHECK-LABEL: func.func @input
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.transpose"
// CHECK-NEXT: "relay.multiply"
// CHECK-NEXT: "relay.sum"
// CHECK-NEXT: "relay.sqrt"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @input
// OFF: "relay.fused"
// OFF: "relay.sum"
// OFF-NEXT: "relay.sqrt"
func.func @input(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %0 = "relay.transpose"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "relay.multiply"(%0, %0) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "relay.sum"(%1) {axis = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8xf32>
  %3 = "relay.sqrt"(%2) : (tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// Not a gather; not what is used on both sides of the reduction; not a reduction that feeds another.
// CHECK-LABEL: func.func @others
// CHECK: "relay.take"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.sum"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.max"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.subtract"
// CHECK: "relay.mean"
// CHECK-NEXT: "relay.yield"
func.func @others(%x: tensor<9x4xf32>, %i: tensor<3xi64>, %y: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = "relay.take"(%x, %i) {axis = 0} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %1 = "relay.sum"(%0) {axis = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = "relay.exp"(%y) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = "relay.max"(%2) {axis = array<i64: 1>, keepdims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %4 = "relay.subtract"(%2, %3) : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %5 = "relay.mean"(%4) {axis = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3xf32>
  return %1, %5 : tensor<3xf32>, tensor<3xf32>
}
