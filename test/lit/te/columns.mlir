// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// The places of a block are reduced; by a step of 2 every other one of them is in no block.
// CHECK: func.func private @fused_col2im(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins({{.*}} : tensor<3xf32>) outs({{.*}} : tensor<1x2x7xf32>)
// CHECK: arith.floordivsi
// CHECK: arith.cmpi eq
// CHECK: arith.cmpi ult
// CHECK: tensor.extract {{.*}} : tensor<1x2x3x3xf32>
func.func @main(%x: tensor<1x2x3x3xf32>) -> tensor<1x2x7xf32> {
  %0 = "relay.nn_col2im"(%x) {image_shape = array<i64: 7>, strides = array<i64: 2>} : (tensor<1x2x3x3xf32>) -> tensor<1x2x7xf32>
  return %0 : tensor<1x2x7xf32>
}

// -----

// The lowest position of an element that is the largest of its window.
// CHECK: func.func private @fused_max_pool_indices(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins({{.*}} : tensor<3xf32>, tensor<1x2x7xf32>) outs({{.*}} : tensor<1x2x7xi64>)
// CHECK: arith.cmpf oeq
// CHECK: arith.minsi {{.*}} : i64
func.func @main(%x: tensor<1x2x9xf32>, %y: tensor<1x2x7xf32>) -> tensor<1x2x7xi64> {
  %0 = "relay.nn_max_pool_indices"(%x, %y) {pool_size = array<i64: 3>, layout = "NCW"} : (tensor<1x2x9xf32>, tensor<1x2x7xf32>) -> tensor<1x2x7xi64>
  return %0 : tensor<1x2x7xi64>
}
