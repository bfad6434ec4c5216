// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: reverse_compute_at(block=Q, loop=k): block Q: expected that S is done in an iteration of loop k, found that its reduction goes on in loop k
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
    "schedule.reverse_compute_at"(%main) {block = "Q", loop = "k"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// A row is done where its sum is.
// CHECK-LABEL: func.func @main(
// CHECK: scf.for %[[I:.*]] = %c0 to %c6
// CHECK: scf.for
// CHECK: name = "S"
// CHECK: {tir.loop = "k"}
// CHECK: "tir.block"(%[[I]])
// CHECK: name = "Q"
// CHECK: {tir.loop = "i"}
// CHECK: return
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
    "schedule.reverse_compute_at"(%main) {block = "Q", loop = "i"} : (!transform.any_op) -> ()
    transform.yield
  }
}
