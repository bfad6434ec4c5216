// RUN: relayc-opt %s --passes recognize-patterns,dead-code-elimination --split-input-file | filecheck %s

// Only the normalised dimension need be a number; of softmax none need.
// CHECK-LABEL: func.func @norm
// CHECK: %[[N:.*]] = "relay.nn_rms_norm"(%arg0, %arg1) {axis = 2 : i64
// CHECK-NEXT: return %[[N]]
func.func @norm(%x: tensor<?x?x8xf32, ["b", "s"]>, %g: tensor<8xf32>) -> tensor<?x?x8xf32, ["b", "s"]> {
  %e = "relay.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.multiply"(%x, %x) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
  %1 = "relay.mean"(%0) {axis = array<i64: -1>, keepdims = true} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x1xf32, ["b", "s"]>
  %2 = "relay.add"(%1, %e) : (tensor<?x?x1xf32, ["b", "s"]>, tensor<f32>) -> tensor<?x?x1xf32, ["b", "s"]>
  %3 = "relay.sqrt"(%2) : (tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x1xf32, ["b", "s"]>
  %4 = "relay.divide"(%x, %3) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<?x?x1xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
  %5 = "relay.multiply"(%g, %4) : (tensor<8xf32>, tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
  return %5 : tensor<?x?x8xf32, ["b", "s"]>
}

// -----

// CHECK-LABEL: func.func @softmax
// CHECK-NEXT: %[[S:.*]] = "relay.nn_softmax"(%arg0) {axis = 1 : i64}
// CHECK-NEXT: return %[[S]]
func.func @softmax(%x: tensor<?x?xf32, ["n", "m"]>) -> tensor<?x?xf32, ["n", "m"]> {
  %0 = "relay.max"(%x) {axis = array<i64: -1>, keepdims = true} : (tensor<?x?xf32, ["n", "m"]>) -> tensor<?x1xf32, ["n"]>
  %1 = "relay.subtract"(%x, %0) : (tensor<?x?xf32, ["n", "m"]>, tensor<?x1xf32, ["n"]>) -> tensor<?x?xf32, ["n", "m"]>
  %2 = "relay.exp"(%1) : (tensor<?x?xf32, ["n", "m"]>) -> tensor<?x?xf32, ["n", "m"]>
  %3 = "relay.sum"(%2) {axis = array<i64: -1>, keepdims = true} : (tensor<?x?xf32, ["n", "m"]>) -> tensor<?x1xf32, ["n"]>
  %4 = "relay.divide"(%2, %3) : (tensor<?x?xf32, ["n", "m"]>, tensor<?x1xf32, ["n"]>) -> tensor<?x?xf32, ["n", "m"]>
  return %4 : tensor<?x?xf32, ["n", "m"]>
}

// -----

// There is no scale of ones of a size that is an expression.
// CHECK-LABEL: func.func @symbolic_channels
// CHECK-NOT: rms_norm
func.func @symbolic_channels(%x: tensor<?xf32, ["c"]>) -> tensor<?xf32, ["c"]> {
  %e = "relay.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.multiply"(%x, %x) : (tensor<?xf32, ["c"]>, tensor<?xf32, ["c"]>) -> tensor<?xf32, ["c"]>
  %1 = "relay.mean"(%0) {axis = array<i64: 0>, keepdims = true} : (tensor<?xf32, ["c"]>) -> tensor<1xf32>
  %2 = "relay.add"(%1, %e) : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
  %3 = "relay.sqrt"(%2) : (tensor<1xf32>) -> tensor<1xf32>
  %4 = "relay.divide"(%x, %3) : (tensor<?xf32, ["c"]>, tensor<1xf32>) -> tensor<?xf32, ["c"]>
  return %4 : tensor<?xf32, ["c"]>
}
