// RUN: relayc-opt %s --passes fold-scale-axis,fold-constant | filecheck %s

// A factor for each channel goes into the weight of a convolution of symbolic batch, height and width, and of a product of symbolic rows.
// CHECK-LABEL: func.func @main
// CHECK-NOT: "relay.multiply"
// CHECK: "relay.nn_conv2d"
// CHECK-NOT: "relay.multiply"
// CHECK: "relay.nn_dense"
// CHECK-NOT: "relay.multiply"
func.func @main(%x: tensor<?x2x?x?xf32, ["n", "h + 2", "w + 2"]>, %y: tensor<?x2xf32, ["n"]>) -> (tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<?x2xf32, ["n"]>) {
  %w = "relay.constant"() {value = dense<2.0> : tensor<2x2x3x3xf32>} : () -> tensor<2x2x3x3xf32>
  %v = "relay.constant"() {value = dense<2.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %s = "relay.constant"() {value = dense<[[[3.0]], [[5.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %t = "relay.constant"() {value = dense<[3.0, 5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<?x2x?x?xf32, ["n", "h + 2", "w + 2"]>, tensor<2x2x3x3xf32>) -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
  %1 = "relay.multiply"(%0, %s) : (tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<2x1x1xf32>) -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
  %2 = "relay.multiply"(%y, %t) : (tensor<?x2xf32, ["n"]>, tensor<2xf32>) -> tensor<?x2xf32, ["n"]>
  %3 = "relay.nn_dense"(%2, %v) : (tensor<?x2xf32, ["n"]>, tensor<2x2xf32>) -> tensor<?x2xf32, ["n"]>
  return %1, %3 : tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<?x2xf32, ["n"]>
}

// What is made of constants and a symbol is no constant.
// CHECK-LABEL: func.func @symbols
// CHECK: %[[F:.*]] = "relay.full"
// CHECK-NEXT: %[[M:.*]] = "relay.multiply"(%arg0, %{{.*}})
// CHECK-NEXT: "relay.multiply"(%[[M]], %[[F]])
func.func @symbols(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %c = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.full"(%c) {shape = ["n"]} : (tensor<f32>) -> tensor<?xf32, ["n"]>
  %1 = "relay.multiply"(%x, %c) : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["n"]>
  %2 = "relay.multiply"(%1, %0) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %2 : tensor<?xf32, ["n"]>
}
