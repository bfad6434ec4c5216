// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// A generic with a reduction loop over a filled tensor; the body is one combination.
// CHECK-LABEL: func.func private @fused_mean(
// CHECK: arith.addf
// CHECK: arith.constant 3.000000e+00
// CHECK: arith.divf
// CHECK: tensor.expand_shape {{.*}} into tensor<2x1x4xf32>
// CHECK-LABEL: func.func private @fused_min(
// CHECK: arith.constant 0x7F800000
// CHECK: arith.minimumf
// CHECK-LABEL: func.func private @fused_max(
// CHECK: arith.constant 0xFF800000
// CHECK: arith.maximumf
// CHECK-LABEL: func.func private @fused_prod(
// CHECK: arith.constant 1.000000e+00
// CHECK: arith.mulf %in, %out
// CHECK-LABEL: func.func private @fused_sum(
// CHECK: linalg.fill ins(%cst : f32)
// CHECK: iterator_types = ["parallel", "reduction", "parallel"]
// CHECK-NEXT: ^bb0(%in: f32, %out: f32):
// CHECK-NEXT: arith.addf %in, %out
func.func @main(%x: tensor<2x3x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x1x4xf32>) {
  %0 = "relay.sum"(%x) {axis = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %1 = "relay.prod"(%x) {axis = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %2 = "relay.max"(%x) {axis = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %3 = "relay.min"(%x) {axis = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %4 = "relay.mean"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  return %0, %1, %2, %3, %4 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x1x4xf32>
}

// -----

// argmax: the largest value, then the lowest index that has it; NaN counts as found.
// CHECK-LABEL: func.func private @fused_argmin(
// CHECK: arith.minimumf
// CHECK: arith.constant -2147483648
// CHECK: linalg.index 1
// CHECK: arith.maxsi {{.*}}, %out
// CHECK-LABEL: func.func private @fused_argmax(
// CHECK: arith.maximumf
// CHECK: arith.constant 2147483647
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf une, %in, %in
// CHECK: linalg.index 1
// CHECK: linalg.index 2
// CHECK: arith.muli
// CHECK: arith.minsi {{.*}}, %out
func.func @main(%x: tensor<2x3x4xf32>) -> (tensor<2xi32>, tensor<2x4xi32>) {
  %0 = "relay.argmax"(%x) {axis = array<i64: 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2xi32>
  %1 = "relay.argmin"(%x) {axis = array<i64: 1>, select_last_index = true} : (tensor<2x3x4xf32>) -> tensor<2x4xi32>
  return %0, %1 : tensor<2xi32>, tensor<2x4xi32>
}

// -----

// 16-bit floats accumulate in f32; means of integers in 64 bits.
// CHECK-LABEL: func.func private @fused_max_1(
// CHECK: arith.constant 0 : i8
// CHECK: arith.maxui
// CHECK-LABEL: func.func private @fused_mean(
// CHECK: arith.extui %in : i8 to i64
// CHECK: arith.addi
// CHECK: arith.divui
// CHECK: arith.trunci
// CHECK-LABEL: func.func private @fused_max(
// CHECK-NOT: arith.extf
// CHECK: arith.maximumf {{.*}} : f16
// CHECK-LABEL: func.func private @fused_sum(
// CHECK: outs({{.*}} : tensor<4xf32>)
// CHECK: arith.extf
// CHECK: arith.addf
// CHECK: arith.truncf
func.func @main(%x: tensor<8x4xf16>, %i: tensor<8x4xui8>) -> (tensor<4xf16>, tensor<4xf16>, tensor<4xui8>, tensor<4xui8>) {
  %0 = "relay.sum"(%x) {axis = array<i64: 0>} : (tensor<8x4xf16>) -> tensor<4xf16>
  %1 = "relay.max"(%x) {axis = array<i64: 0>} : (tensor<8x4xf16>) -> tensor<4xf16>
  %2 = "relay.mean"(%i) {axis = array<i64: 0>} : (tensor<8x4xui8>) -> tensor<4xui8>
  %3 = "relay.max"(%i) {axis = array<i64: 0>} : (tensor<8x4xui8>) -> tensor<4xui8>
  return %0, %1, %2, %3 : tensor<4xf16>, tensor<4xf16>, tensor<4xui8>, tensor<4xui8>
}

// -----

// Bools.
// CHECK-LABEL: func.func private @fused_any(
// CHECK: arith.constant 0 : i8
// CHECK: arith.ori
// CHECK-LABEL: func.func private @fused_all(
// CHECK: arith.constant 1 : i8
// CHECK: arith.andi
func.func @main(%x: tensor<3x4xi1>) -> (tensor<3xi1>, tensor<3xi1>) {
  %0 = "relay.all"(%x) {axis = array<i64: 1>} : (tensor<3x4xi1>) -> tensor<3xi1>
  %1 = "relay.any"(%x) {axis = array<i64: 1>} : (tensor<3x4xi1>) -> tensor<3xi1>
  return %0, %1 : tensor<3xi1>, tensor<3xi1>
}

// -----

// variance reads the mean along the reduced axis.
// CHECK-LABEL: func.func private @fused_variance(
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: arith.constant 2.000000e+00
// CHECK: arith.divf
func.func @main(%x: tensor<2x3x4xf32>, %m: tensor<2x1x4xf32>) -> (tensor<2x4xf32>) {
  %0 = "relay.variance"(%x, %m) {axis = array<i64: 1>, unbiased = true} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
