// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: fuse_iterators(block=sum, groups=[[0], [1, 2]]): groups: expected iterators of one kind in each, found parallel, reduction of block sum in [1, 2]
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x5x10xf32>) -> tensor<6x5xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6x5xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                         iterator_types = ["parallel", "parallel", "reduction"],
                         tir.axes = ["i", "j", "k"]} ins(%x : tensor<6x5x10xf32>) outs(%f : tensor<6x5xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %o, %a : f32
      linalg.yield %s : f32
    } -> tensor<6x5xf32> loc("sum")
    return %0 : tensor<6x5xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.fuse_iterators"(%main) {block = "sum", groups = [[0], [1, 2]]} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// One iterator of 60 values, whose quotient and remainder the body uses; the loop is one.
// CHECK: scf.for %[[F:.*]] = %c0 to %c60 step %c1 {
// CHECK-NEXT: "tir.block"(%[[F]]) ({
// CHECK: extents = [60], iterators = ["parallel"], name = "exp"
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
    "schedule.fuse_iterators"(%main) {block = "exp", groups = [[0, 1]], results = ["i_j_fused"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
