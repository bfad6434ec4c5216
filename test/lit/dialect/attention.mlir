// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The result has the batch, heads and sequence of the query and the width of the value.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_attention"(%arg0, %arg1, %arg2){{.*}} -> tensor<2x8x5x32xf32>
// CHECK-NEXT: "relay.nn_attention"(%arg0, %arg1, %arg2, %arg3){{.*}} -> tensor<2x8x5x32xf32>
// CHECK-NEXT: "relay.nn_attention"(%arg0, %arg1, %arg2, %arg4){{.*}} -> tensor<2x5x8x32xf32>
func.func @main(%q: tensor<2x8x5x16xf32>, %k: tensor<2x4x7x16xf32>, %v: tensor<2x4x7x32xf32>, %m: tensor<5x7xf32>, %b: tensor<2x1x5x7xi1>) {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 0.25 : f64} : (tensor<2x8x5x16xf32>, tensor<2x4x7x16xf32>, tensor<2x4x7x32xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.nn_attention"(%q, %k, %v, %m) {scale = 0.25 : f64} : (tensor<2x8x5x16xf32>, tensor<2x4x7x16xf32>, tensor<2x4x7x32xf32>, tensor<5x7xf32>) -> tensor<?x?x?x?xf32>
  %2 = "relay.nn_attention"(%q, %k, %v, %b) {scale = 0.25 : f64, out_layout = "BSHD"} : (tensor<2x8x5x16xf32>, tensor<2x4x7x16xf32>, tensor<2x4x7x32xf32>, tensor<2x1x5x7xi1>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// Layouts.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_attention"(%arg0, %arg1, %arg2){{.*}} -> tensor<5x2x8x32xf32>
func.func @main(%q: tensor<2x5x8x16xf32>, %k: tensor<2x4x16x7xf32>, %v: tensor<7x2x4x32xf32>) {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 0.25 : f64, query_layout = "BSHD", key_layout = "BHDS", value_layout = "SBHD", out_layout = "SBHD"} : (tensor<2x5x8x16xf32>, tensor<2x4x16x7xf32>, tensor<7x2x4x32xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// With the log-sum-exp of each query, in float32.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_attention_lse"(%arg0, %arg1, %arg2){{.*}} -> (tensor<2x5x8x32xbf16>, tensor<2x8x5xf32>)
func.func @main(%q: tensor<2x8x5x16xbf16>, %k: tensor<2x4x7x16xbf16>, %v: tensor<2x4x7x32xbf16>) {
  %0:2 = "relay.nn_attention_lse"(%q, %k, %v) {scale = 0.25 : f64, out_layout = "BSHD"} : (tensor<2x8x5x16xbf16>, tensor<2x4x7x16xbf16>, tensor<2x4x7x32xbf16>) -> (tensor<?x?x?x?xbf16>, tensor<?x?x?xf32>)
  return
}

// -----

// Derivatives have the shapes of query, key and value, in float32.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_attention_grad"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg4, %arg5){{.*}} -> (tensor<2x8x5x16xf32>, tensor<2x4x7x16xf32>, tensor<2x4x7x32xf32>)
func.func @main(%q: tensor<2x8x5x16xbf16>, %k: tensor<2x4x7x16xbf16>, %v: tensor<2x4x7x32xbf16>, %g: tensor<2x8x5x32xbf16>, %l: tensor<2x8x5xf32>, %m: tensor<5x7xi1>) {
  %0:3 = "relay.nn_attention_grad"(%q, %k, %v, %g, %l, %l, %m) {scale = 0.25 : f64, is_causal = true} : (tensor<2x8x5x16xbf16>, tensor<2x4x7x16xbf16>, tensor<2x4x7x32xbf16>, tensor<2x8x5x32xbf16>, tensor<2x8x5xf32>, tensor<2x8x5xf32>, tensor<5x7xi1>) -> (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>)
  return
}
