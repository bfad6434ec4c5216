// RUN: relayc-opt %s --passes simplify-expr,eliminate-common-subexpr,recognize-patterns,dead-code-elimination --split-input-file | filecheck %s

// CHECK-LABEL: func.func @layer_norm
// CHECK: %[[N:.*]] = "relay.nn_layer_norm"(%arg0, %arg1, %arg2) {axis = 1 : i64, center = true, epsilon = 9.9999997{{.*}}E-6 : f64, scale = true}
// CHECK-NEXT: return %[[N]]
func.func @layer_norm(%x: tensor<4x8xf32>, %gamma: tensor<8xf32>, %beta: tensor<8xf32>) -> tensor<4x8xf32> {
  %eps = "relay.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.mean"(%x) {axis = array<i64: -1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "relay.subtract"(%x, %0) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = "relay.power"(%1, %two) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = "relay.mean"(%2) {axis = array<i64: -1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %4 = "relay.add"(%3, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %5 = "relay.sqrt"(%4) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %6 = "relay.divide"(%1, %5) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %7 = "relay.multiply"(%6, %gamma) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %8 = "relay.add"(%7, %beta) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %8 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @rms_norm
// CHECK: %[[N:.*]] = "relay.nn_rms_norm"(%arg0, %arg1) {axis = 1 : i64, epsilon = {{.*}}}
// CHECK-NEXT: return %[[N]]
func.func @rms_norm(%x: tensor<4x8xf32>, %gamma: tensor<8xf32>) -> tensor<4x8xf32> {
  %eps = "relay.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.multiply"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "relay.mean"(%0) {axis = array<i64: -1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = "relay.add"(%1, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %3 = "relay.sqrt"(%2) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %4 = "relay.divide"(%one, %3) : (tensor<f32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %5 = "relay.multiply"(%x, %4) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %6 = "relay.multiply"(%gamma, %5) : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @rms_norm_of_unknown_rows
// CHECK: %[[N:.*]] = "relay.nn_rms_norm"(%arg0, %arg1) {axis = 1 : i64, epsilon = {{.*}}}
// CHECK-NEXT: return %[[N]]
func.func @rms_norm_of_unknown_rows(%x: tensor<?x8xf32>, %gamma: tensor<8xf32>) -> tensor<?x8xf32> {
  %eps = "relay.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.multiply"(%x, %x) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "relay.mean"(%0) {axis = array<i64: -1>, keepdims = true} : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %2 = "relay.add"(%1, %eps) : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %3 = "relay.sqrt"(%2) : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %4 = "relay.divide"(%one, %3) : (tensor<f32>, tensor<?x1xf32>) -> tensor<?x1xf32>
  %5 = "relay.multiply"(%x, %4) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %6 = "relay.multiply"(%gamma, %5) : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %6 : tensor<?x8xf32>
}

// -----

// The variance as mean(x * x) - mean(x) * mean(x), and gamma multiplied with the inverse first.
// CHECK-LABEL: func.func @fast_layer_norm
// CHECK: %[[N:.*]] = "relay.nn_layer_norm"(%arg0, %arg1, %{{.*}}) {axis = 1 : i64, center = false, epsilon = 9.9999997{{.*}}E-6 : f64, scale = true}
// CHECK-NEXT: return %[[N]]
func.func @fast_layer_norm(%x: tensor<4x8xf32>, %gamma: tensor<8xf32>) -> tensor<4x8xf32> {
  %eps = "relay.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %zero = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.mean"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "relay.multiply"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "relay.mean"(%1) {axis = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %3 = "relay.multiply"(%0, %0) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %4 = "relay.subtract"(%2, %3) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %5 = "relay.maximum"(%4, %zero) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %6 = "relay.add"(%5, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = "relay.rsqrt"(%6) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %8 = "relay.subtract"(%x, %0) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %9 = "relay.multiply"(%7, %gamma) : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %10 = "relay.multiply"(%8, %9) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %10 : tensor<4x8xf32>
}

// -----

// What is not below 1 is no variance.
// CHECK-LABEL: func.func @no_fast_norm
// CHECK-NOT: norm
func.func @no_fast_norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.mean"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "relay.multiply"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "relay.mean"(%1) {axis = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %3 = "relay.multiply"(%0, %0) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %4 = "relay.subtract"(%2, %3) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %5 = "relay.maximum"(%4, %one) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %6 = "relay.add"(%5, %one) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = "relay.rsqrt"(%6) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %8 = "relay.subtract"(%x, %0) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %9 = "relay.multiply"(%8, %7) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %9 : tensor<4x8xf32>
}

// -----

// The variance of something else, and a mean over other axes, are no normalisation.
// CHECK-LABEL: func.func @no_norm
// CHECK-NOT: norm
func.func @no_norm(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %eps = "relay.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.multiply"(%y, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "relay.mean"(%0) {axis = array<i64: -1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = "relay.add"(%1, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %3 = "relay.sqrt"(%2) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %4 = "relay.divide"(%x, %3) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @softmax
// CHECK-NEXT: %[[S:.*]] = "relay.nn_softmax"(%arg0) {axis = 1 : i64}
// CHECK-NEXT: %[[L:.*]] = "relay.nn_log_softmax"(%arg0) {axis = 1 : i64}
// CHECK-NEXT: return %[[S]], %[[L]]
func.func @softmax(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = "relay.max"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "relay.subtract"(%x, %0) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = "relay.exp"(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "relay.sum"(%2) {axis = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %4 = "relay.divide"(%2, %3) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %5 = "relay.log"(%4) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %4, %5 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @sigmoid
// CHECK-NEXT: %[[S:.*]] = "relay.sigmoid"(%arg0)
// CHECK-NEXT: return %[[S]]
func.func @sigmoid(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relay.add"(%1, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = "relay.divide"(%one, %2) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// A normalisation that is used without its gamma too is computed once.
// CHECK-LABEL: func.func @norm_of_two_uses
// CHECK: %[[N:.*]] = "relay.nn_layer_norm"(%arg0, {{.*}} center = false, {{.*}} scale = false
// CHECK-NEXT: %[[M:.*]] = "relay.multiply"(%[[N]], %arg1)
// CHECK-NEXT: return %[[N]], %[[M]]
func.func @norm_of_two_uses(%x: tensor<4x8xf32>, %gamma: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %eps = "relay.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.mean"(%x) {axis = array<i64: -1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = "relay.subtract"(%x, %0) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = "relay.multiply"(%1, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "relay.mean"(%2) {axis = array<i64: -1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %4 = "relay.add"(%3, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %5 = "relay.sqrt"(%4) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %6 = "relay.divide"(%1, %5) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %7 = "relay.multiply"(%6, %gamma) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %6, %7 : tensor<4x8xf32>, tensor<4x8xf32>
}
