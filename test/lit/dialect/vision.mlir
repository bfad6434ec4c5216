// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// There is room for every box of every class.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}}:2 = "relay.vision_all_class_non_max_suppression"{{.*}} -> (tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>)
func.func @main(%boxes: tensor<?x?x4xf32, ["b", "n"]>, %scores: tensor<?x3x?xf32, ["b", "n"]>, %most: tensor<i64>, %t: tensor<f32>) {
  %0:2 = "relay.vision_all_class_non_max_suppression"(%boxes, %scores, %most, %t, %t) : (tensor<?x?x4xf32, ["b", "n"]>, tensor<?x3x?xf32, ["b", "n"]>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<?x?xi64>, tensor<?xi64>)
  return
}
