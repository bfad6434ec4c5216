// RUN: relayc-opt %s --passes combine-parallel-dense --split-input-file | filecheck %s

// Three products of one tensor, biases in three forms, become one product and three slices.
// CHECK-LABEL: func.func @three
// CHECK: %[[W:.*]] = tensor.concat dim(0) {{.*}} -> tensor<7x4xf32>
// CHECK: %[[D:.*]] = "relay.nn_dense"(%arg0, %[[W]])
// CHECK: %[[B:.*]] = tensor.concat dim(0) {{.*}} -> tensor<7xf32>
// CHECK: %[[A:.*]] = "relay.add"(%[[D]],
// CHECK: "relay.strided_slice"(%[[A]]) {axes = array<i64: 1>, begin = array<i64: 0>, end = array<i64: 2>
// CHECK: "relay.strided_slice"(%[[A]]) {axes = array<i64: 1>, begin = array<i64: 2>, end = array<i64: 5>
// CHECK: "relay.strided_slice"(%[[A]]) {axes = array<i64: 1>, begin = array<i64: 5>, end = array<i64: 7>
// CHECK-NEXT: return
func.func @three(%x: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x2xf32>) {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  %b0 = "relay.constant"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "relay.nn_dense"(%x, %w0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  %1 = "relay.add"(%0, %b0) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %w1 = "relay.constant"() {value = dense<3.0> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
  %b1 = "relay.constant"() {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
  %2 = "relay.nn_dense"(%x, %w1) : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  %3 = "relay.add"(%b1, %2) : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %w2 = "relay.constant"() {value = dense<5.0> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  %b2 = "relay.constant"() {value = dense<6.0> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %4 = "relay.nn_dense"(%x, %w2) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  %5 = "relay.add"(%4, %b2) : (tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  return %1, %3, %5 : tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x2xf32>
}

// -----

// Two are too few; a weight that is no constant cannot be laid beside others.
// CHECK-LABEL: func.func @two
// CHECK-NOT: relay.concatenate
func.func @two(%x: tensor<2x4xf32>, %w2: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  %w1 = "relay.constant"() {value = dense<3.0> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  %0 = "relay.nn_dense"(%x, %w0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  %1 = "relay.nn_dense"(%x, %w1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  %2 = "relay.nn_dense"(%x, %w2) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  return %0, %1, %2 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// A bias that is used before the branches, too, stays before its first user.
// CHECK-LABEL: func.func @shared
// CHECK: %[[B:.*]] = "relay.constant"() {value = dense<2.000000e+00> : tensor<2xf32>}
// CHECK-NEXT: %[[Y:.*]] = "relay.add"(%arg0, %[[B]])
// CHECK: tensor.concat dim(0)
// CHECK: "relay.nn_dense"(%[[Y]],
// CHECK: tensor.concat dim(0) %[[B]],
func.func @shared(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %b = "relay.constant"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %y = "relay.add"(%x, %b) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "relay.nn_dense"(%y, %w0) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "relay.add"(%0, %b) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %w1 = "relay.constant"() {value = dense<3.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %b1 = "relay.constant"() {value = dense<4.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %2 = "relay.nn_dense"(%y, %w1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "relay.add"(%2, %b1) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %w2 = "relay.constant"() {value = dense<5.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %b2 = "relay.constant"() {value = dense<6.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %4 = "relay.nn_dense"(%y, %w2) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = "relay.add"(%4, %b2) : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  return %1, %3, %5 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
