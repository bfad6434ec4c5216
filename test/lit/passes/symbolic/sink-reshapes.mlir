// RUN: relayc-opt %s --passes sink-reshapes --split-input-file | filecheck %s

// The bias and the activation work on the product's own shape; the reshape of the next product cancels.
// CHECK-LABEL: func.func @products
// CHECK: %[[D:.*]] = "relay.nn_dense"
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%[[D]], %arg2) : (tensor<?x5xf32, ["b*s"]>, tensor<5xf32>)
// CHECK-NEXT: %[[E:.*]] = "relay.nn_relu"(%[[A]])
// CHECK-NEXT: "relay.nn_dense"(%[[E]], %arg3)
func.func @products(%x: tensor<?x4xf32, ["b*s"]>, %w: tensor<5x4xf32>, %b: tensor<5xf32>, %v: tensor<3x5xf32>, %y: tensor<?x?xf32, ["b", "s"]>) -> tensor<?x3xf32, ["b*s"]> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x4xf32, ["b*s"]>, tensor<5x4xf32>) -> tensor<?x5xf32, ["b*s"]>
  %1 = "relay.reshape"(%0) {newshape = ["b", "s", 5]} : (tensor<?x5xf32, ["b*s"]>) -> tensor<?x?x5xf32, ["b", "s"]>
  %2 = "relay.add"(%1, %b) : (tensor<?x?x5xf32, ["b", "s"]>, tensor<5xf32>) -> tensor<?x?x5xf32, ["b", "s"]>
  %3 = "relay.nn_relu"(%2) : (tensor<?x?x5xf32, ["b", "s"]>) -> tensor<?x?x5xf32, ["b", "s"]>
  %4 = "relay.reshape"(%3) {newshape = ["b*s", 5]} : (tensor<?x?x5xf32, ["b", "s"]>) -> tensor<?x5xf32, ["b*s"]>
  %5 = "relay.nn_dense"(%4, %v) : (tensor<?x5xf32, ["b*s"]>, tensor<3x5xf32>) -> tensor<?x3xf32, ["b*s"]>
  return %5 : tensor<?x3xf32, ["b*s"]>
}

// -----

// A full operand is seen under the other shape, and one along merged dimensions; one along part of them stays where it is.
// CHECK-LABEL: func.func @operands
// CHECK: %[[D:.*]] = "relay.nn_dense"
// CHECK: %[[Y:.*]] = "relay.reshape"(%arg2) {{.*}} -> tensor<?x4xf32, ["b*s"]>
// CHECK: %[[A:.*]] = "relay.add"(%[[D]], %[[Y]])
// CHECK: %[[Z:.*]] = "relay.reshape"(%arg3) {{.*}} -> tensor<?x1xf32, ["b*s"]>
// CHECK: %[[M:.*]] = "relay.multiply"(%[[A]], %[[Z]])
// CHECK: %[[R:.*]] = "relay.reshape"(%[[M]])
// CHECK-NEXT: "relay.add"(%[[R]], %arg4)
func.func @operands(%x: tensor<?x5xf32, ["b*s"]>, %w: tensor<4x5xf32>, %y: tensor<?x?x4xf32, ["b", "s"]>, %z: tensor<?x?x1xf32, ["b", "s"]>, %p: tensor<?x4xf32, ["s"]>) -> tensor<?x?x4xf32, ["b", "s"]> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x5xf32, ["b*s"]>, tensor<4x5xf32>) -> tensor<?x4xf32, ["b*s"]>
  %1 = "relay.reshape"(%0) {newshape = ["b", "s", 4]} : (tensor<?x4xf32, ["b*s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
  %2 = "relay.add"(%1, %y) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
  %3 = "relay.multiply"(%2, %z) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
  %4 = "relay.add"(%3, %p) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x4xf32, ["s"]>) -> tensor<?x?x4xf32, ["b", "s"]>
  return %4 : tensor<?x?x4xf32, ["b", "s"]>
}

// -----

// Row operators over a symbolic last dimension that the reshape keeps; not over one that is another expression.
// CHECK-LABEL: func.func @rows
// CHECK: %[[S:.*]] = "relay.nn_softmax"(%arg0) {axis = 1 : i64} : (tensor<?x?xf32, ["4*b", "s"]>)
// CHECK: %[[R:.*]] = "relay.reshape"(%arg0) {{.*}} -> tensor<?x?xf32, ["2*b", "2*s"]>
// CHECK: "relay.nn_softmax"(%[[R]]) {axis = -1 : i64}
func.func @rows(%x: tensor<?x?xf32, ["4*b", "s"]>) -> (tensor<?x4x?xf32, ["b", "s"]>, tensor<?x?xf32, ["2*b", "2*s"]>) {
  %0 = "relay.reshape"(%x) {newshape = ["b", 4, "s"]} : (tensor<?x?xf32, ["4*b", "s"]>) -> tensor<?x4x?xf32, ["b", "s"]>
  %1 = "relay.nn_softmax"(%0) {axis = -1} : (tensor<?x4x?xf32, ["b", "s"]>) -> tensor<?x4x?xf32, ["b", "s"]>
  %2 = "relay.reshape"(%x) {newshape = ["2*b", "2*s"]} : (tensor<?x?xf32, ["4*b", "s"]>) -> tensor<?x?xf32, ["2*b", "2*s"]>
  %3 = "relay.nn_softmax"(%2) {axis = -1} : (tensor<?x?xf32, ["2*b", "2*s"]>) -> tensor<?x?xf32, ["2*b", "2*s"]>
  return %1, %3 : tensor<?x4x?xf32, ["b", "s"]>, tensor<?x?xf32, ["2*b", "2*s"]>
}
