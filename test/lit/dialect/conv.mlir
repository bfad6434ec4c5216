// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The window sizes and the padding give the shape.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x16x30x27xf32>
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x16x32x31xf32>
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x16x16x10xf32>
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x16x28x23xf32>
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x16x30x27xf64>
func.func @main(%x: tensor<1x3x32x31xf32>, %w: tensor<16x3x3x5xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x3x32x31xf32>, tensor<16x3x3x5xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.nn_conv2d"(%x, %w) {padding = array<i64: 1, 2>} : (tensor<1x3x32x31xf32>, tensor<16x3x3x5xf32>) -> tensor<?x?x?x?xf32>
  %2 = "relay.nn_conv2d"(%x, %w) {strides = array<i64: 2, 3>, padding = array<i64: 1, 0, 0, 2>} : (tensor<1x3x32x31xf32>, tensor<16x3x3x5xf32>) -> tensor<?x?x?x?xf32>
  %3 = "relay.nn_conv2d"(%x, %w) {dilation = array<i64: 2>, channels = 16 : i64, kernel_size = array<i64: 3, 5>} : (tensor<1x3x32x31xf32>, tensor<16x3x3x5xf32>) -> tensor<?x?x?x?xf32>
  %4 = "relay.nn_conv2d"(%x, %w) {out_dtype = "float64"} : (tensor<1x3x32x31xf32>, tensor<16x3x3x5xf32>) -> tensor<?x?x?x?xf64>
  return
}

// -----

// One and three spatial axes.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_conv1d"(%arg0, %arg1){{.*}} -> tensor<2x6x10xf32>
// CHECK-NEXT: "relay.nn_conv3d"(%arg2, %arg3){{.*}} -> tensor<2x5x8x8x10xf16>
func.func @main(%x: tensor<2x4x20xf32>, %w: tensor<6x2x3xf32>, %y: tensor<2x4x8x9x10xf16>, %v: tensor<5x4x3x2x1xf16>) {
  %0 = "relay.nn_conv1d"(%x, %w) {groups = 2 : i64, strides = array<i64: 2>, padding = array<i64: 1, 1>} : (tensor<2x4x20xf32>, tensor<6x2x3xf32>) -> tensor<?x?x?xf32>
  %1 = "relay.nn_conv3d"(%y, %v) {padding = array<i64: 1, 0, 0, 1, 0, 0>} : (tensor<2x4x8x9x10xf16>, tensor<5x4x3x2x1xf16>) -> tensor<?x?x?x?x?xf16>
  return
}

// -----

// Layouts of data, weight and result.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x30x29x8xf32>
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg2){{.*}} -> tensor<1x30x29x6xf32>
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x8x30x29xf32>
func.func @main(%x: tensor<1x32x31x6xf32>, %w: tensor<3x3x6x8xf32>, %d: tensor<3x3x1x6xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"} : (tensor<1x32x31x6xf32>, tensor<3x3x6x8xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.nn_conv2d"(%x, %d) {data_layout = "NHWC", kernel_layout = "HWIO", groups = 6 : i64} : (tensor<1x32x31x6xf32>, tensor<3x3x1x6xf32>) -> tensor<?x?x?x?xf32>
  %2 = "relay.nn_conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO", out_layout = "NCHW"} : (tensor<1x32x31x6xf32>, tensor<3x3x6x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// Blocked channels; the weight stays as it is.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x4x8x8x8xf32>
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<1x2x8x8x16xf32>
// CHECK-NEXT: "relay.nn_conv2d"(%arg2, %arg3){{.*}} -> tensor<1x2x32x31x8xf32>
func.func @main(%x: tensor<1x2x8x8x8xf32>, %w: tensor<32x16x1x1xf32>, %y: tensor<1x3x32x31xf32>, %v: tensor<16x3x1x1xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW8c"} : (tensor<1x2x8x8x8xf32>, tensor<32x16x1x1xf32>) -> tensor<?x?x?x?x?xf32>
  %1 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW8c", out_layout = "NCHW16c"} : (tensor<1x2x8x8x8xf32>, tensor<32x16x1x1xf32>) -> tensor<?x?x?x?x?xf32>
  %2 = "relay.nn_conv2d"(%y, %v) {out_layout = "NCHW8c"} : (tensor<1x3x32x31xf32>, tensor<16x3x1x1xf32>) -> tensor<?x?x?x?x?xf32>
  return
}

// -----

// A dimension that is not known stays so, and nothing else.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_conv2d"(%arg0, %arg1){{.*}} -> tensor<?x16x?x29xf32, ["arg0_0", "arg0_2 - 2"]>
func.func @main(%x: tensor<?x3x?x31xf32>, %w: tensor<16x3x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<?x3x?x31xf32>, tensor<16x3x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// Transposed: the weight holds the input channels first.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_conv2d_transpose"(%arg0, %arg1){{.*}} -> tensor<1x4x20x17xf32>
// CHECK-NEXT: "relay.nn_conv2d_transpose"(%arg0, %arg1){{.*}} -> tensor<1x12x14x11xf32>
// CHECK-NEXT: "relay.nn_conv1d_transpose"(%arg2, %arg3){{.*}} -> tensor<1x4x29xf32>
// CHECK-NEXT: "relay.nn_conv3d_transpose"(%arg4, %arg5){{.*}} -> tensor<1x4x8x8x8xf32>
func.func @main(%x: tensor<1x6x10x9xf32>, %w: tensor<6x4x3x3xf32>, %y: tensor<1x6x10xf32>, %v: tensor<6x4x2xf32>, %z: tensor<1x6x4x4x4xf32>, %u: tensor<6x4x2x2x2xf32>) {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, output_padding = array<i64: 1, 0>} : (tensor<1x6x10x9xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.nn_conv2d_transpose"(%x, %w) {dilation = array<i64: 2, 1>, groups = 3 : i64} : (tensor<1x6x10x9xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  %2 = "relay.nn_conv1d_transpose"(%y, %v) {strides = array<i64: 3>} : (tensor<1x6x10xf32>, tensor<6x4x2xf32>) -> tensor<?x?x?xf32>
  %3 = "relay.nn_conv3d_transpose"(%z, %u) {strides = array<i64: 2, 2, 2>} : (tensor<1x6x4x4x4xf32>, tensor<6x4x2x2x2xf32>) -> tensor<?x?x?x?x?xf32>
  return
}
