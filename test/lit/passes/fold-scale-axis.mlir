// RUN: relayc-opt %s --passes fold-scale-axis,fold-constant --split-input-file | filecheck %s

// A factor per output channel, behind a bias: weight and bias take it, and the two biases become one.
// CHECK-LABEL: func.func @backward
// CHECK: %[[W:.*]] = "relay.constant"() {value = dense<{{\[\[\[\[}}2.000000e+00]], {{\[\[}}2.000000e+00]]], {{\[\[\[}}3.000000e+00]], {{\[\[}}3.000000e+00]]]]> : tensor<2x2x1x1xf32>}
// CHECK: %[[CONV:.*]] = "relay.nn_conv2d"(%arg0, %[[W]])
// CHECK: %[[B:.*]] = "relay.constant"() {value = dense<{{\[\[\[}}2.100000e+01]], {{\[\[}}3.100000e+01]]]> : tensor<2x1x1xf32>}
// CHECK: "relay.add"(%[[CONV]], %[[B]])
// CHECK-NEXT: return
func.func @backward(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %b = "relay.constant"() {value = dense<10.0> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %s = "relay.constant"() {value = dense<[[[2.0]], [[3.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %t = "relay.constant"() {value = dense<1.0> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = "relay.add"(%0, %b) : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %2 = "relay.multiply"(%1, %s) : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %3 = "relay.add"(%2, %t) : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %3 : tensor<1x2x4x4xf32>
}

// -----

// The weight of a transposed convolution in groups counts output channels per group.
// CHECK-LABEL: func.func @transposed_groups
// CHECK: dense<{{\[\[\[\[}}1.000000e+00]], {{\[\[}}2.000000e+00]]], {{\[\[\[}}3.000000e+00]], {{\[\[}}4.000000e+00]]]]> : tensor<2x2x1x1xf32>
// CHECK-NEXT: "relay.nn_conv2d_transpose"
// CHECK-NEXT: return
func.func @transposed_groups(%x: tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<2x2x1x1xf32>} : () -> tensor<2x2x1x1xf32>
  %s = "relay.constant"() {value = dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]> : tensor<4x1x1xf32>} : () -> tensor<4x1x1xf32>
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {groups = 2} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x4x4x4xf32>
  %1 = "relay.multiply"(%0, %s) : (tensor<1x4x4x4xf32>, tensor<4x1x1xf32>) -> tensor<1x4x4x4xf32>
  return %1 : tensor<1x4x4x4xf32>
}

// -----

// In front of a product: a factor per input feature; behind it: a division by a scalar.
// CHECK-LABEL: func.func @forward
// CHECK: dense<{{\[\[}}1.000000e+00, 2.000000e+00], [1.000000e+00, 2.000000e+00]]> : tensor<2x2xf32>
// CHECK-NEXT: "relay.nn_dense"(%arg0,
// CHECK-NEXT: return
func.func @forward(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = "relay.constant"() {value = dense<4.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %s = "relay.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %d = "relay.constant"() {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.multiply"(%s, %x) : (tensor<2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = "relay.nn_dense"(%0, %w) : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %2 = "relay.divide"(%1, %d) : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// -----

// One affine map after another.
// CHECK-LABEL: func.func @affine
// CHECK: %[[S:.*]] = "relay.constant"() {value = dense<6.000000e+00>
// CHECK: %[[M:.*]] = "relay.multiply"(%arg0, %[[S]])
// CHECK: %[[T:.*]] = "relay.constant"() {value = dense<1.000000e+01>
// CHECK: "relay.add"(%[[M]], %[[T]])
// CHECK-NEXT: return
func.func @affine(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %b = "relay.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %c = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.multiply"(%x, %a) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = "relay.add"(%0, %b) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = "relay.multiply"(%1, %b) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = "relay.add"(%2, %c) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// Not where another operator reads the product, where the factor is not per channel, or is not constant.
// CHECK-LABEL: func.func @not_folded
// CHECK-COUNT-3: "relay.multiply"
func.func @not_folded(%x: tensor<4x2xf32>, %y: tensor<2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = "relay.constant"() {value = dense<4.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %s = "relay.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %r = "relay.constant"() {value = dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>} : () -> tensor<4x1xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %1 = "relay.multiply"(%0, %s) : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %2 = "relay.nn_dense"(%1, %w) : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %3 = "relay.multiply"(%2, %r) : (tensor<4x2xf32>, tensor<4x1xf32>) -> tensor<4x2xf32>
  %4 = "relay.nn_dense"(%3, %w) : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %5 = "relay.multiply"(%4, %y) : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0, %1, %4, %5 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// A positive factor goes through relu into the weights and the bias; a negative one does not, and nothing goes where no product takes it.
// CHECK-LABEL: func.func @through_relu
// CHECK: "relay.nn_dense"
// CHECK: "relay.add"
// CHECK: %[[R:.*]] = "relay.nn_relu"
// CHECK: "relay.nn_dense"
// CHECK: %[[S:.*]] = "relay.nn_relu"
// CHECK: %[[T:.*]] = "relay.multiply"(%[[S]]
// CHECK: %[[U:.*]] = "relay.nn_relu"(%arg0)
// CHECK: %[[V:.*]] = "relay.multiply"(%[[U]]
// CHECK: return %[[R]], %[[T]], %[[V]]
func.func @through_relu(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x3xf32>) {
  %w = "relay.constant"() {value = dense<3.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %b = "relay.constant"() {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %p = "relay.constant"() {value = dense<[2.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %n = "relay.constant"() {value = dense<[2.0, -4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %s = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  %1 = "relay.add"(%0, %b) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %2 = "relay.nn_relu"(%1) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "relay.multiply"(%2, %p) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %4 = "relay.nn_dense"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  %5 = "relay.nn_relu"(%4) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %6 = "relay.multiply"(%5, %n) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %7 = "relay.nn_relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %8 = "relay.multiply"(%7, %s) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %3, %6, %8 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x3xf32>
}
