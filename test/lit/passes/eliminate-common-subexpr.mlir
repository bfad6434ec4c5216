// RUN: relayc-opt %s --passes eliminate-common-subexpr --split-input-file | filecheck %s

// Equal operators on equal operands, and equal constants, are one.
// CHECK-LABEL: func.func @equal
// CHECK-NEXT: %[[C:.*]] = "relay.constant"
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%arg0, %[[C]])
// CHECK-NEXT: %[[E:.*]] = "relay.exp"(%[[A]])
// CHECK-NEXT: return %[[E]], %[[E]]
func.func @equal(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.add"(%x, %c) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = "relay.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %d = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %2 = "relay.add"(%x, %d) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = "relay.exp"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Other attributes, other operators.
// CHECK-LABEL: func.func @other_attributes
// CHECK: "relay.nn_leaky_relu"(%arg0) {alpha = 1.000000e-01 : f64}
// CHECK: "relay.nn_leaky_relu"(%arg0) {alpha = 2.000000e-01 : f64}
func.func @other_attributes(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relay.nn_leaky_relu"(%x) {alpha = 0.1} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.nn_leaky_relu"(%x) {alpha = 0.2} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A branch sees what stands around it; what it computes itself stays inside.
// CHECK-LABEL: func.func @branches
// CHECK: %[[E:.*]] = "relay.exp"(%arg1)
// CHECK: "relay.if"(%arg0) ({
// CHECK-NEXT: "relay.yield"(%[[E]])
// CHECK: %[[N:.*]] = "relay.negative"(%arg1)
// CHECK: "relay.yield"(%[[N]])
// CHECK: "relay.negative"(%arg1)
func.func @branches(%c: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.if"(%c) ({
    %2 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%2) : (tensor<4xf32>) -> ()
  }, {
    %2 = "relay.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%2) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  %3 = "relay.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// An operator before another one has its result among others; with another attribute it has not.
// CHECK-LABEL: func.func @first_result
// CHECK-NEXT: %[[BOTH:.*]]:2 = "relay.nn_attention_lse"(%arg0, %arg0, %arg0)
// CHECK-NEXT: %[[OTHER:.*]] = "relay.nn_attention"(%arg0, %arg0, %arg0) {{.*}}scale = 2.0
// CHECK-NEXT: return %[[BOTH]]#0, %[[BOTH]]#1, %[[OTHER]]
func.func @first_result(%x: tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3x4xf32>) {
  %0:2 = "relay.nn_attention_lse"(%x, %x, %x) {scale = 1.0 : f64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  %1 = "relay.nn_attention"(%x, %x, %x) {scale = 1.0 : f64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %2 = "relay.nn_attention"(%x, %x, %x) {scale = 2.0 : f64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %1, %0#1, %2 : tensor<1x2x3x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3x4xf32>
}
