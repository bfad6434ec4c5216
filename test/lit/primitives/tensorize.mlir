// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: tensorize(tensor_intrin=unknown, loop=k): expected a tensor intrinsic that is registered, out of {{.*}}, found 'unknown'
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
    "schedule.tensorize"(%main) {loop = "k", tensor_intrin = "unknown"} : (!transform.any_op) -> ()
    transform.yield
  }
}
