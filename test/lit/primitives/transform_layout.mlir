// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: transform_layout(block=A, buffer=[read, 0], index_map=(d0, d1) -> (d1, d0)): buffer X: expected a buffer of the function or a parameter, found an argument: use cache_read first
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
    "schedule.transform_layout"(%main) {block = "A", buffer = ["read", 0], index_map = affine_map<(d0, d1) -> (d1, d0)>} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Rows in fours; what two rows leave over is written by a block of its own.
// CHECK-LABEL: func.func @main(
// CHECK: memref.alloc() {tir.buffer = "A"} : memref<2x8x4xf32>
// CHECK: name = "A_pad"
// CHECK: math.exp
// CHECK: %[[H:.*]] = affine.apply #[[DIV:.*]](%[[I:.*]])
// CHECK: %[[L:.*]] = affine.apply #[[MOD:.*]](%[[I]])
// CHECK: memref.store %{{.*}}[%[[H]], %{{.*}}, %[[L]]]
// CHECK: name = "A"
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
    "schedule.transform_layout"(%main) {block = "A", buffer = "A", index_map = affine_map<(d0, d1) -> (d0 floordiv 4, d1, d0 mod 4)>, pad_value = 0.0 : f64, results = ["A_pad"]} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// A parameter is to be packed so.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %arg0: memref<8x6xf32> {relay.param, tir.buffer = "X", tir.layout = affine_map<(d0, d1) -> (d1, d0)>}
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x8xf32> {relay.name = "X", relay.param}) -> tensor<6x8xf32> {
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
    "schedule.transform_layout"(%main) {block = "A", buffer = "X", index_map = affine_map<(d0, d1) -> (d1, d0)>} : (!transform.any_op) -> ()
    transform.yield
  }
}
