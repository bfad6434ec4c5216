// RUN: relayc-opt %s --passes schedule-kernels | filecheck %s

// A kernel on flat memory takes its symbols behind its tensors; what it costs is an expression. The declaration that programs call keeps the
// types, and the symbols.
// CHECK: func.func private @double.te(tensor<?x3xf32, ["n"]>, index {relay.symbol = "n"}) -> tensor<?x3xf32, ["n"]> attributes {relay.tir = @double}
// CHECK: func.func private @double(%{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>, %[[N:.*]]: index {relay.symbol = "n"}) attributes
// CHECK-SAME: relay.bytes = "24*n"
// CHECK-SAME: relay.flops = "3*n"
// CHECK-SAME: relay.tensors = (tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32, ["n"]>
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]] = arith.muli %arg2,
// CHECK: call @double.te(%arg0, %arg2)
// CHECK: %[[Y:.*]] = tensor.cast %arg1
// CHECK: call @double.te(%[[Y]], %[[M]])
#map = affine_map<(i, j) -> (i, j)>
func.func private @double(%x: tensor<?x3xf32, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<?x3xf32, ["n"]> {
  %0 = tensor.empty(%n) : tensor<?x3xf32, ["n"]>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x3xf32, ["n"]>) outs(%0 : tensor<?x3xf32, ["n"]>) {
  ^bb0(%a: f32, %b: f32):
    %2 = arith.addf %a, %a : f32
    linalg.yield %2 : f32
  } -> tensor<?x3xf32, ["n"]>
  return %1 : tensor<?x3xf32, ["n"]>
}
func.func @main(%x: tensor<?x3xf32, ["n"]>, %y: tensor<?x3xf32, ["2*n"]>, %n: index {relay.symbol = "n"}) -> (tensor<?x3xf32, ["n"]>, tensor<?x3xf32, ["2*n"]>) {
  %two = arith.constant 2 : index
  %m = arith.muli %n, %two : index
  %0 = call @double(%x, %n) : (tensor<?x3xf32, ["n"]>, index) -> tensor<?x3xf32, ["n"]>
  %u = tensor.cast %y : tensor<?x3xf32, ["2*n"]> to tensor<?x3xf32, ["n"]>
  %1 = call @double(%u, %m) : (tensor<?x3xf32, ["n"]>, index) -> tensor<?x3xf32, ["n"]>
  %v = tensor.cast %1 : tensor<?x3xf32, ["n"]> to tensor<?x3xf32, ["2*n"]>
  return %0, %v : tensor<?x3xf32, ["n"]>, tensor<?x3xf32, ["2*n"]>
}
