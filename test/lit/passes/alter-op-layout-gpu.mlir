// RUN: relayc-opt %s --passes alter-op-layout,dead-code-elimination --config "target=cuda -arch=sm_80" | filecheck %s

// Channels last, whatever the element type; a cast is in the layout of its image.
// CHECK-LABEL: func.func @halves
// CHECK-NOT: layout_transform
// CHECK: %[[A:.*]] = "relay.nn_conv2d"(%arg0, {{.*}}) {{.*}}data_layout = "NCHW"{{.*}}out_layout = "NHWC"{{.*}} -> tensor<1x8x8x16xf16>
// CHECK: %[[C:.*]] = "relay.cast"(%[[A]]) {{.*}} -> tensor<1x8x8x16xf32>
// CHECK: "relay.nn_conv2d"(%[[C]], {{.*}}) {{.*}}data_layout = "NHWC"{{.*}}out_layout = "NCHW"
func.func @halves(%x: tensor<1x1x8x8xf16>) -> tensor<1x32x8x8xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<16x1x3x3xf16>} : () -> tensor<16x1x3x3xf16>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<32x16x3x3xf32>} : () -> tensor<32x16x3x3xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x1x8x8xf16>, tensor<16x1x3x3xf16>) -> tensor<1x16x8x8xf16>
  %1 = "relay.cast"(%0) {dtype = "float32"} : (tensor<1x16x8x8xf16>) -> tensor<1x16x8x8xf32>
  %2 = "relay.nn_conv2d"(%1, %w1) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x16x8x8xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x8x8xf32>
  return %2 : tensor<1x32x8x8xf32>
}
