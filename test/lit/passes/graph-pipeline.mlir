// RUN: relayc-opt %s --passes graph-pipeline | filecheck %s

// Convolution, batch norm and activation are one kernel; batch norm leaves only a bias.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: "relay.constant"
// CHECK-NEXT: %[[F:.*]] = "relay.fused"()
// CHECK: "relay.nn_conv2d"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.nn_relu"
// CHECK-NEXT: "relay.yield"
// CHECK: return %[[F]]
func.func @main(%x: tensor<1x3x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<2x3x1x1xf32>} : () -> tensor<2x3x1x1xf32>
  %g = "relay.constant"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "relay.constant"() {value = dense<0.5> : tensor<2xf32>} : () -> tensor<2xf32>
  %m = "relay.constant"() {value = dense<3.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %v = "relay.constant"() {value = dense<4.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1:3 = "relay.nn_batch_norm"(%0, %g, %b, %m, %v) : (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %2 = "relay.nn_relu"(%1#0) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %2 : tensor<1x2x4x4xf32>
}
