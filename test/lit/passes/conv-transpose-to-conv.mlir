// RUN: relayc-opt %s --passes conv-transpose-to-conv,fold-constant | filecheck %s

// A 2x2 kernel with stride 2 is a 1x1 convolution to four times the channels, whose channels are then interleaved.
// CHECK-LABEL: func.func @shuffle
// CHECK: "relay.nn_conv2d"(%arg0, {{.*}}) {{.*}}padding = array<i64: 0, 0, 0, 0>{{.*}} -> tensor<1x12x4x5xf32>
// CHECK: "relay.reshape"{{.*}} -> tensor<1x3x2x2x4x5xf32>
// CHECK: "relay.transpose"{{.*}}axes = array<i64: 0, 1, 4, 2, 5, 3>
// CHECK: "relay.reshape"{{.*}} -> tensor<1x3x8x10xf32>
// CHECK-NOT: conv2d_transpose
func.func @shuffle(%x: tensor<1x2x4x5xf32>) -> tensor<1x3x8x10xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<2x3x2x2xf32>} : () -> tensor<2x3x2x2xf32>
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x2x4x5xf32>, tensor<2x3x2x2xf32>) -> tensor<1x3x8x10xf32>
  return %0 : tensor<1x3x8x10xf32>
}

// Overlapping windows: two taps for each phase, and the padding is a crop.
// CHECK-LABEL: func.func @crop
// CHECK: "relay.nn_conv2d"{{.*}}padding = array<i64: 1, 1, 1, 1>{{.*}} -> tensor<1x4x5x5xf32>
// CHECK: "relay.strided_slice"{{.*}}begin = array<i64: 1, 1>{{.*}} -> tensor<1x1x8x8xf32>
func.func @crop(%x: tensor<1x2x4x4xf32>) -> tensor<1x1x8x8xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<2x1x4x4xf32>} : () -> tensor<2x1x4x4xf32>
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x2x4x4xf32>, tensor<2x1x4x4xf32>) -> tensor<1x1x8x8xf32>
  return %0 : tensor<1x1x8x8xf32>
}

// Of weights that are not constant, the program makes those of the phases.
// CHECK-LABEL: func.func @variable
// CHECK: "relay.nn_pad"(%arg1, {{.*}}pad_width = array<i64: 0, 0, 0, 0, 0, 1, 0, 1>{{.*}} -> tensor<2x1x4x4xf32>
// CHECK: "relay.reverse"{{.*}}axis = 3
// CHECK: "relay.reverse"{{.*}}axis = 5
// CHECK: "relay.nn_conv2d"(%arg0, {{.*}} -> tensor<1x4x5x5xf32>
// CHECK-NOT: conv2d_transpose
func.func @variable(%x: tensor<1x2x4x4xf32>, %w: tensor<2x1x3x3xf32>) -> tensor<1x1x9x9xf32> {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>, tensor<2x1x3x3xf32>) -> tensor<1x1x9x9xf32>
  return %0 : tensor<1x1x9x9xf32>
}

// A kernel shorter than the stride has as many phases as taps; zeros take the place of the others.
// CHECK-LABEL: func.func @short
// CHECK: "relay.nn_conv2d"(%arg0, {{.*}} -> tensor<1x1x4x4xf32>
// CHECK: "relay.nn_pad"{{.*}} -> tensor<1x1x4x2x4x3xf32>
// CHECK: "relay.reshape"{{.*}} -> tensor<1x1x8x12xf32>
func.func @short(%x: tensor<1x2x4x4xf32>, %w: tensor<2x1x1x1xf32>) -> tensor<1x1x8x12xf32> {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {strides = array<i64: 2, 3>, output_padding = array<i64: 1, 2>} : (tensor<1x2x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x1x8x12xf32>
  return %0 : tensor<1x1x8x12xf32>
}

// Without strides, weights that are not constant stay: there is nothing to fold.
// CHECK-LABEL: func.func @stays
// CHECK: relay.nn_conv2d_transpose
func.func @stays(%x: tensor<1x2x4x4xf32>, %w: tensor<2x1x2x2xf32>) -> tensor<1x1x5x5xf32> {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) : (tensor<1x2x4x4xf32>, tensor<2x1x2x2xf32>) -> tensor<1x1x5x5xf32>
  return %0 : tensor<1x1x5x5xf32>
}
