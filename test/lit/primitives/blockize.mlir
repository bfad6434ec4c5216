// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: blockize(loop=p): loop p: expected one block in loops in it, found 2 loops and blocks in p
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
    "schedule.compute_at"(%main) {block = "A", loop = "p"} : (!transform.any_op) -> ()
    "schedule.blockize"(%main) {loop = "p"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// The start goes with the reduction that goes on outside.
// CHECK-LABEL: func.func @main(
// CHECK: "tir.block"(%[[I:.*]], %[[K:.*]]) ({
// CHECK: ^bb0(%[[VI:.*]]: index, %{{.*}}: index):
// CHECK: "tir.block"(%[[VI]]) ({
// CHECK: name = "S_init"
// CHECK: scf.for %[[T:.*]] = %c0 to %c4
// CHECK: affine.apply #{{.*}}(%{{.*}}, %[[T]])
// CHECK: name = "S"
// CHECK: extents = [6, 2], iterators = ["parallel", "reduction"], name = "S_o"
// CHECK: {tir.loop = "k_0"}
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x8xf32> {relay.name = "X"}) -> tensor<6xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
      iterator_types = ["parallel", "reduction"], tir.axes = ["i", "k"]}
      ins(%x : tensor<6x8xf32>) outs(%f : tensor<6xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = arith.addf %o, %a : f32
      linalg.yield %b : f32
    } -> tensor<6xf32> loc("S")
    %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"], tir.axes = ["p"]}
      ins(%0 : tensor<6xf32>) outs(%e : tensor<6xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.sqrt %a : f32
      linalg.yield %b : f32
    } -> tensor<6xf32> loc("Q")
    return %1 : tensor<6xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.split"(%main) {loop = "k", factors = [unit, 4]} : (!transform.any_op) -> ()
    "schedule.blockize"(%main) {loop = "k_1", results = ["S_o"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
