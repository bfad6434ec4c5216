// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.widening-into-pooling | filecheck %s --check-prefix OFF

// A pooling reads bytes, where nothing else reads them as floats.
// CHECK-LABEL: func.func @bytes
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.cast"
// CHECK-NEXT: "relay.nn_avg_pool2d"
// CHECK-NEXT: "relay.nn_relu"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @bytes
// OFF: "relay.cast"
// OFF-NEXT: "relay.yield"
func.func @bytes(%x: tensor<1x8x12x12xui8>) -> tensor<1x8x6x6xf32> {
  %0 = "relay.cast"(%x) {dtype = "float32"} : (tensor<1x8x12x12xui8>) -> tensor<1x8x12x12xf32>
  %1 = "relay.nn_avg_pool2d"(%0) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x8x12x12xf32>) -> tensor<1x8x6x6xf32>
  %2 = "relay.nn_relu"(%1) : (tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  return %2 : tensor<1x8x6x6xf32>
}

// Not of wider numbers, of more than a conversion, or for a product.
// CHECK-LABEL: func.func @others
// CHECK: "relay.cast"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.multiply"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.cast"
// CHECK-NEXT: "relay.yield"
func.func @others(%x: tensor<1x8x12x12xi16>, %y: tensor<1x8x12x12xui8>, %s: tensor<f32>, %z: tensor<4x8xi8>, %w: tensor<3x8xf32>)
    -> (tensor<1x8x6x6xf32>, tensor<1x8x6x6xf32>, tensor<4x3xf32>) {
  %0 = "relay.cast"(%x) {dtype = "float32"} : (tensor<1x8x12x12xi16>) -> tensor<1x8x12x12xf32>
  %1 = "relay.nn_avg_pool2d"(%0) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x8x12x12xf32>) -> tensor<1x8x6x6xf32>
  %2 = "relay.cast"(%y) {dtype = "float32"} : (tensor<1x8x12x12xui8>) -> tensor<1x8x12x12xf32>
  %3 = "relay.multiply"(%2, %s) : (tensor<1x8x12x12xf32>, tensor<f32>) -> tensor<1x8x12x12xf32>
  %4 = "relay.nn_avg_pool2d"(%3) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x8x12x12xf32>) -> tensor<1x8x6x6xf32>
  %5 = "relay.cast"(%z) {dtype = "float32"} : (tensor<4x8xi8>) -> tensor<4x8xf32>
  %6 = "relay.nn_dense"(%5, %w) {units = 3 : i64} : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32>
  return %1, %4, %6 : tensor<1x8x6x6xf32>, tensor<1x8x6x6xf32>, tensor<4x3xf32>
}

// Not of images of unknown heights.
// CHECK-LABEL: func.func @heights
// CHECK: "relay.cast"
// CHECK-NEXT: "relay.yield"
func.func @heights(%x: tensor<1x8x?x12xui8, ["h"]>) -> tensor<1x8x?x6xf32, ["h"]> {
  %0 = "relay.cast"(%x) {dtype = "float32"} : (tensor<1x8x?x12xui8, ["h"]>) -> tensor<1x8x?x12xf32, ["h"]>
  %1 = "relay.nn_avg_pool2d"(%0) {pool_size = array<i64: 1, 2>, strides = array<i64: 1, 2>} : (tensor<1x8x?x12xf32, ["h"]>) -> tensor<1x8x?x6xf32, ["h"]>
  return %1 : tensor<1x8x?x6xf32, ["h"]>
}
