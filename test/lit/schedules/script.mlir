// RUN: relayc-opt %s --passes te-to-blocks,apply-schedule --print-script | filecheck %s

// A reduction whose loop was split: what the block does, and where it ends.
// CHECK: from relayc.tir import T
// CHECK: @T.prim_func
// CHECK-NEXT: def rows(x: T.Buffer(("n", 10), "float32"), y: T.Buffer(("n",), "float32")):
// CHECK-NEXT:     n = T.int64()
// CHECK-NEXT:     for i, k_0, k_1 in T.grid(n, 3, 4):
// CHECK-NEXT:         with T.block("y"):
// CHECK-NEXT:             vi = T.axis.spatial(n, i)
// CHECK-NEXT:             vk = T.axis.reduce(10, k_0 * 4 + k_1)
// CHECK-NEXT:             T.where(k_0 * 4 + k_1 < 10)
// CHECK-NEXT:             with T.init():
// CHECK-NEXT:                 y[vi] = 0.0
// CHECK-NEXT:             y[vi] = y[vi] + T.exp(x[vi, vk]) * 0.5
module attributes {transform.with_named_sequence} {
  func.func @rows(%x: tensor<?x10xf32, ["n"]> {relay.name = "x"}, %n: index {relay.symbol = "n"}) -> tensor<?xf32, ["n"]> {
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.5 : f32
    %e = tensor.empty(%n) : tensor<?xf32, ["n"]>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
                         iterator_types = ["parallel", "reduction"], tir.axes = ["i", "k"]}
      ins(%x : tensor<?x10xf32, ["n"]>) outs(%f : tensor<?xf32, ["n"]>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      %c = arith.mulf %b, %half : f32
      %d = arith.addf %o, %c : f32
      linalg.yield %d : f32
    } -> tensor<?xf32, ["n"]> loc("y")
    return %0 : tensor<?xf32, ["n"]>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %f = transform.structured.match ops{["func.func"]} attributes {sym_name = "rows"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.split"(%f) {loop = "k", factors = [unit, 4]} : (!transform.any_op) -> ()
    transform.yield
  }
}
