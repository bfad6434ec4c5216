// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.epilogue | filecheck %s --check-prefix OFF

// A convolution takes what is elementwise behind it, a diamond among it. Constants of more than one element are captured like any value.
// CHECK-LABEL: func.func @convolution
// CHECK: %[[B:.*]] = "relay.constant"
// CHECK-NEXT: %[[F:.*]] = "relay.fused"() ({
// CHECK-NEXT: %[[CONV:.*]] = "relay.nn_conv2d"(%arg0, %arg1)
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%[[CONV]], %[[B]])
// CHECK-NEXT: %[[S:.*]] = "relay.sigmoid"(%[[A]])
// CHECK-NEXT: %[[M:.*]] = "relay.multiply"(%[[A]], %[[S]])
// CHECK-NEXT: "relay.yield"(%[[M]])
// CHECK: return %[[F]]
// OFF-LABEL: func.func @convolution
// OFF: "relay.nn_conv2d"
// OFF-NEXT: "relay.yield"
func.func @convolution(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32> {
  %b = "relay.constant"() {value = dense<1.0> : tensor<8x1x1xf32>} : () -> tensor<8x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %1 = "relay.add"(%0, %b) : (tensor<1x8x4x4xf32>, tensor<8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %2 = "relay.sigmoid"(%1) : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %3 = "relay.multiply"(%1, %2) : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %3 : tensor<1x8x4x4xf32>
}

// One anchor in a group: of two convolutions that are added, the later takes the addition.
// CHECK-LABEL: func.func @two_anchors
// CHECK: %[[ONE:.*]] = "relay.fused"
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1)
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_conv2d"(%arg0, %arg2)
// CHECK-NEXT: "relay.add"(%[[ONE]]
// CHECK-NEXT: "relay.yield"
func.func @two_anchors(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>, %v: tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32> {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %1 = "relay.nn_conv2d"(%x, %v) : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %2 = "relay.add"(%0, %1) : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %2 : tensor<1x8x4x4xf32>
}

// What broadcasts the anchor's result stays out: behind a reduction, the square root does not.
// CHECK-LABEL: func.func @other_shape
// CHECK: %[[R:.*]] = "relay.fused"
// CHECK-NEXT: "relay.sum"
// CHECK-NEXT: "relay.sqrt"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.divide"(%arg0, %[[R]])
// CHECK-NEXT: "relay.yield"
func.func @other_shape(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "relay.sum"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "relay.sqrt"(%0) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %2 = "relay.divide"(%x, %1) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
