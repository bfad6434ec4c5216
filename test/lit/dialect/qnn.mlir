// RUN: relayc-opt %s --passes infer-type | filecheck %s

// Integers and real numbers have one shape; products are of int32.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x3x8x8xui8>, %r: tensor<2x3x8x8xf32>, %i: tensor<2x6x6x6xi32>, %w: tensor<6x3x3x3xi8>, %s: tensor<f32>, %z: tensor<ui8>,
    %ss: tensor<6xf32>, %x1: tensor<2x3x8xui8>, %w1: tensor<6x3x3xi8>, %x3: tensor<2x3x4x4x4xui8>, %w3: tensor<6x3x3x3x3xi8>,
    %v1: tensor<3x6x3xi8>, %v: tensor<3x6x3x3xi8>, %v3: tensor<3x6x3x3x3xi8>, %a: tensor<4x5xui8>, %d: tensor<6x5xi8>, %m: tensor<5x6xi8>,
    %b: tensor<2x4x5xui8>, %c: tensor<2x6x5xi8>, %h: tensor<3x8x8xi8>) {
// CHECK: "relay.qnn_quantize"({{.*}} -> tensor<2x3x8x8xui8>
  %0 = "relay.qnn_quantize"(%r, %s, %z) {out_dtype = "uint8"} : (tensor<2x3x8x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_dequantize"({{.*}} -> tensor<2x3x8x8xf32>
  %1 = "relay.qnn_dequantize"(%x, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xf32>
// CHECK: "relay.qnn_requantize"({{.*}} -> tensor<2x6x6x6xi8>
  %2 = "relay.qnn_requantize"(%i, %ss, %z, %s, %z) {axis = 1 : i64} : (tensor<2x6x6x6xi32>, tensor<6xf32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x6x6x6xi8>
// CHECK: "relay.qnn_conv1d"({{.*}} -> tensor<2x6x6xi32>
  %3 = "relay.qnn_conv1d"(%x1, %w1, %z, %z, %s, %s) : (tensor<2x3x8xui8>, tensor<6x3x3xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<2x6x6xi32>
// CHECK: "relay.qnn_conv2d"({{.*}} -> tensor<2x6x6x6xi32>
  %4 = "relay.qnn_conv2d"(%x, %w, %z, %z, %s, %ss) : (tensor<2x3x8x8xui8>, tensor<6x3x3x3xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<6xf32>) -> tensor<2x6x6x6xi32>
// CHECK: "relay.qnn_conv3d"({{.*}} -> tensor<2x6x2x2x2xi32>
  %5 = "relay.qnn_conv3d"(%x3, %w3, %z, %z, %s, %s) : (tensor<2x3x4x4x4xui8>, tensor<6x3x3x3x3xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<2x6x2x2x2xi32>
// CHECK: "relay.qnn_conv1d_transpose"({{.*}} -> tensor<2x6x10xi32>
  %6 = "relay.qnn_conv1d_transpose"(%x1, %v1, %z, %z, %s, %s) : (tensor<2x3x8xui8>, tensor<3x6x3xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<2x6x10xi32>
// CHECK: "relay.qnn_conv2d_transpose"({{.*}} -> tensor<2x6x10x10xi32>
  %7 = "relay.qnn_conv2d_transpose"(%x, %v, %z, %z, %s, %s) : (tensor<2x3x8x8xui8>, tensor<3x6x3x3xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<2x6x10x10xi32>
// CHECK: "relay.qnn_conv3d_transpose"({{.*}} -> tensor<2x6x6x6x6xi32>
  %8 = "relay.qnn_conv3d_transpose"(%x3, %v3, %z, %z, %s, %s) : (tensor<2x3x4x4x4xui8>, tensor<3x6x3x3x3xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<2x6x6x6x6xi32>
// CHECK: "relay.qnn_dense"({{.*}} -> tensor<4x6xi32>
  %9 = "relay.qnn_dense"(%a, %d, %z, %z, %s, %s) : (tensor<4x5xui8>, tensor<6x5xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<4x6xi32>
// CHECK: "relay.qnn_matmul"({{.*}} -> tensor<4x6xi32>
  %10 = "relay.qnn_matmul"(%a, %m, %z, %z, %s, %s) : (tensor<4x5xui8>, tensor<5x6xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<4x6xi32>
// CHECK: "relay.qnn_batch_matmul"({{.*}} -> tensor<2x4x6xi32>
  %11 = "relay.qnn_batch_matmul"(%b, %c, %z, %z, %s, %s) : (tensor<2x4x5xui8>, tensor<2x6x5xi8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<2x4x6xi32>
// CHECK: "relay.qnn_add"({{.*}} -> tensor<2x3x8x8xui8>
  %12 = "relay.qnn_add"(%x, %h, %s, %z, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<3x8x8xi8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_subtract"({{.*}} -> tensor<2x3x8x8xui8>
  %13 = "relay.qnn_subtract"(%x, %h, %s, %z, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<3x8x8xi8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_mul"({{.*}} -> tensor<2x3x8x8xui8>
  %14 = "relay.qnn_mul"(%x, %h, %s, %z, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<3x8x8xi8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_tanh"({{.*}} -> tensor<2x3x8x8xui8>
  %15 = "relay.qnn_tanh"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_exp"({{.*}} -> tensor<2x3x8x8xui8>
  %16 = "relay.qnn_exp"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_sqrt"({{.*}} -> tensor<2x3x8x8xui8>
  %17 = "relay.qnn_sqrt"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_rsqrt"({{.*}} -> tensor<2x3x8x8xui8>
  %18 = "relay.qnn_rsqrt"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_erf"({{.*}} -> tensor<2x3x8x8xui8>
  %19 = "relay.qnn_erf"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_sigmoid"({{.*}} -> tensor<2x3x8x8xui8>
  %20 = "relay.qnn_sigmoid"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_log"({{.*}} -> tensor<2x3x8x8xui8>
  %21 = "relay.qnn_log"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_abs"({{.*}} -> tensor<2x3x8x8xui8>
  %22 = "relay.qnn_abs"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_hardswish"({{.*}} -> tensor<2x3x8x8xui8>
  %23 = "relay.qnn_hardswish"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_softmax"({{.*}} -> tensor<2x3x8x8xui8>
  %24 = "relay.qnn_softmax"(%x, %s, %z, %s, %z) : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_leaky_relu"({{.*}}alpha = 3.000000e-01{{.*}} -> tensor<2x3x8x8xui8>
  %25 = "relay.qnn_leaky_relu"(%x, %s, %z, %s, %z) {alpha = 0.3 : f64} : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x8x8xui8>
// CHECK: "relay.qnn_avg_pool2d"({{.*}} -> tensor<2x2x4x8xui8>
  %26 = "relay.qnn_avg_pool2d"(%x, %s, %z, %s, %z) {pool_size = array<i64: 2, 2>, strides = array<i64: 1, 2>} : (tensor<2x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x2x4x8xui8>
  return
}
