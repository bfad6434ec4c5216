// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: unannotate(key=other, loop=i): expected one of its annotations, hint, found 'other'
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
    "schedule.annotate"(%main) {loop = "i", key = "hint", value = 1} : (!transform.any_op) -> ()
    "schedule.unannotate"(%main) {loop = "i", key = "other"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Of a block, of a loop, and taken back.
// CHECK: name = "exp", tir.annotations = {why = "because"}
// CHECK: } {tir.loop = "j"}
// CHECK: } {tir.annotations = {hint = [1, 2]}, tir.loop = "i"}
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
    "schedule.annotate"(%main) {block = "exp", key = "why", value = "because"} : (!transform.any_op) -> ()
    "schedule.annotate"(%main) {loop = "i", key = "hint", value = [1, 2]} : (!transform.any_op) -> ()
    "schedule.annotate"(%main) {loop = "j", key = "gone", value = 1} : (!transform.any_op) -> ()
    "schedule.unannotate"(%main) {loop = "j", key = "gone"} : (!transform.any_op) -> ()
    transform.yield
  }
}
