// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// A formula for each of many small matrices.
// CHECK: func.func private @fused_det(
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} outs({{.*}} : tensor<9xf32>)
// CHECK: arith.mulf
// CHECK: arith.subf
func.func @main(%x: tensor<9x2x2xf32>) -> tensor<9xf32> {
  %0 = "relay.det"(%x) : (tensor<9x2x2xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

// A larger one is eliminated column by column, by the row of the largest element.
// CHECK: func.func private @fused_det(
// CHECK: tensor.empty() : tensor<5x5xf32>
// CHECK: scf.for
// CHECK: math.absf
// CHECK: arith.cmpf ogt
// CHECK: arith.divf
func.func @main(%x: tensor<5x5xf32>) -> tensor<f32> {
  %0 = "relay.det"(%x) : (tensor<5x5xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
