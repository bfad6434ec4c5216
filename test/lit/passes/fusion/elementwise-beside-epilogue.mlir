// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.elementwise-beside-epilogue | filecheck %s --check-prefix OFF

// What an epilogue adds to the product is computed with it, behind the anchor. It is of another shape than the addition, so that the first
// sweep left it apart.
// CHECK-LABEL: func.func @residual
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.nn_dense"
// CHECK-NEXT: "relay.cast"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @residual
// OFF: "relay.cast"
// OFF-NEXT: "relay.yield"
func.func @residual(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %h: tensor<4xf16>) -> tensor<4x4xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.cast"(%h) {dtype = "float32"} : (tensor<4xf16>) -> tensor<4xf32>
  %2 = "relay.add"(%0, %1) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// Not what moves elements.
// CHECK-LABEL: func.func @moves
// CHECK: "relay.transpose"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.yield"
func.func @moves(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "relay.transpose"(%y) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.nn_dense"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relay.add"(%1, %0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// Not where the anchor's prologue reads it too.
// CHECK-LABEL: func.func @prologue_and_epilogue
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.tanh"
// CHECK-NEXT: "relay.nn_softmax"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @prologue_and_epilogue
func.func @prologue_and_epilogue(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "relay.exp"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "relay.tanh"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "relay.nn_softmax"(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = "relay.add"(%2, %0) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
