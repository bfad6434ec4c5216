// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The windows give the shape; ceil_mode counts a last one that hangs over.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_max_pool2d"(%arg0){{.*}} -> tensor<1x3x5x6xf32>
// CHECK-NEXT: "relay.nn_max_pool2d"(%arg0){{.*}} -> tensor<1x3x5x5xf32>
// CHECK-NEXT: "relay.nn_max_pool2d"(%arg0){{.*}} -> tensor<1x3x4x5xf32>
// CHECK-NEXT: "relay.nn_avg_pool2d"(%arg0){{.*}} -> tensor<1x3x8x13xf32>
// CHECK-NEXT: "relay.nn_avg_pool2d"(%arg0){{.*}} -> tensor<1x3x10x13xf32>
func.func @main(%x: tensor<1x3x10x13xf32>) {
  %0 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x3x10x13xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 3, 3>, strides = array<i64: 2, 3>, ceil_mode = true} : (tensor<1x3x10x13xf32>) -> tensor<?x?x?x?xf32>
  %2 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 2, 2>, strides = array<i64: 3, 3>, padding = array<i64: 2, 1, 2, 1>, ceil_mode = true} : (tensor<1x3x10x13xf32>) -> tensor<?x?x?x?xf32>
  %3 = "relay.nn_avg_pool2d"(%x) {pool_size = array<i64: 3>, dilation = array<i64: 2, 1>, padding = array<i64: 1, 1>} : (tensor<1x3x10x13xf32>) -> tensor<?x?x?x?xf32>
  %4 = "relay.nn_avg_pool2d"(%x) {pool_size = array<i64: 3, 2>, padding = array<i64: 0, 1, 2, 0>, count_include_pad = true} : (tensor<1x3x10x13xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// One and three axes.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_max_pool1d"(%arg0){{.*}} -> tensor<2x3x5xi8>
// CHECK-NEXT: "relay.nn_max_pool3d"(%arg1){{.*}} -> tensor<1x2x6x5x4xf16>
// CHECK-NEXT: "relay.nn_avg_pool3d"(%arg1){{.*}} -> tensor<1x2x3x2x4xf16>
func.func @main(%x: tensor<2x3x17xi8>, %y: tensor<1x2x7x6x5xf16>) {
  %0 = "relay.nn_max_pool1d"(%x) {pool_size = array<i64: 4>, strides = array<i64: 3>} : (tensor<2x3x17xi8>) -> tensor<?x?x?xi8>
  %1 = "relay.nn_max_pool3d"(%y) {pool_size = array<i64: 2, 2, 2>} : (tensor<1x2x7x6x5xf16>) -> tensor<?x?x?x?x?xf16>
  %2 = "relay.nn_avg_pool3d"(%y) {pool_size = array<i64: 2, 3, 2>, strides = array<i64: 2, 2, 1>} : (tensor<1x2x7x6x5xf16>) -> tensor<?x?x?x?x?xf16>
  return
}

// -----

// Layouts, channels blocked or last.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_max_pool2d"(%arg0){{.*}} -> tensor<1x8x11x8xf32>
// CHECK-NEXT: "relay.nn_avg_pool2d"(%arg1){{.*}} -> tensor<1x2x8x11x4xf32>
// CHECK-NEXT: "relay.nn_global_avg_pool2d"(%arg0){{.*}} -> tensor<1x1x1x8xf32>
// CHECK-NEXT: "relay.nn_global_max_pool2d"(%arg1){{.*}} -> tensor<1x2x1x1x4xf32>
// CHECK-NEXT: "relay.nn_adaptive_avg_pool2d"(%arg1){{.*}} -> tensor<1x2x3x3x4xf32>
func.func @main(%x: tensor<1x10x12x8xf32>, %y: tensor<1x2x10x12x4xf32>) {
  %0 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 3, 2>, layout = "NHWC"} : (tensor<1x10x12x8xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.nn_avg_pool2d"(%y) {pool_size = array<i64: 3, 2>, layout = "NCHW4c"} : (tensor<1x2x10x12x4xf32>) -> tensor<?x?x?x?x?xf32>
  %2 = "relay.nn_global_avg_pool2d"(%x) {layout = "NHWC"} : (tensor<1x10x12x8xf32>) -> tensor<?x?x?x?xf32>
  %3 = "relay.nn_global_max_pool2d"(%y) {layout = "NCHW4c"} : (tensor<1x2x10x12x4xf32>) -> tensor<?x?x?x?x?xf32>
  %4 = "relay.nn_adaptive_avg_pool2d"(%y) {output_size = array<i64: 3>, layout = "NCHW4c"} : (tensor<1x2x10x12x4xf32>) -> tensor<?x?x?x?x?xf32>
  return
}

// -----

// The size of an adaptive pooling is given; without it, it is that of the data.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_adaptive_max_pool2d"(%arg0){{.*}} -> tensor<1x3x5x2xf32>
// CHECK-NEXT: "relay.nn_adaptive_avg_pool2d"(%arg0){{.*}} -> tensor<1x3x?x13xf32, ["arg0_2"]>
// CHECK-NEXT: "relay.nn_global_avg_pool2d"(%arg0){{.*}} -> tensor<1x3x1x1xf32>
func.func @main(%x: tensor<1x3x?x13xf32>) {
  %0 = "relay.nn_adaptive_max_pool2d"(%x) {output_size = array<i64: 5, 2>} : (tensor<1x3x?x13xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.nn_adaptive_avg_pool2d"(%x) : (tensor<1x3x?x13xf32>) -> tensor<?x?x?x?xf32>
  %2 = "relay.nn_global_avg_pool2d"(%x) : (tensor<1x3x?x13xf32>) -> tensor<?x?x?x?xf32>
  return
}
