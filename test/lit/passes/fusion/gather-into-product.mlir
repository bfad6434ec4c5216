// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.gather-into-product | filecheck %s --check-prefix OFF

// The weights of experts are read where they lie.
// CHECK-LABEL: func.func @experts
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.take"
// CHECK-NEXT: "relay.nn_batch_matmul"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @experts
// OFF: "relay.take"
// OFF-NEXT: "relay.yield"
func.func @experts(%w: tensor<8x32x16xf32>, %i: tensor<6xi64>, %x: tensor<6x16x1xf32>) -> tensor<6x32x1xf32> {
  %0 = "relay.take"(%w, %i) {axis = 0 : i64} : (tensor<8x32x16xf32>, tensor<6xi64>) -> tensor<6x32x16xf32>
  %1 = "relay.nn_batch_matmul"(%0, %x) {transpose_b = false} : (tensor<6x32x16xf32>, tensor<6x16x1xf32>) -> tensor<6x32x1xf32>
  return %1 : tensor<6x32x1xf32>
}

// So they are on the right, by positions of one index, with an epilogue.
// CHECK-LABEL: func.func @right
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.gather_nd"
// CHECK-NEXT: "relay.nn_batch_matmul"
// CHECK-NEXT: "relay.nn_relu"
// CHECK-NEXT: "relay.yield"
func.func @right(%w: tensor<8x32x16xf32>, %i: tensor<1x6xi64>, %x: tensor<6x2x16xf32>) -> tensor<6x2x32xf32> {
  %0 = "relay.gather_nd"(%w, %i) {batch_dims = 0 : i64} : (tensor<8x32x16xf32>, tensor<1x6xi64>) -> tensor<6x32x16xf32>
  %1 = "relay.nn_batch_matmul"(%x, %0) : (tensor<6x2x16xf32>, tensor<6x32x16xf32>) -> tensor<6x2x32xf32>
  %2 = "relay.nn_relu"(%1) : (tensor<6x2x32xf32>) -> tensor<6x2x32xf32>
  return %2 : tensor<6x2x32xf32>
}

// Not for many rows, which would read them many times, nor across the depth, nor along the axis of the indices.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: "relay.take"
// CHECK-COUNT-3: "relay.nn_batch_matmul"
func.func @others(%w: tensor<8x32x16xf32>, %i: tensor<6xi64>, %x: tensor<6x16x9xf32>, %y: tensor<6x1x32xf32>, %z: tensor<8x6x1xf32>)
    -> (tensor<6x32x9xf32>, tensor<6x1x16xf32>, tensor<8x32x1xf32>) {
  %0 = "relay.take"(%w, %i) {axis = 0 : i64} : (tensor<8x32x16xf32>, tensor<6xi64>) -> tensor<6x32x16xf32>
  %1 = "relay.take"(%w, %i) {axis = 0 : i64} : (tensor<8x32x16xf32>, tensor<6xi64>) -> tensor<6x32x16xf32>
  %2 = "relay.take"(%w, %i) {axis = 2 : i64} : (tensor<8x32x16xf32>, tensor<6xi64>) -> tensor<8x32x6xf32>
  %3 = "relay.nn_batch_matmul"(%0, %x) {transpose_b = false} : (tensor<6x32x16xf32>, tensor<6x16x9xf32>) -> tensor<6x32x9xf32>
  %4 = "relay.nn_batch_matmul"(%y, %1) {transpose_b = false} : (tensor<6x1x32xf32>, tensor<6x32x16xf32>) -> tensor<6x1x16xf32>
  %5 = "relay.nn_batch_matmul"(%2, %z) {transpose_b = false} : (tensor<8x32x6xf32>, tensor<8x6x1xf32>) -> tensor<8x32x1xf32>
  return %3, %4, %5 : tensor<6x32x9xf32>, tensor<6x1x16xf32>, tensor<8x32x1xf32>
}

// Nor where the number of rows is a symbol, nor as both operands.
// CHECK-LABEL: func.func @symbolic
// CHECK-COUNT-4: "relay.yield"
func.func @symbolic(%w: tensor<8x32x16xf32>, %u: tensor<8x4x16xf32>, %i: tensor<6xi64>, %x: tensor<6x16x?xf32, ["n"]>)
    -> (tensor<6x32x?xf32, ["n"]>, tensor<6x4x4xf32>) {
  %0 = "relay.take"(%w, %i) {axis = 0 : i64} : (tensor<8x32x16xf32>, tensor<6xi64>) -> tensor<6x32x16xf32>
  %1 = "relay.take"(%u, %i) {axis = 0 : i64} : (tensor<8x4x16xf32>, tensor<6xi64>) -> tensor<6x4x16xf32>
  %2 = "relay.nn_batch_matmul"(%0, %x) {transpose_b = false} : (tensor<6x32x16xf32>, tensor<6x16x?xf32, ["n"]>) -> tensor<6x32x?xf32, ["n"]>
  %3 = "relay.nn_batch_matmul"(%1, %1) : (tensor<6x4x16xf32>, tensor<6x4x16xf32>) -> tensor<6x4x4xf32>
  return %2, %3 : tensor<6x32x?xf32, ["n"]>, tensor<6x4x4xf32>
}
