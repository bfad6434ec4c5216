// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// A loop along each line carries the sum.
// CHECK-LABEL: func.func private @fused_cumprod(
// CHECK: arith.constant 1.000000e+00
// CHECK: %[[NEXT:.*]] = arith.mulf %[[SO_FAR:.*]],
// CHECK: tensor.insert %[[SO_FAR]] into
// CHECK: scf.yield {{.*}}, %[[NEXT]]
// CHECK-LABEL: func.func private @fused_cumsum(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: iter_args({{.*}}, {{.*}} = %cst) -> (tensor<{{.*}}>, f32)
// CHECK: arith.addf
// CHECK: tensor.insert
func.func @main(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %0 = "relay.cumsum"(%x) {axis = 1} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = "relay.cumprod"(%x) {axis = 0, exclusive = true} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return %0, %1 : tensor<3x5xf32>, tensor<3x5xf32>
}

// -----

// 16-bit floats carry f32; another dtype converts first.
// CHECK-LABEL: func.func private @fused_cumsum_1(
// CHECK: arith.extf {{.*}} : f16 to f64
// CHECK: arith.addf {{.*}} : f64
// CHECK-LABEL: func.func private @fused_cumsum(
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
func.func @main(%x: tensor<5xf16>) -> (tensor<5xf16>, tensor<5xf64>) {
  %0 = "relay.cumsum"(%x) {axis = 0} : (tensor<5xf16>) -> tensor<5xf16>
  %1 = "relay.cumsum"(%x) {axis = 0, dtype = "float64"} : (tensor<5xf16>) -> tensor<5xf64>
  return %0, %1 : tensor<5xf16>, tensor<5xf64>
}
