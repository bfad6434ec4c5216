// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: bind(loop=i, thread=threadIdx.w): expected one of blockIdx.x,
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
    "schedule.bind"(%main) {loop = "i", thread = "threadIdx.w"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Blocks of threads, and threads in them.
// CHECK: } {tir.kind = "threadIdx.x", tir.loop = "j"}
// CHECK: } {tir.kind = "blockIdx.x", tir.loop = "i"}
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
    "schedule.bind"(%main) {loop = "i", thread = "blockIdx.x"} : (!transform.any_op) -> ()
    "schedule.bind"(%main) {loop = "j", thread = "threadIdx.x"} : (!transform.any_op) -> ()
    transform.yield
  }
}
