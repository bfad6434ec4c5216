// RUN: relayc-opt %s --passes sink-reshapes --split-input-file | filecheck %s

// The bias and the activation work on the product's own shape; the reshape of the next product cancels.
// CHECK-LABEL: func.func @products
// CHECK: %[[D:.*]] = "relay.nn_dense"
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%[[D]], %arg2) : (tensor<6x5xf32>, tensor<5xf32>)
// CHECK-NEXT: %[[E:.*]] = "relay.nn_relu"(%[[A]])
// CHECK-NEXT: "relay.nn_dense"(%[[E]], %arg3)
func.func @products(%x: tensor<6x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>, %v: tensor<3x5xf32>) -> tensor<6x3xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 2, 3, 5>} : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
  %2 = "relay.add"(%1, %b) : (tensor<2x3x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  %3 = "relay.nn_relu"(%2) : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %4 = "relay.reshape"(%3) {newshape = array<i64: 6, 5>} : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  %5 = "relay.nn_dense"(%4, %v) : (tensor<6x5xf32>, tensor<3x5xf32>) -> tensor<6x3xf32>
  return %5 : tensor<6x3xf32>
}

// -----

// So that product and addition fuse, a full operand is seen under the other shape; an operand along merged dimensions too.
// CHECK-LABEL: func.func @operands
// CHECK: %[[D:.*]] = "relay.nn_dense"
// CHECK: %[[Y:.*]] = "relay.reshape"(%arg2) {{.*}} -> tensor<6x4xf32>
// CHECK: %[[A:.*]] = "relay.add"(%[[D]], %[[Y]])
// CHECK: %[[Z:.*]] = "relay.reshape"(%arg3) {{.*}} -> tensor<6x1xf32>
// CHECK: "relay.multiply"(%[[A]], %[[Z]])
func.func @operands(%x: tensor<6x5xf32>, %w: tensor<4x5xf32>, %y: tensor<2x3x4xf32>, %z: tensor<2x3x1xf32>) -> tensor<2x3x4xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<6x5xf32>, tensor<4x5xf32>) -> tensor<6x4xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %2 = "relay.add"(%1, %y) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = "relay.multiply"(%2, %z) : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  return %3 : tensor<2x3x4xf32>
}

// -----

// Without anything to fuse with, a reshape does not move only to leave another one behind.
// CHECK-LABEL: func.func @nothing_to_fuse
// CHECK-NEXT: %[[R:.*]] = "relay.reshape"(%arg0)
// CHECK-NEXT: "relay.add"(%[[R]], %arg1)
func.func @nothing_to_fuse(%x: tensor<6x4xf32>, %y: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "relay.add"(%0, %y) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----

// An operand that changes along one of two merged dimensions has no shape before the reshape.
// CHECK-LABEL: func.func @partial
// CHECK-NEXT: %[[R:.*]] = "relay.reshape"(%arg0)
// CHECK-NEXT: "relay.add"(%[[R]], %arg1)
func.func @partial(%x: tensor<6x4xf32>, %y: tensor<3x1xf32>) -> tensor<2x3x4xf32> {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "relay.add"(%0, %y) : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----

// Not between an operator and the one it would be fused with.
// CHECK-LABEL: func.func @fuses_here
// CHECK: %[[M:.*]] = "relay.nn_batch_matmul"
// CHECK-NEXT: "relay.add"(%{{.*}}, %[[M]]) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>)
func.func @fuses_here(%x: tensor<6x4xf32>, %a: tensor<2x3x5xf32>, %b: tensor<2x4x5xf32>) -> tensor<2x3x4xf32> {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "relay.nn_batch_matmul"(%a, %b) : (tensor<2x3x5xf32>, tensor<2x4x5xf32>) -> tensor<2x3x4xf32>
  %2 = "relay.add"(%0, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}

// -----

// Row operators over a last dimension that the reshape keeps.
// CHECK-LABEL: func.func @rows
// CHECK: %[[S:.*]] = "relay.nn_softmax"(%arg0) {axis = 1 : i64} : (tensor<6x4xf32>)
// CHECK: %[[R:.*]] = "relay.reshape"(%arg0) {{.*}} -> tensor<6x2x2xf32>
// CHECK: "relay.nn_softmax"(%[[R]]) {axis = -1 : i64} : (tensor<6x2x2xf32>)
func.func @rows(%x: tensor<6x4xf32>) -> (tensor<2x3x4xf32>, tensor<6x2x2xf32>) {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = "relay.nn_softmax"(%0) {axis = -1} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = "relay.reshape"(%x) {newshape = array<i64: 6, 2, 2>} : (tensor<6x4xf32>) -> tensor<6x2x2xf32>
  %3 = "relay.nn_softmax"(%2) {axis = -1} : (tensor<6x2x2xf32>) -> tensor<6x2x2xf32>
  return %1, %3 : tensor<2x3x4xf32>, tensor<6x2x2xf32>
}

// -----

// Not between a reduction and what it absorbs, where the reshape has other users.
// CHECK-LABEL: func.func @reduced
// CHECK: %[[R:.*]] = "relay.reshape"(%arg0)
// CHECK: %[[C:.*]] = "relay.cast"(%[[R]]) {{.*}} : (tensor<2x3x4xui8>) -> tensor<2x3x4xi32>
// CHECK: "relay.sum"(%[[C]])
func.func @reduced(%x: tensor<6x4xui8>) -> (tensor<2x3xi32>, tensor<2x3x4xui8>) {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 2, 3, 4>} : (tensor<6x4xui8>) -> tensor<2x3x4xui8>
  %1 = "relay.cast"(%0) {dtype = "int32"} : (tensor<2x3x4xui8>) -> tensor<2x3x4xi32>
  %2 = "relay.sum"(%1) {axis = array<i64: 2>} : (tensor<2x3x4xi32>) -> tensor<2x3xi32>
  return %2, %0 : tensor<2x3xi32>, tensor<2x3x4xui8>
}

// -----

// Each of two constants would be seen under the shape of the other, in turn.
// CHECK-LABEL: func.func @constants
// CHECK: %[[R:.*]] = "relay.reshape"
// CHECK-NEXT: %[[M:.*]] = "relay.multiply"(%[[R]], %{{.*}}) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %[[M]]
func.func @constants() -> tensor<f32> {
  %0 = "relay.constant"() {value = dense<2.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %1 = "relay.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %2 = "relay.reshape"(%0) {newshape = array<i64>} : (tensor<1xf32>) -> tensor<f32>
  %3 = "relay.multiply"(%2, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}
