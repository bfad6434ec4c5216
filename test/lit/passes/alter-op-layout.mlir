// RUN: relayc-opt %s --passes alter-op-layout | filecheck %s

// Two convolutions and what lies between them are one region: a transform where the result leaves it, none inside.
// CHECK-LABEL: func.func @region
// CHECK-NOT: layout_transform
// CHECK: %[[A:.*]] = "relay.nn_conv2d"(%arg0, {{.*}}) {{.*}}data_layout = "NCHW"{{.*}}out_layout = "NCHW[[B:.*]]c"
// CHECK: %[[R:.*]] = "relay.nn_relu"(%[[A]])
// CHECK: %[[P:.*]] = "relay.nn_max_pool2d"(%[[R]]) {{.*}}layout = "NCHW{{.*}}c"
// CHECK: %[[C:.*]] = "relay.nn_conv2d"(%[[P]], {{.*}}) {{.*}}data_layout = "NCHW{{.*}}c"
// CHECK: %[[T:.*]] = "relay.layout_transform"(%[[C]]) {{.*}}dst_layout = "NCHW"
// CHECK: return %[[T]]
func.func @region(%x: tensor<1x3x8x8xf32>) -> tensor<1x32x4x4xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<16x3x1x1xf32>} : () -> tensor<16x3x1x1xf32>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<32x16x1x1xf32>} : () -> tensor<32x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.nn_relu"(%0) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relay.nn_max_pool2d"(%1) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x16x8x8xf32>) -> tensor<1x16x4x4xf32>
  %3 = "relay.nn_conv2d"(%2, %w1) : (tensor<1x16x4x4xf32>, tensor<32x16x1x1xf32>) -> tensor<1x32x4x4xf32>
  return %3 : tensor<1x32x4x4xf32>
}

// A bias per channel is put in blocks as well.
// CHECK-LABEL: func.func @bias
// CHECK: relay.layout_transform{{.*}} -> tensor<1x{{.*}}x1x1x{{.*}}xf32>
// CHECK: "relay.add"
func.func @bias(%x: tensor<1x3x8x8xf32>, %b: tensor<16x1x1xf32>) -> tensor<1x32x8x8xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<16x3x1x1xf32>} : () -> tensor<16x3x1x1xf32>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<32x16x1x1xf32>} : () -> tensor<32x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.add"(%0, %b) : (tensor<1x16x8x8xf32>, tensor<16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relay.nn_conv2d"(%1, %w1) : (tensor<1x16x8x8xf32>, tensor<32x16x1x1xf32>) -> tensor<1x32x8x8xf32>
  return %2 : tensor<1x32x8x8xf32>
}

// A convolution alone has nothing to gain.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: layout_transform
// CHECK: return
func.func @alone(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<16x16x1x1xf32>} : () -> tensor<16x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  return %0 : tensor<1x16x8x8xf32>
}

// Channels that do not fill blocks, and groups, stay.
// CHECK-LABEL: func.func @uneven
// CHECK-NOT: layout_transform
// CHECK: return
func.func @uneven(%x: tensor<1x16x8x8xf32>) -> tensor<1x7x8x8xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<16x1x1x1xf32>} : () -> tensor<16x1x1x1xf32>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<7x16x1x1xf32>} : () -> tensor<7x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) {groups = 16 : i64} : (tensor<1x16x8x8xf32>, tensor<16x1x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.nn_conv2d"(%0, %w1) : (tensor<1x16x8x8xf32>, tensor<7x16x1x1xf32>) -> tensor<1x7x8x8xf32>
  return %1 : tensor<1x7x8x8xf32>
}
