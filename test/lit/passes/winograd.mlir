// RUN: relayc-opt %s --passes winograd | filecheck %s

// A 3x3 convolution of stride 1 on enough tiles: transform, 36 products as groups of a 1x1 convolution, transform back.
// CHECK-LABEL: func.func @applies
// CHECK: %[[T:.*]] = "relay.nn_winograd_input_transform"(%arg0) {{.*}} -> tensor<1x144x4x4x8xf32>
// CHECK: %[[P:.*]] = "relay.nn_conv2d"(%[[T]], {{.*}}groups = 36{{.*}} -> tensor<1x144x4x4x8xf32>
// CHECK: "relay.nn_winograd_output_transform"(%[[P]]) {{.*}}height = 16{{.*}} -> tensor<1x4x16x16x8xf32>
func.func @applies(%x: tensor<1x4x16x16x8xf32>) -> tensor<1x4x16x16x8xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<32x32x3x3xf32>} : () -> tensor<32x32x3x3xf32>
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW8c", out_layout = "NCHW8c", padding = array<i64: 1, 1, 1, 1>} : (tensor<1x4x16x16x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x4x16x16x8xf32>
  return %0 : tensor<1x4x16x16x8xf32>
}

// Strides, few tiles and plain layouts stay direct.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: winograd
func.func @stays(%x: tensor<1x4x16x16x8xf32>, %y: tensor<1x4x7x7x8xf32>, %z: tensor<1x32x16x16xf32>) -> (tensor<1x4x7x7x8xf32>, tensor<1x4x7x7x8xf32>, tensor<1x32x16x16xf32>) {
  %w = "relay.constant"() {value = dense<1.0> : tensor<32x32x3x3xf32>} : () -> tensor<32x32x3x3xf32>
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW8c", out_layout = "NCHW8c", strides = array<i64: 2, 2>} : (tensor<1x4x16x16x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x4x7x7x8xf32>
  %1 = "relay.nn_conv2d"(%y, %w) {data_layout = "NCHW8c", out_layout = "NCHW8c", padding = array<i64: 1, 1, 1, 1>} : (tensor<1x4x7x7x8xf32>, tensor<32x32x3x3xf32>) -> tensor<1x4x7x7x8xf32>
  %2 = "relay.nn_conv2d"(%z, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x32x16x16xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x16x16xf32>
  return %0, %1, %2 : tensor<1x4x7x7x8xf32>, tensor<1x4x7x7x8xf32>, tensor<1x32x16x16xf32>
}
