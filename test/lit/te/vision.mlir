// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// The candidates of a class are a heap. The first one is taken again and again, and compared with those that are chosen until one suppresses
// it.
// CHECK-LABEL: func.func private @fused_vision_all_class_non_max_suppression(
// CHECK-SAME: %[[B:\w+]]: index {relay.symbol = "b"}, %[[N:\w+]]: index {relay.symbol = "n"}) -> (tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>)
// CHECK-DAG: tensor.empty(%[[N]]) : tensor<?x5xf32, ["n"]>
// CHECK-DAG: tensor.empty(%[[N]]) : tensor<?xf32, ["n"]>
// CHECK-DAG: tensor.empty(%[[N]]) : tensor<?xi64, ["n"]>
// CHECK: scf.for {{.*}} to %[[B]]
// CHECK: arith.cmpf ogt
// CHECK: scf.while
// CHECK: scf.while {{.*}} : (index, i1) -> (index, i1)
// CHECK: arith.divf
// CHECK: scf.if
func.func @main(%boxes: tensor<?x?x4xf32, ["b", "n"]>, %scores: tensor<?x3x?xf32, ["b", "n"]>, %most: tensor<i64>, %t: tensor<f32>) -> (tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>) {
  %0:2 = "relay.vision_all_class_non_max_suppression"(%boxes, %scores, %most, %t, %t) : (tensor<?x?x4xf32, ["b", "n"]>, tensor<?x3x?xf32, ["b", "n"]>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>)
  return %0#0, %0#1 : tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>
}
