// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: reorder(loops=[i_k_fused_1, i_k_fused_0]): expected loops of elements or of steps, found i_k_fused_0, which is both for block sum
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
    "schedule.fuse"(%main) {loops = ["i", "k"]} : (!transform.any_op) -> ()
    "schedule.split"(%main) {loop = "i_k_fused", factors = [unit, 4]} : (!transform.any_op) -> ()
    "schedule.reorder"(%main) {loops = ["i_k_fused_1", "i_k_fused_0"]} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Loops that are not named stay where they are; guards go with the block.
// CHECK: scf.for %[[K1:.*]] = %c0 to %c4
// CHECK: scf.for %[[K0:.*]] = %c0 to %c3
// CHECK: scf.for %[[I:.*]] = %c0 to %c6
// CHECK: %[[K:.*]] = affine.apply #{{.*}}(%[[K0]], %[[K1]])
// CHECK: "tir.block"(%[[I]], %[[K]], %[[K]], %c10) ({
// CHECK: } {tir.loop = "i"}
// CHECK: } {tir.loop = "k_0"}
// CHECK: } {tir.loop = "k_1"}
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
    "schedule.reorder"(%main) {loops = ["k_1", "i"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
