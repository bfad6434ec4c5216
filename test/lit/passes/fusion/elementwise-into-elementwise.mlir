// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.elementwise-into-elementwise --disable fuse-ops.injective-into-injective | filecheck %s --check-prefix OFF

// One shape: one group, without operands, arguments or literals of its own.
// CHECK-LABEL: func.func @chain
// CHECK: %[[C:.*]] = "relay.constant"
// CHECK-NEXT: %[[F:.*]] = "relay.fused"() ({
// CHECK-NEXT: %[[E:.*]] = "relay.exp"(%arg0)
// CHECK-NEXT: %[[M:.*]] = "relay.multiply"(%[[E]], %[[C]])
// CHECK-NEXT: "relay.yield"(%[[M]])
// CHECK-NEXT: }) : () -> tensor<4x8xf32>
// CHECK-NEXT: return %[[F]]
// OFF-LABEL: func.func @chain
// OFF-COUNT-2: "relay.fused"
func.func @chain(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "relay.multiply"(%0, %c) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// The group is formed before the product and the transpose are looked at: relu goes to the product, although the transpose could take it.
// CHECK-LABEL: func.func @before_others
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.nn_relu"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.transpose"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @before_others
func.func @before_others(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.nn_relu"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relay.transpose"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
