// RUN: relayc-opt %s --passes combine-parallel-batch-matmul --split-input-file | filecheck %s

// Three products of one batch become one; a factor with another depth, one that is not transposed and an argument stay by themselves.
// CHECK-LABEL: func.func @three
// CHECK: %[[W:.*]] = tensor.concat dim(1) {{.*}} -> tensor<2x6x4xf32>
// CHECK: %[[P:.*]] = "relay.nn_batch_matmul"(%arg0, %[[W]])
// CHECK: "relay.strided_slice"(%[[P]]) {axes = array<i64: 2>, begin = array<i64: 0>, end = array<i64: 1>
// CHECK: "relay.strided_slice"(%[[P]]) {axes = array<i64: 2>, begin = array<i64: 1>, end = array<i64: 3>
// CHECK: "relay.strided_slice"(%[[P]]) {axes = array<i64: 2>, begin = array<i64: 3>, end = array<i64: 6>
// CHECK: "relay.nn_batch_matmul"(%arg0, {{.*}}transpose_b = false
// CHECK: "relay.nn_batch_matmul"(%arg0, %arg1)
func.func @three(%x: tensor<2x3x4xf32>, %v: tensor<2x1x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x2xf32>, tensor<2x3x3xf32>, tensor<2x3x5xf32>, tensor<2x3x1xf32>) {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<2x1x4xf32>} : () -> tensor<2x1x4xf32>
  %w1 = "relay.constant"() {value = dense<2.0> : tensor<2x2x4xf32>} : () -> tensor<2x2x4xf32>
  %w2 = "relay.constant"() {value = dense<3.0> : tensor<2x3x4xf32>} : () -> tensor<2x3x4xf32>
  %w3 = "relay.constant"() {value = dense<4.0> : tensor<2x4x5xf32>} : () -> tensor<2x4x5xf32>
  %0 = "relay.nn_batch_matmul"(%x, %w0) : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x1xf32>
  %1 = "relay.nn_batch_matmul"(%x, %w1) : (tensor<2x3x4xf32>, tensor<2x2x4xf32>) -> tensor<2x3x2xf32>
  %2 = "relay.nn_batch_matmul"(%x, %w2) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %3 = "relay.nn_batch_matmul"(%x, %w3) {transpose_b = false} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %4 = "relay.nn_batch_matmul"(%x, %v) : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x1xf32>
  return %0, %1, %2, %3, %4 : tensor<2x3x1xf32>, tensor<2x3x2xf32>, tensor<2x3x3xf32>, tensor<2x3x5xf32>, tensor<2x3x1xf32>
}
