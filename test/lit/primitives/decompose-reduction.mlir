// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: decompose_reduction(block=sum, loop=i): expected a loop around all steps, found i inside of k_0, along which they run
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
    "schedule.reorder"(%main) {loops = ["k_0", "i"]} : (!transform.any_op) -> ()
    "schedule.decompose_reduction"(%main) {block = "sum", loop = "i"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// The start of the elements, in loops of its own, before the loop of the steps.
// CHECK: scf.for %[[I0:.*]] = %c0 to %c2
// CHECK: scf.for %[[I1:.*]] = %c0 to %c4
// CHECK: %[[I:.*]] = affine.apply #{{.*}}
// CHECK: "tir.block"(%[[I]], %[[I]], %c6) ({
// CHECK: }, {
// CHECK: memref.store %cst
// CHECK: name = "sum_init"
// CHECK: } {tir.loop = "i_1_init"}
// CHECK: scf.for %{{.*}} = %c0 to %c10
// CHECK: scf.for %{{.*}} = %c0 to %c4
// CHECK: "tir.block"({{.*}}) ({
// CHECK: }, {
// CHECK: arith.addf
// CHECK: name = "sum"
// CHECK: } {tir.loop = "i_1"}
// CHECK: } {tir.loop = "k"}
// CHECK: } {tir.loop = "i_0"}
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
    "schedule.split"(%main) {loop = "i", factors = [unit, 4]} : (!transform.any_op) -> ()
    "schedule.reorder"(%main) {loops = ["k", "i_1"]} : (!transform.any_op) -> ()
    "schedule.decompose_reduction"(%main) {block = "sum", loop = "k", results = ["sum_init"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
