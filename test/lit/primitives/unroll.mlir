// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: unroll(loop=l): expected a loop of @main, out of i, j, found 'l'
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
    "schedule.unroll"(%main) {loop = "l"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// The loop is written out when it is lowered.
// CHECK: } {tir.kind = "unrolled", tir.loop = "j"}
// CHECK: } {tir.loop = "i"}
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
    "schedule.unroll"(%main) {loop = "j"} : (!transform.any_op) -> ()
    transform.yield
  }
}
