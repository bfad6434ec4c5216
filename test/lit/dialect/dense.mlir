// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// Products of matrices; leading dimensions are rows.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_dense"(%arg0, %arg1){{.*}} -> tensor<2x5x7xf32>
// CHECK-NEXT: "relay.nn_matmul"(%arg2, %arg3){{.*}} -> tensor<5x3xf32>
// CHECK-NEXT: "relay.nn_matmul"(%arg0, %arg3){{.*}} -> tensor<2x5x3xf32>
// CHECK-NEXT: "relay.nn_matmul"(%arg0, %arg1){{.*}} -> tensor<2x5x7xf32>
func.func @main(%x: tensor<2x5x8xf32>, %w: tensor<7x8xf32>, %a: tensor<8x5xf32>, %b: tensor<8x3xf32>) {
  %0 = "relay.nn_dense"(%x, %w) {units = 7 : i64} : (tensor<2x5x8xf32>, tensor<7x8xf32>) -> tensor<?x?x?xf32>
  %1 = "relay.nn_matmul"(%a, %b) {transpose_a = true} : (tensor<8x5xf32>, tensor<8x3xf32>) -> tensor<?x?xf32>
  %2 = "relay.nn_matmul"(%x, %b) : (tensor<2x5x8xf32>, tensor<8x3xf32>) -> tensor<?x?x?xf32>
  %3 = "relay.nn_matmul"(%x, %w) {transpose_b = true} : (tensor<2x5x8xf32>, tensor<7x8xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// Products for each entry of a batch.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_batch_matmul"(%arg0, %arg1){{.*}} -> tensor<4x5x7xf32>
// CHECK-NEXT: "relay.nn_batch_matmul"(%arg0, %arg2){{.*}} -> tensor<4x5x7xf32>
// CHECK-NEXT: "relay.nn_batch_matmul"(%arg0, %arg1){{.*}} -> tensor<4x5x7xf64>
func.func @main(%a: tensor<4x5x8xf32>, %b: tensor<4x7x8xf32>, %one: tensor<1x8x7xf32>) {
  %0 = "relay.nn_batch_matmul"(%a, %b) : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<?x?x?xf32>
  %1 = "relay.nn_batch_matmul"(%a, %one) {transpose_b = false} : (tensor<4x5x8xf32>, tensor<1x8x7xf32>) -> tensor<?x?x?xf32>
  %2 = "relay.nn_batch_matmul"(%a, %b) {out_dtype = "float64"} : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<?x?x?xf64>
  return
}

// -----

// Dimensions that are not known.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_dense"(%arg0, %arg1){{.*}} -> tensor<?x9xi32, ["arg0_0"]>
// CHECK-NEXT: "relay.nn_dense"(%arg0, %arg1){{.*}} -> tensor<?x9xi8, ["arg0_0"]>
func.func @main(%x: tensor<?x8xi8>, %w: tensor<?x?xi8>) {
  %0 = "relay.nn_dense"(%x, %w) {out_dtype = "int32"} : (tensor<?x8xi8>, tensor<?x?xi8>) -> tensor<?x?xi32>
  %1 = "relay.nn_dense"(%x, %w) {units = 9 : i64} : (tensor<?x8xi8>, tensor<?x?xi8>) -> tensor<?x?xi8>
  return
}

// -----

// A bias along an axis.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_bias_add"(%arg0, %arg1){{.*}} -> tensor<2x3x4xf32>
// CHECK-NEXT: "relay.nn_bias_add"(%arg0, %arg2){{.*}} -> tensor<2x3x4xf32>
func.func @main(%x: tensor<2x3x4xf32>, %b: tensor<3xf32>, %c: tensor<?xf32>) {
  %0 = "relay.nn_bias_add"(%x, %b) : (tensor<2x3x4xf32>, tensor<3xf32>) -> tensor<?x?x?xf32>
  %1 = "relay.nn_bias_add"(%x, %c) {axis = -1 : i64} : (tensor<2x3x4xf32>, tensor<?xf32>) -> tensor<?x?x?xf32>
  return
}
