// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: compute_at(block=B, loop=i): block B: expected no output of @main, found that it writes B
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x8xf32> {relay.name = "X"}) -> tensor<6x8xf32> {
    %e = tensor.empty() : tensor<6x8xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["i", "j"]}
      ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<6x8xf32> loc("A")
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["p", "q"]}
      ins(%0 : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = arith.negf %a : f32
      linalg.yield %b : f32
    } -> tensor<6x8xf32> loc("B")
    return %1 : tensor<6x8xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.compute_at"(%main) {block = "B", loop = "i"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Four rows of A for four rows of B; the last two are beyond the end, so that the block is guarded.
// CHECK-LABEL: func.func @main(
// CHECK: scf.for %[[P:.*]] = %c0 to %c2
// CHECK: scf.for %[[R:.*]] = %c0 to %c4
// CHECK: scf.for %[[C:.*]] = %c0 to %c8
// CHECK: %[[V:.*]] = affine.apply #{{.*}}(%[[P]], %[[R]])
// CHECK: "tir.block"(%[[V]], %[[C]], %[[V]], %c6)
// CHECK: name = "A"
// CHECK: {tir.loop = "ax1"}
// CHECK: {tir.loop = "ax0"}
// CHECK: name = "B"
// CHECK: {tir.loop = "q"}
// CHECK: {tir.loop = "p_1"}
// CHECK: {tir.loop = "p_0"}
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x8xf32> {relay.name = "X"}) -> tensor<6x8xf32> {
    %e = tensor.empty() : tensor<6x8xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["i", "j"]}
      ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<6x8xf32> loc("A")
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["p", "q"]}
      ins(%0 : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = arith.negf %a : f32
      linalg.yield %b : f32
    } -> tensor<6x8xf32> loc("B")
    return %1 : tensor<6x8xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.split"(%main) {loop = "p", factors = [unit, 4]} : (!transform.any_op) -> ()
    "schedule.compute_at"(%main) {block = "A", loop = "p_0", results = ["ax0", "ax1"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
