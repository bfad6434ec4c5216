// RUN: relayc-opt %s --passes fold-explicit-padding --split-input-file | filecheck %s

// A convolution takes the padding with what it pads with itself, here a zero point, in.
// CHECK-LABEL: func.func @zero_point
// CHECK-NOT: relay.nn_pad
// CHECK: "relay.nn_conv2d"(%arg0, %arg1) {{.*}}pad_value = 3 : i64, padding = array<i64: 1, 3, 0, 2>
// CHECK-NEXT: return
func.func @zero_point(%x: tensor<1x2x5x5xi8>, %w: tensor<4x2x3x3xi8>) -> tensor<1x4x4x8xi8> {
  %z = "relay.constant"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
  %0 = "relay.nn_pad"(%x, %z) {pad_width = array<i64: 0, 0, 0, 0, 1, 0, 1, 0>} : (tensor<1x2x5x5xi8>, tensor<i8>) -> tensor<1x2x6x6xi8>
  %1 = "relay.nn_conv2d"(%0, %w) {pad_value = 3 : i64, padding = array<i64: 0, 2, 0, 2>} : (tensor<1x2x6x6xi8>, tensor<4x2x3x3xi8>) -> tensor<1x4x4x8xi8>
  return %1 : tensor<1x4x4x8xi8>
}

// -----

// A convolution of integers without padding pads with any number from then on; one with padding of another number does not.
// CHECK-LABEL: func.func @first_padding
// CHECK: relay.nn_pad
// CHECK: "relay.nn_conv2d"(%arg0, %arg1) {{.*}}pad_value = 200 : i64, padding = array<i64: 1, 1, 0, 0>
// CHECK: "relay.nn_conv2d"({{.*}}padding = array<i64: 1, 1, 1, 1>
func.func @first_padding(%x: tensor<1x2x5x5xui8>, %w: tensor<4x2x3x3xui8>) -> (tensor<1x4x4x4xui8>, tensor<1x4x6x6xui8>) {
  %z = "relay.constant"() {value = dense<200> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "relay.nn_pad"(%x, %z) {pad_width = array<i64: 0, 0, 0, 0, 1, 0, 1, 0>} : (tensor<1x2x5x5xui8>, tensor<ui8>) -> tensor<1x2x6x6xui8>
  %1 = "relay.nn_conv2d"(%0, %w) : (tensor<1x2x6x6xui8>, tensor<4x2x3x3xui8>) -> tensor<1x4x4x4xui8>
  %2 = "relay.nn_conv2d"(%0, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x2x6x6xui8>, tensor<4x2x3x3xui8>) -> tensor<1x4x6x6xui8>
  return %1, %2 : tensor<1x4x4x4xui8>, tensor<1x4x6x6xui8>
}

// -----

// Other numbers stay, and so does padding of channels.
// CHECK-LABEL: func.func @kept
// CHECK: relay.nn_pad
// CHECK: relay.nn_conv2d
// CHECK: relay.nn_pad
// CHECK: relay.nn_max_pool2d
// CHECK: relay.nn_pad
// CHECK: relay.nn_conv2d
func.func @kept(%x: tensor<1x2x5x5xf32>, %w: tensor<4x2x3x3xf32>, %v: tensor<4x3x3x3xf32>) -> (tensor<1x4x4x4xf32>, tensor<1x2x6x6xf32>, tensor<1x4x3x3xf32>) {
  %zero = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.nn_pad"(%x, %one) {pad_width = array<i64: 0, 0, 0, 0, 1, 0, 1, 0>} : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %1 = "relay.nn_conv2d"(%0, %w) : (tensor<1x2x6x6xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x4x4xf32>
  %2 = "relay.nn_pad"(%x, %zero) {pad_width = array<i64: 0, 0, 0, 0, 1, 0, 1, 0>} : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %3 = "relay.nn_max_pool2d"(%2) {pool_size = array<i64: 1, 1>} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %4 = "relay.nn_pad"(%x, %zero) {pad_width = array<i64: 0, 0, 0, 1, 0, 0, 0, 0>} : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x3x5x5xf32>
  %5 = "relay.nn_conv2d"(%4, %v) : (tensor<1x3x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x3x3xf32>
  return %1, %3, %5 : tensor<1x4x4x4xf32>, tensor<1x2x6x6xf32>, tensor<1x4x3x3xf32>
}

// -----

// A maximum takes the least number of its type in.
// CHECK-LABEL: func.func @maximum
// CHECK-NOT: relay.nn_pad
// CHECK: "relay.nn_max_pool2d"(%arg0) {{.*}}padding = array<i64: 0, 1, 2, 0>, pool_size = array<i64: 3, 2>
func.func @maximum(%x: tensor<1x2x5x5xui8>) -> tensor<1x2x5x5xui8> {
  %z = "relay.constant"() {value = dense<0> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "relay.nn_pad"(%x, %z) {pad_width = array<i64: 0, 0, 0, 0, 0, 2, 1, 0>} : (tensor<1x2x5x5xui8>, tensor<ui8>) -> tensor<1x2x7x6xui8>
  %1 = "relay.nn_max_pool2d"(%0) {pool_size = array<i64: 3, 2>} : (tensor<1x2x7x6xui8>) -> tensor<1x2x5x5xui8>
  return %1 : tensor<1x2x5x5xui8>
}

// -----

// An average that does not count its own padding, here on one side, does not count that of another operator either.
// CHECK-LABEL: func.func @average
// CHECK: relay.nn_pad
// CHECK: "relay.nn_avg_pool2d"(%{{[0-9]+}}) {{.*}}padding = array<i64: 1, 0, 0, 0>
func.func @average(%x: tensor<1x2x5x5xf32>) -> tensor<1x2x6x5xf32> {
  %z = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.nn_pad"(%x, %z) {pad_width = array<i64: 0, 0, 0, 0, 1, 0, 1, 0>} : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %1 = "relay.nn_avg_pool2d"(%0) {pool_size = array<i64: 2, 2>, padding = array<i64: 1, 0, 0, 0>} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x5xf32>
  return %1 : tensor<1x2x6x5xf32>
}
