// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: split(loop=i, factors=[2, 4]): factors of i: expected a product of 10 or more, its extent, found [2, 4]
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<10xf32>) -> tensor<10xf32> {
    %e = tensor.empty() : tensor<10xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"], tir.axes = ["i"]}
      ins(%x : tensor<10xf32>) outs(%e : tensor<10xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<10xf32>
    return %0 : tensor<10xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.split"(%main) {loop = "i", factors = [2, 4]} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// CHECK: error: split(loop=i, factors=[]): factors of i: expected one or more, of which one at most is None, found []
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    %e = tensor.empty() : tensor<1xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"], tir.axes = ["i"]}
      ins(%x : tensor<1xf32>) outs(%e : tensor<1xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<1xf32>
    return %0 : tensor<1xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.split"(%main) {loop = "i", factors = []} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Factors that do not divide the extent: the block ends where the loop did.
// CHECK: #[[MAP:.*]] = affine_map<(d0, d1) -> (d1 + d0 * 4)>
// CHECK: scf.for %[[O:.*]] = %c0 to %c3 step %c1 {
// CHECK: scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK: %[[V:.*]] = affine.apply #[[MAP]](%[[O]], %[[I]])
// CHECK: "tir.block"(%[[V]], %[[V]], %c10) ({
// CHECK: } {tir.loop = "i_1"}
// CHECK: } {tir.loop = "i_0"}
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<10xf32>) -> tensor<10xf32> {
    %e = tensor.empty() : tensor<10xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"], tir.axes = ["i"]}
      ins(%x : tensor<10xf32>) outs(%e : tensor<10xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<10xf32>
    return %0 : tensor<10xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.split"(%main) {loop = "i", factors = [unit, 4], results = ["i_0", "i_1"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
