// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: add_unit_loop(block=other): expected a block of @main, out of exp, found 'other'
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
    "schedule.add_unit_loop"(%main) {block = "other"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Around a loop, and around a block.
// CHECK: scf.for %{{.*}} = %c0 to %c1 step %c1 {
// CHECK: scf.for %[[I:.*]] = %c0 to %c6
// CHECK: scf.for %[[J:.*]] = %c0 to %c10
// CHECK: scf.for %{{.*}} = %c0 to %c1 step %c1 {
// CHECK: "tir.block"(%[[I]], %[[J]]) ({
// CHECK: } {tir.loop = "u2"}
// CHECK: } {tir.loop = "j"}
// CHECK: } {tir.loop = "i"}
// CHECK: } {tir.loop = "u"}
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
    "schedule.add_unit_loop"(%main) {loop = "i", results = ["u"]} : (!transform.any_op) -> ()
    "schedule.add_unit_loop"(%main) {block = "exp"} : (!transform.any_op) -> ()
    transform.yield
  }
}
