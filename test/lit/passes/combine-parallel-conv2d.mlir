// RUN: relayc-opt %s --passes combine-parallel-conv2d --split-input-file | filecheck %s

// Biases are combined only where every branch has one. The 3x3 convolution stays by itself.
// CHECK-LABEL: func.func @branches
// CHECK: %[[W:.*]] = tensor.concat dim(0) {{.*}} -> tensor<6x3x1x1xf32>
// CHECK: %[[C:.*]] = "relay.nn_conv2d"(%arg0, %[[W]])
// CHECK: %[[S:.*]] = "relay.strided_slice"(%[[C]]) {axes = array<i64: 1>, begin = array<i64: 0>, end = array<i64: 1>
// CHECK: "relay.strided_slice"(%[[C]]) {axes = array<i64: 1>, begin = array<i64: 1>, end = array<i64: 3>
// CHECK: "relay.strided_slice"(%[[C]]) {axes = array<i64: 1>, begin = array<i64: 3>, end = array<i64: 6>
// CHECK: "relay.add"(%[[S]],
// CHECK: "relay.nn_conv2d"
func.func @branches(%x: tensor<1x3x4x4xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x3x4x4xf32>, tensor<1x1x4x4xf32>) {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<1x3x1x1xf32>} : () -> tensor<1x3x1x1xf32>
  %w1 = "relay.constant"() {value = dense<2.0> : tensor<2x3x1x1xf32>} : () -> tensor<2x3x1x1xf32>
  %w2 = "relay.constant"() {value = dense<3.0> : tensor<3x3x1x1xf32>} : () -> tensor<3x3x1x1xf32>
  %w3 = "relay.constant"() {value = dense<4.0> : tensor<1x3x3x3xf32>} : () -> tensor<1x3x3x3xf32>
  %b = "relay.constant"() {value = dense<5.0> : tensor<1x1x1xf32>} : () -> tensor<1x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x1x4x4xf32>
  %1 = "relay.add"(%0, %b) : (tensor<1x1x4x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4x4xf32>
  %2 = "relay.nn_conv2d"(%x, %w1) : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32>
  %3 = "relay.nn_conv2d"(%x, %w2) : (tensor<1x3x4x4xf32>, tensor<3x3x1x1xf32>) -> tensor<1x3x4x4xf32>
  %4 = "relay.nn_conv2d"(%x, %w3) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x3x4x4xf32>, tensor<1x3x3x3xf32>) -> tensor<1x1x4x4xf32>
  return %1, %2, %3, %4 : tensor<1x1x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x3x4x4xf32>, tensor<1x1x4x4xf32>
}
