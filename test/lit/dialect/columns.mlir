// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// CHECK-LABEL: func.func @blocks
// CHECK-NEXT: "relay.nn_col2im"{{.*}} -> tensor<?x4x?x6xf32, ["n", "h"]>
func.func @blocks(%x: tensor<?x4x3x2x?x5xf32, ["n", "h - 2"]>) {
  %0 = "relay.nn_col2im"(%x) {image_shape = ["h", 6]} : (tensor<?x4x3x2x?x5xf32, ["n", "h - 2"]>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK-LABEL: func.func @positions
// CHECK-NEXT: "relay.nn_max_pool_indices"{{.*}} -> tensor<1x4x7x?xi64, ["w - 1"]>
func.func @positions(%x: tensor<1x4x8x?xf32, ["w"]>, %y: tensor<1x4x7x?xf32, ["w - 1"]>) {
  %0 = "relay.nn_max_pool_indices"(%x, %y) {pool_size = array<i64: 2>} : (tensor<1x4x8x?xf32, ["w"]>, tensor<1x4x7x?xf32, ["w - 1"]>) -> tensor<?x?x?x?xi64>
  return
}
