// RUN: relayc-opt %s --passes conv-transpose-to-conv | filecheck %s

// Of symbolic images, with what the border crops and what output_padding adds.
// CHECK-LABEL: func.func @double
// CHECK: "relay.nn_conv2d"(%arg0, %{{.*}} -> tensor<?x12x?x?xf32, ["n", "h + 1", "w + 1"]>
// CHECK: "relay.reshape"({{.*}}newshape = ["n", 3, 2, 2, "h + 1", "w + 1"]
// CHECK: "relay.reshape"({{.*}}newshape = ["n", 3, "2*h + 2", "2*w + 2"]
// CHECK: "relay.strided_slice"({{.*}}begin = array<i64: 1, 1>, end = ["2*h + 1", "2*w + 1"]{{.*}} -> tensor<?x3x?x?xf32, ["n", "2*h", "2*w"]>
// CHECK-LABEL: func.func @grown
// CHECK: "relay.nn_pad"
func.func @double(%x: tensor<?x2x?x?xf32, ["n", "h", "w"]>) -> tensor<?x3x?x?xf32, ["n", "2*h", "2*w"]> {
  %w = "relay.constant"() {value = dense<0.5> : tensor<2x3x4x4xf32>} : () -> tensor<2x3x4x4xf32>
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>} : (tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<2x3x4x4xf32>) -> tensor<?x3x?x?xf32, ["n", "2*h", "2*w"]>
  return %0 : tensor<?x3x?x?xf32, ["n", "2*h", "2*w"]>
}
func.func @grown(%x: tensor<?x2x?xf32, ["n", "h"]>) -> tensor<?x3x?xf32, ["n", "3*h + 1"]> {
  %w = "relay.constant"() {value = dense<0.5> : tensor<2x3x3xf32>} : () -> tensor<2x3x3xf32>
  %0 = "relay.nn_conv1d_transpose"(%x, %w) {strides = array<i64: 3>, output_padding = array<i64: 1>} : (tensor<?x2x?xf32, ["n", "h"]>, tensor<2x3x3xf32>) -> tensor<?x3x?xf32, ["n", "3*h + 1"]>
  return %0 : tensor<?x3x?xf32, ["n", "3*h + 1"]>
}
