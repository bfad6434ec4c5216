// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// The candidates of a class are gathered and sorted, and each is compared with those that are chosen until one suppresses it.
// CHECK-LABEL: func.func private @fused_vision_all_class_non_max_suppression(
// CHECK-SAME: %[[B:\w+]]: index {relay.symbol = "b"}, %[[N:\w+]]: index {relay.symbol = "n"}) -> (tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>)
// CHECK-DAG: tensor.empty(%[[N]]) : tensor<2x?xi64, ["n"]>
// CHECK-DAG: tensor.empty(%[[N]]) : tensor<?x5xf32, ["n"]>
// CHECK: scf.for {{.*}} to %[[B]]
// CHECK: arith.cmpf ogt
// CHECK: math.ctlz
// CHECK: scf.if
// CHECK: scf.while
// CHECK: arith.divf
func.func @main(%boxes: tensor<?x?x4xf32, ["b", "n"]>, %scores: tensor<?x3x?xf32, ["b", "n"]>, %most: tensor<i64>, %t: tensor<f32>) -> (tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>) {
  %0:2 = "relay.vision_all_class_non_max_suppression"(%boxes, %scores, %most, %t, %t) : (tensor<?x?x4xf32, ["b", "n"]>, tensor<?x3x?xf32, ["b", "n"]>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>)
  return %0#0, %0#1 : tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>
}
