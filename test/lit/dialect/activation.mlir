// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The type of the data.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_relu"(%arg0){{.*}} -> tensor<2x?x4xf32, ["arg0_1"]>
// CHECK-NEXT: "relay.nn_leaky_relu"(%arg0){{.*}} -> tensor<2x?x4xf32, ["arg0_1"]>
// CHECK-NEXT: "relay.nn_prelu"(%arg0, %arg1){{.*}} -> tensor<2x?x4xf32, ["arg0_1"]>
// CHECK-NEXT: "relay.nn_softmax"(%arg0){{.*}} -> tensor<2x?x4xf32, ["arg0_1"]>
// CHECK-NEXT: "relay.nn_log_softmax"(%arg0){{.*}} -> tensor<2x?x4xf32, ["arg0_1"]>
// CHECK-NEXT: "relay.nn_dropout"(%arg0){{.*}} -> (tensor<2x?x4xf32, ["arg0_1"]>, tensor<2x?x4xf32, ["arg0_1"]>)
func.func @main(%x: tensor<2x?x4xf32>, %a: tensor<4xf32>) {
  %0 = "relay.nn_relu"(%x) : (tensor<2x?x4xf32>) -> tensor<?x?x?xf32>
  %1 = "relay.nn_leaky_relu"(%x) {alpha = 0.1} : (tensor<2x?x4xf32>) -> tensor<?x?x?xf32>
  %2 = "relay.nn_prelu"(%x, %a) {axis = 2 : i64} : (tensor<2x?x4xf32>, tensor<4xf32>) -> tensor<?x?x?xf32>
  %3 = "relay.nn_softmax"(%x) {axis = 1 : i64} : (tensor<2x?x4xf32>) -> tensor<?x?x?xf32>
  %4 = "relay.nn_log_softmax"(%x) : (tensor<2x?x4xf32>) -> tensor<?x?x?xf32>
  %5:2 = "relay.nn_dropout"(%x) {rate = 0.1} : (tensor<2x?x4xf32>) -> (tensor<?x?x?xf32>, tensor<?x?x?xf32>)
  return
}
