// RUN: relayc-opt %s --passes recognize-attention,dead-code-elimination --split-input-file | filecheck %s

// A root of the scale on query and key, the transposes of both, of the value and of the result: attributes.
// CHECK-LABEL: func.func @transposed_heads
// CHECK-NEXT: %[[A:.*]] = "relay.nn_attention"(%arg0, %arg1, %arg2) {{.*}}key_layout = "BSHD"{{.*}}nan_to_zero = false{{.*}}out_layout = "BSHD", query_layout = "BSHD", scale = 2.500000e-01 : f64{{.*}}value_layout = "BSHD"
// CHECK-NEXT: return %[[A]]
func.func @transposed_heads(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x4x8xf32>, %v: tensor<2x7x4x8xf32>) -> tensor<2x5x4x8xf32> {
  %half = "relay.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.transpose"(%q) {axes = array<i64: 0, 2, 1, 3>} : (tensor<2x5x4x8xf32>) -> tensor<2x4x5x8xf32>
  %1 = "relay.transpose"(%k) {axes = array<i64: 0, 2, 3, 1>} : (tensor<2x7x4x8xf32>) -> tensor<2x4x8x7xf32>
  %2 = "relay.transpose"(%v) {axes = array<i64: 0, 2, 1, 3>} : (tensor<2x7x4x8xf32>) -> tensor<2x4x7x8xf32>
  %3 = "relay.multiply"(%0, %half) : (tensor<2x4x5x8xf32>, tensor<f32>) -> tensor<2x4x5x8xf32>
  %4 = "relay.multiply"(%1, %half) : (tensor<2x4x8x7xf32>, tensor<f32>) -> tensor<2x4x8x7xf32>
  %5 = "relay.reshape"(%3) {newshape = array<i64: 8, 5, 8>} : (tensor<2x4x5x8xf32>) -> tensor<8x5x8xf32>
  %6 = "relay.reshape"(%4) {newshape = array<i64: 8, 8, 7>} : (tensor<2x4x8x7xf32>) -> tensor<8x8x7xf32>
  %7 = "relay.nn_batch_matmul"(%5, %6) {transpose_b = false} : (tensor<8x5x8xf32>, tensor<8x8x7xf32>) -> tensor<8x5x7xf32>
  %8 = "relay.reshape"(%7) {newshape = array<i64: 2, 4, 5, 7>} : (tensor<8x5x7xf32>) -> tensor<2x4x5x7xf32>
  %9 = "relay.nn_softmax"(%8) {axis = 3 : i64} : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %10 = "relay.reshape"(%9) {newshape = array<i64: 8, 5, 7>} : (tensor<2x4x5x7xf32>) -> tensor<8x5x7xf32>
  %11 = "relay.reshape"(%2) {newshape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
  %12 = "relay.nn_batch_matmul"(%10, %11) {transpose_b = false} : (tensor<8x5x7xf32>, tensor<8x7x8xf32>) -> tensor<8x5x8xf32>
  %13 = "relay.reshape"(%12) {newshape = array<i64: 2, 4, 5, 8>} : (tensor<8x5x8xf32>) -> tensor<2x4x5x8xf32>
  %14 = "relay.transpose"(%13) {axes = array<i64: 0, 2, 1, 3>} : (tensor<2x4x5x8xf32>) -> tensor<2x5x4x8xf32>
  return %14 : tensor<2x5x4x8xf32>
}

// -----

// Scale by division, an added mask, and the guard that makes 0 of NaN.
// CHECK-LABEL: func.func @masked
// CHECK-NEXT: %[[A:.*]] = "relay.nn_attention"(%arg0, %arg1, %arg2, %arg3) {{.*}}is_causal = false{{.*}}nan_to_zero = true{{.*}}scale = 5.000000e-01 : f64
// CHECK-NEXT: %[[R:.*]] = "relay.reshape"(%[[A]]) {{.*}} -> tensor<8x5x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @masked(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %m: tensor<2x1x5x7xf32>) -> tensor<8x5x8xf32> {
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %zero = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.reshape"(%q) {newshape = array<i64: 8, 5, 8>} : (tensor<2x4x5x8xf32>) -> tensor<8x5x8xf32>
  %1 = "relay.reshape"(%k) {newshape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
  %2 = "relay.reshape"(%v) {newshape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
  %3 = "relay.nn_batch_matmul"(%0, %1) : (tensor<8x5x8xf32>, tensor<8x7x8xf32>) -> tensor<8x5x7xf32>
  %4 = "relay.reshape"(%3) {newshape = array<i64: 2, 4, 5, 7>} : (tensor<8x5x7xf32>) -> tensor<2x4x5x7xf32>
  %5 = "relay.divide"(%4, %two) : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5x7xf32>
  %6 = "relay.add"(%5, %m) : (tensor<2x4x5x7xf32>, tensor<2x1x5x7xf32>) -> tensor<2x4x5x7xf32>
  %7 = "relay.nn_softmax"(%6) : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %8 = "relay.isnan"(%7) : (tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xi1>
  %9 = "relay.where"(%8, %zero, %7) : (tensor<2x4x5x7xi1>, tensor<f32>, tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  %10 = "relay.reshape"(%9) {newshape = array<i64: 8, 5, 7>} : (tensor<2x4x5x7xf32>) -> tensor<8x5x7xf32>
  %11 = "relay.nn_batch_matmul"(%10, %2) {transpose_b = false} : (tensor<8x5x7xf32>, tensor<8x7x8xf32>) -> tensor<8x5x8xf32>
  return %11 : tensor<8x5x8xf32>
}

// -----

// A constant mask of a triangle is the causal one; heads repeated by a broadcast are not repeated.
// CHECK-LABEL: func.func @causal_groups
// CHECK-NEXT: "relay.nn_attention"(%arg0, %arg1, %arg2) {causal_offset = 1 : i64{{.*}}is_causal = true
func.func @causal_groups(%q: tensor<1x4x2x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<4x2x8xf32> {
  %m = "relay.constant"() {value = dense<[[0.0, 0.0, 0xFF7FFFFF], [0.0, 0.0, 0.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %0 = "relay.reshape"(%q) {newshape = array<i64: 4, 2, 8>} : (tensor<1x4x2x8xf32>) -> tensor<4x2x8xf32>
  %1 = "relay.reshape"(%k) {newshape = array<i64: 1, 2, 1, 3, 8>} : (tensor<1x2x3x8xf32>) -> tensor<1x2x1x3x8xf32>
  %2 = "relay.broadcast_to"(%1) {shape = array<i64: 1, 2, 2, 3, 8>} : (tensor<1x2x1x3x8xf32>) -> tensor<1x2x2x3x8xf32>
  %3 = "relay.reshape"(%2) {newshape = array<i64: 4, 3, 8>} : (tensor<1x2x2x3x8xf32>) -> tensor<4x3x8xf32>
  %4 = "relay.repeat"(%v) {repeats = 2 : i64, axis = 1 : i64} : (tensor<1x2x3x8xf32>) -> tensor<1x4x3x8xf32>
  %5 = "relay.reshape"(%4) {newshape = array<i64: 4, 3, 8>} : (tensor<1x4x3x8xf32>) -> tensor<4x3x8xf32>
  %6 = "relay.nn_batch_matmul"(%0, %3) : (tensor<4x2x8xf32>, tensor<4x3x8xf32>) -> tensor<4x2x3xf32>
  %7 = "relay.add"(%6, %m) : (tensor<4x2x3xf32>, tensor<2x3xf32>) -> tensor<4x2x3xf32>
  %8 = "relay.nn_softmax"(%7) : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %9 = "relay.nn_batch_matmul"(%8, %5) {transpose_b = false} : (tensor<4x2x3xf32>, tensor<4x3x8xf32>) -> tensor<4x2x8xf32>
  return %9 : tensor<4x2x8xf32>
}

// -----

// Scores that are replaced where a condition holds: the mask says where they are kept.
// CHECK-LABEL: func.func @filled
// CHECK-NEXT: %[[M:.*]] = "relay.reshape"(%arg3) {{.*}} -> tensor<1x1x1x7xi1>
// CHECK-NEXT: %[[N:.*]] = "relay.logical_not"(%[[M]])
// CHECK-NEXT: "relay.nn_attention"(%arg0, %arg1, %arg2, %[[N]]) {{.*}}mask_value = -1.000000e+04 : f64
func.func @filled(%q: tensor<1x4x5x8xf32>, %k: tensor<1x4x7x8xf32>, %v: tensor<1x4x7x8xf32>, %m: tensor<1x1x7xi1>) -> tensor<4x5x8xf32> {
  %fill = "relay.constant"() {value = dense<-1.0e4> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.reshape"(%q) {newshape = array<i64: 4, 5, 8>} : (tensor<1x4x5x8xf32>) -> tensor<4x5x8xf32>
  %1 = "relay.reshape"(%k) {newshape = array<i64: 4, 7, 8>} : (tensor<1x4x7x8xf32>) -> tensor<4x7x8xf32>
  %2 = "relay.reshape"(%v) {newshape = array<i64: 4, 7, 8>} : (tensor<1x4x7x8xf32>) -> tensor<4x7x8xf32>
  %3 = "relay.nn_batch_matmul"(%0, %1) : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %4 = "relay.where"(%m, %fill, %3) : (tensor<1x1x7xi1>, tensor<f32>, tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %5 = "relay.nn_softmax"(%4) : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %6 = "relay.nn_batch_matmul"(%5, %2) {transpose_b = false} : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %6 : tensor<4x5x8xf32>
}

// -----

// Weights that something else reads too are computed anyway.
// CHECK-LABEL: func.func @weights_wanted
// CHECK: relay.nn_softmax
// CHECK: relay.nn_batch_matmul
func.func @weights_wanted(%q: tensor<4x5x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>) -> (tensor<4x5x8xf32>, tensor<4x5x7xf32>) {
  %0 = "relay.nn_batch_matmul"(%q, %k) : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = "relay.nn_softmax"(%0) : (tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %2 = "relay.nn_batch_matmul"(%1, %v) {transpose_b = false} : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %2, %1 : tensor<4x5x8xf32>, tensor<4x5x7xf32>
}

// -----

// Of an operator that was one from the start, a constant mask of a triangle is the causal one, too; one of zeros is none.
// CHECK-LABEL: func.func @constant_masks
// CHECK-NEXT: %[[A:.*]] = "relay.nn_attention"(%arg0, %arg1, %arg2) {causal_offset = 1 : i64, empty_to_zero = true, is_causal = true
// CHECK-NEXT: %[[B:.*]] = "relay.nn_attention"(%[[A]], %arg1, %arg2) {causal_offset = 0 : i64, empty_to_zero = false, is_causal = false
// CHECK-NEXT: return %[[B]]
func.func @constant_masks(%q: tensor<1x4x2x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x4x2x8xf32> {
  %t = "relay.constant"() {value = dense<[[true, true, false], [true, true, true]]> : tensor<2x3xi1>} : () -> tensor<2x3xi1>
  %z = "relay.constant"() {value = dense<0.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %0 = "relay.nn_attention"(%q, %k, %v, %t) {scale = 1.0 : f64, empty_to_zero = true} : (tensor<1x4x2x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<2x3xi1>) -> tensor<1x4x2x8xf32>
  %1 = "relay.nn_attention"(%0, %k, %v, %z) {scale = 1.0 : f64} : (tensor<1x4x2x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<2x3xf32>) -> tensor<1x4x2x8xf32>
  return %1 : tensor<1x4x2x8xf32>
}

// -----

// One of finite numbers is where every row sees a key: not where the first row sees none.
// CHECK-LABEL: func.func @finite_triangles
// CHECK: %[[A:.*]] = "relay.nn_attention"(%arg0, %arg1, %arg2) {causal_offset = 0 : i64, {{.*}}is_causal = true
// CHECK-NEXT: "relay.nn_attention"(%[[A]], %arg1, %arg2, %{{.*}}) {scale
func.func @finite_triangles(%q: tensor<1x4x2x8xf32>, %k: tensor<1x2x2x8xf32>, %v: tensor<1x2x2x8xf32>) -> tensor<1x4x2x8xf32> {
  %t = "relay.constant"() {value = dense<[[0.0, -1.0e9], [0.0, 0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %s = "relay.constant"() {value = dense<[[-1.0e9, -1.0e9], [0.0, -1.0e9]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "relay.nn_attention"(%q, %k, %v, %t) {scale = 1.0 : f64} : (tensor<1x4x2x8xf32>, tensor<1x2x2x8xf32>, tensor<1x2x2x8xf32>, tensor<2x2xf32>) -> tensor<1x4x2x8xf32>
  %1 = "relay.nn_attention"(%0, %k, %v, %s) {scale = 1.0 : f64} : (tensor<1x4x2x8xf32>, tensor<1x2x2x8xf32>, tensor<1x2x2x8xf32>, tensor<2x2xf32>) -> tensor<1x4x2x8xf32>
  return %1 : tensor<1x4x2x8xf32>
}

// -----

// Where the number of queries is unknown, a constant mask of zeros is none, and no triangle is known to be the causal mask.
// CHECK-LABEL: func.func @unknown_queries
// CHECK: %[[A:.*]] = "relay.nn_attention"(%arg0, %arg1, %arg2, %{{.*}}) {scale
// CHECK-NEXT: "relay.nn_attention"(%[[A]], %arg1, %arg2) {{.*}}is_causal = false
func.func @unknown_queries(%q: tensor<1x4x?x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>) -> tensor<1x4x?x8xf32> {
  %t = "relay.constant"() {value = dense<[[true, true, false], [true, true, true]]> : tensor<2x3xi1>} : () -> tensor<2x3xi1>
  %z = "relay.constant"() {value = dense<0.0> : tensor<1x3xf32>} : () -> tensor<1x3xf32>
  %0 = "relay.nn_attention"(%q, %k, %v, %t) {scale = 1.0 : f64} : (tensor<1x4x?x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<2x3xi1>) -> tensor<1x4x?x8xf32>
  %1 = "relay.nn_attention"(%0, %k, %v, %z) {scale = 1.0 : f64} : (tensor<1x4x?x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x3xf32>) -> tensor<1x4x?x8xf32>
  return %1 : tensor<1x4x?x8xf32>
}
