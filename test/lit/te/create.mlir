// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// Fills, and functions of the loop index.
// CHECK-LABEL: func.func private @fused_shape_of(
// CHECK: linalg.index 0
// CHECK: arith.cmpi eq
// CHECK: arith.constant 2 : i32
// CHECK: arith.select
// CHECK: arith.constant 7 : i32
// CHECK: arith.select
// CHECK-LABEL: func.func private @fused_arange_1(
// CHECK: linalg.index 0
// CHECK: arith.muli {{.*}} : i64
// CHECK: arith.addi
// CHECK: arith.trunci
// CHECK-LABEL: func.func private @fused_arange(
// CHECK: linalg.index 0
// CHECK: arith.mulf {{.*}} : f64
// CHECK: arith.addf
// CHECK: arith.truncf
// CHECK-LABEL: func.func private @fused_ones(
// CHECK: arith.constant 1 : i8
// CHECK: linalg.fill
// CHECK-LABEL: func.func private @fused_zeros(
// CHECK: arith.constant 0.000000e+00
// CHECK: linalg.fill
// CHECK-LABEL: func.func private @fused_full(
// CHECK: arith.sitofp
func.func @main(%v: tensor<i32>, %x: tensor<2x7xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xi1>, tensor<3xf32>, tensor<3xi32>, tensor<2xi32>) {
  %0 = "relay.full"(%v) {shape = array<i64: 2, 3>, dtype = "float32"} : (tensor<i32>) -> tensor<2x3xf32>
  %1 = "relay.zeros"() {shape = array<i64: 2>} : () -> tensor<2xf32>
  %2 = "relay.ones"() {shape = array<i64: 2>, dtype = "bool"} : () -> tensor<2xi1>
  %3 = "relay.arange"() {stop = 3.0} : () -> tensor<3xf32>
  %4 = "relay.arange"() {stop = 3.0, dtype = "int32"} : () -> tensor<3xi32>
  %5 = "relay.shape_of"(%x) : (tensor<2x7xf32>) -> tensor<2xi32>
  return %0, %1, %2, %3, %4, %5 : tensor<2x3xf32>, tensor<2xf32>, tensor<2xi1>, tensor<3xf32>, tensor<3xi32>, tensor<2xi32>
}
