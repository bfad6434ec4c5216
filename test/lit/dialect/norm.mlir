// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The type of the data; vectors along one axis.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_batch_norm"(%arg0, %arg1, %arg1, %arg1, %arg1){{.*}} -> (tensor<2x6x4x?xf32, ["arg0_3"]>, tensor<6xf32>, tensor<6xf32>)
// CHECK-NEXT: "relay.nn_layer_norm"(%arg0, %arg2, %arg2){{.*}} -> tensor<2x6x4x?xf32, ["arg0_3"]>
// CHECK-NEXT: "relay.nn_layer_norm"(%arg0, %arg1, %arg1){{.*}} -> tensor<2x6x4x?xf32, ["arg0_3"]>
// CHECK-NEXT: "relay.nn_rms_norm"(%arg0, %arg2){{.*}} -> tensor<2x6x4x?xf32, ["arg0_3"]>
// CHECK-NEXT: "relay.nn_instance_norm"(%arg0, %arg1, %arg1){{.*}} -> tensor<2x6x4x?xf32, ["arg0_3"]>
// CHECK-NEXT: "relay.nn_group_norm"(%arg0, %arg1, %arg1){{.*}} -> tensor<2x6x4x?xf32, ["arg0_3"]>
// CHECK-NEXT: "relay.nn_l2_normalize"(%arg0){{.*}} -> tensor<2x6x4x?xf32, ["arg0_3"]>
// CHECK-NEXT: "relay.nn_lrn"(%arg0){{.*}} -> tensor<2x6x4x?xf32, ["arg0_3"]>
func.func @main(%x: tensor<2x6x4x?xf32>, %c: tensor<6xf32>, %u: tensor<?xf32>) {
  %0:3 = "relay.nn_batch_norm"(%x, %c, %c, %c, %c) : (tensor<2x6x4x?xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<?x?x?x?xf32>, tensor<?xf32>, tensor<?xf32>)
  %1 = "relay.nn_layer_norm"(%x, %u, %u) {epsilon = 1.000000e-06} : (tensor<2x6x4x?xf32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?x?x?x?xf32>
  %2 = "relay.nn_layer_norm"(%x, %c, %c) {axis = 1 : i64, scale = false} : (tensor<2x6x4x?xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<?x?x?x?xf32>
  %3 = "relay.nn_rms_norm"(%x, %u) : (tensor<2x6x4x?xf32>, tensor<?xf32>) -> tensor<?x?x?x?xf32>
  %4 = "relay.nn_instance_norm"(%x, %c, %c) : (tensor<2x6x4x?xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<?x?x?x?xf32>
  %5 = "relay.nn_group_norm"(%x, %c, %c) {num_groups = 3 : i64} : (tensor<2x6x4x?xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<?x?x?x?xf32>
  %6 = "relay.nn_l2_normalize"(%x) {eps = 1.000000e-12, axis = array<i64: 1, 2>} : (tensor<2x6x4x?xf32>) -> tensor<?x?x?x?xf32>
  %7 = "relay.nn_lrn"(%x) {size = 3 : i64} : (tensor<2x6x4x?xf32>) -> tensor<?x?x?x?xf32>
  return
}
