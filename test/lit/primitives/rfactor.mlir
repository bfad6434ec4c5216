// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: rfactor(loop=i, factor_axis=0): expected a loop that a reduction runs along, and nothing else, found i
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x10xf32>) -> tensor<6xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"],
                         tir.axes = ["i", "k"]} ins(%x : tensor<6x10xf32>) outs(%f : tensor<6xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %o, %a : f32
      linalg.yield %s : f32
    } -> tensor<6xf32> loc("sum")
    return %0 : tensor<6xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.rfactor"(%main) {loop = "i", factor_axis = 0} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Partial results of the four inner steps, of which the last has fewer; then their sum.
// CHECK: %[[RF:.*]] = memref.alloc() {tir.buffer = "sum_rf"} : memref<4x6xf32>
// CHECK: scf.for %[[I:.*]] = %c0 to %c6
// CHECK: scf.for %[[K0:.*]] = %c0 to %c3
// CHECK: scf.for %[[K1:.*]] = %c0 to %c4
// CHECK: %[[K:.*]] = affine.apply #{{.*}}(%[[K0]], %[[K1]])
// CHECK: "tir.block"(%[[I]], %[[K1]], %[[K0]], %[[K]], %c10) ({
// CHECK: memref.store %cst, %[[RF]]
// CHECK: memref.load %[[RF]]
// CHECK: arith.addf
// CHECK: memref.store %{{.*}}, %[[RF]]
// CHECK: extents = [6, 4, 3], iterators = ["parallel", "parallel", "reduction"], name = "sum_rf"
// CHECK: scf.for %[[K2:.*]] = %c0 to %c4
// CHECK: "tir.block"(%[[I]], %[[K2]]) ({
// CHECK: memref.load %[[RF]]
// CHECK: arith.addf
// CHECK: extents = [6, 4], iterators = ["parallel", "reduction"], name = "sum"
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x10xf32>) -> tensor<6xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"],
                         tir.axes = ["i", "k"]} ins(%x : tensor<6x10xf32>) outs(%f : tensor<6xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %o, %a : f32
      linalg.yield %s : f32
    } -> tensor<6xf32> loc("sum")
    return %0 : tensor<6xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.split"(%main) {loop = "k", factors = [unit, 4]} : (!transform.any_op) -> ()
    "schedule.rfactor"(%main) {loop = "k_1", factor_axis = 0, results = ["sum_rf"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
