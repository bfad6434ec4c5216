// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: fuse(loops=[k, i]): expected loops inside of each other, found i outside of k
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
    "schedule.fuse"(%main) {loops = ["k", "i"]} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// One loop through all iterations; points are quotient and remainder of its variable.
// CHECK: #[[QUOTIENT:.*]] = affine_map<(d0) -> (d0 floordiv 10)>
// CHECK: #[[REST:.*]] = affine_map<(d0) -> (d0 mod 10)>
// CHECK: scf.for %[[F:.*]] = %c0 to %c60 step %c1 {
// CHECK: %[[I:.*]] = affine.apply #[[QUOTIENT]](%[[F]])
// CHECK: %[[J:.*]] = affine.apply #[[REST]](%[[F]])
// CHECK: "tir.block"(%[[I]], %[[J]]) ({
// CHECK: } {tir.loop = "i_j_fused"}
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x10xf32>) -> tensor<6x10xf32> {
    %e = tensor.empty() : tensor<6x10xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"], tir.axes = ["i", "j"]}
      ins(%x : tensor<6x10xf32>) outs(%e : tensor<6x10xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<6x10xf32> loc("exp")
    return %0 : tensor<6x10xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.fuse"(%main) {loops = ["i", "j"], results = ["i_j_fused"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
