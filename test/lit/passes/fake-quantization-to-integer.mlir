// RUN: relayc-opt %s --passes fake-quantization-to-integer --split-input-file | filecheck %s

// A convolution between quantised tensors: the bias is a whole number of steps, and relu is a limit of the bytes.
// CHECK-LABEL: func.func @between
// CHECK: %[[CONV:.*]] = "relay.qnn_conv2d"(%arg0, %{{.*}}) {{.*}} -> tensor<1x2x4x5xi32>
// CHECK: %[[B:.*]] = "relay.constant"() {value = dense<10> : tensor<2x1x1xi32>}
// CHECK: %[[SUM:.*]] = "relay.add"(%[[CONV]], %[[B]])
// CHECK: %[[Y:.*]] = "relay.qnn_requantize"(%[[SUM]], %{{.*}}) {axis = 1 : i64, {{.*}}out_dtype = "uint8", rounding = "TONEVEN"}
// CHECK: %[[OUT:.*]] = "relay.clip"(%[[Y]]) {a_max = 2.550000e+02 : f64, a_min = 4.000000e+00 : f64}
// CHECK: return %[[OUT]]
func.func @between(%x: tensor<1x1x4x4xui8>) -> tensor<1x2x4x5xui8> {
  %w = "relay.constant"() {value = dense<[[[[1, 2]]], [[[3, 4]]]]> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %ws = "relay.constant"() {value = dense<[0.5, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "relay.constant"() {value = dense<[[[10.0]], [[20.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %four = "relay.constant"() {value = dense<4> : tensor<ui8>} : () -> tensor<ui8>
  %none = "relay.constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.qnn_dequantize"(%x, %two, %four) : (tensor<1x1x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xf32>
  %1 = "relay.qnn_dequantize"(%w, %ws, %none) {axis = 0 : i64} : (tensor<2x1x1x2xi8>, tensor<2xf32>, tensor<i8>) -> tensor<2x1x1x2xf32>
  %2 = "relay.nn_conv2d"(%0, %1) {padding = array<i64: 0, 1, 0, 1>} : (tensor<1x1x4x4xf32>, tensor<2x1x1x2xf32>) -> tensor<1x2x4x5xf32>
  %3 = "relay.add"(%2, %b) : (tensor<1x2x4x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x5xf32>
  %4 = "relay.nn_relu"(%3) : (tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  %5 = "relay.qnn_quantize"(%4, %one, %four) {out_dtype = "uint8", rounding = "TONEVEN"}
    : (tensor<1x2x4x5xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x5xui8>
  return %5 : tensor<1x2x4x5xui8>
}

// -----

// Weights that need more than 8 bits without their zero point are bytes as any tensor; a quantisation that rounds in Relay's way stays.
// CHECK-LABEL: func.func @wide
// CHECK: "relay.qnn_matmul"(%{{.*}}, %{{.*}}){{.*}} : (tensor<4x1xui8>, tensor<1x2xui8>, {{.*}}) -> tensor<4x2xi32>
// CHECK: "relay.qnn_dequantize"
// CHECK: "relay.qnn_quantize"
func.func @wide(%x: tensor<4x1xui8>) -> tensor<4x2xui8> {
  %w = "relay.constant"() {value = dense<[[1, 128]]> : tensor<1x2xui8>} : () -> tensor<1x2xui8>
  %none = "relay.constant"() {value = dense<0> : tensor<ui8>} : () -> tensor<ui8>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.qnn_dequantize"(%x, %one, %none) : (tensor<4x1xui8>, tensor<f32>, tensor<ui8>) -> tensor<4x1xf32>
  %1 = "relay.qnn_dequantize"(%w, %one, %none) : (tensor<1x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2xf32>
  %2 = "relay.nn_matmul"(%0, %1) : (tensor<4x1xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  %3 = "relay.qnn_quantize"(%2, %one, %none) {out_dtype = "uint8"} : (tensor<4x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<4x2xui8>
  return %3 : tensor<4x2xui8>
}

// -----

// The sum of two tensors, a function of one, and what takes the largest bytes of one scale.
// CHECK-LABEL: func.func @elements
// CHECK: %[[SUM:.*]] = "relay.qnn_add"(%arg0, %arg0, {{.*}}out_dtype = "uint8", {{.*}}rounding = "TONEVEN"}
// CHECK: %[[F:.*]] = "relay.qnn_sigmoid"(%[[SUM]], {{.*}}rounding = "TONEVEN"}
// CHECK: %[[POOL:.*]] = "relay.nn_max_pool2d"(%arg0) {{.*}} : (tensor<1x1x4x4xui8>) -> tensor<1x1x2x2xui8>
// CHECK: return %[[F]], %[[POOL]]
func.func @elements(%x: tensor<1x1x4x4xui8>) -> (tensor<1x1x4x4xui8>, tensor<1x1x2x2xui8>) {
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %z = "relay.constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "relay.qnn_dequantize"(%x, %two, %z) : (tensor<1x1x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xf32>
  %1 = "relay.add"(%0, %0) : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %2 = "relay.qnn_quantize"(%1, %two, %z) {out_dtype = "uint8", rounding = "TONEVEN"}
    : (tensor<1x1x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xui8>
  %3 = "relay.qnn_dequantize"(%2, %two, %z) : (tensor<1x1x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xf32>
  %4 = "relay.sigmoid"(%3) : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %5 = "relay.qnn_quantize"(%4, %two, %z) {out_dtype = "uint8", rounding = "TONEVEN"}
    : (tensor<1x1x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xui8>
  %6 = "relay.nn_max_pool2d"(%0) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  %7 = "relay.qnn_quantize"(%6, %two, %z) {out_dtype = "uint8", rounding = "TONEVEN"}
    : (tensor<1x1x2x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x2x2xui8>
  return %5, %7 : tensor<1x1x4x4xui8>, tensor<1x1x2x2xui8>
}

// -----

// Two tensors of a call, with reshapes and transposes between; and such of several scales, where the product stays.
// CHECK-LABEL: func.func @two
// CHECK: %[[K:.*]] = "relay.transpose"(%arg1){{.*}} : (tensor<1x2x5x4xui8>) -> tensor<1x2x4x5xui8>
// CHECK: %[[B:.*]] = "relay.reshape"(%[[K]]){{.*}} -> tensor<2x4x5xui8>
// CHECK: %[[SUM:.*]] = "relay.qnn_batch_matmul"(%arg0, %[[B]], {{.*}}) {{.*}} -> tensor<2x3x5xi32>
// CHECK: %[[ALL:.*]] = "relay.reshape"(%[[SUM]]){{.*}} -> tensor<1x2x3x5xi32>
// CHECK: %[[OUT:.*]] = "relay.qnn_requantize"(%[[ALL]]{{.*}} -> tensor<1x2x3x5xui8>
// CHECK: %[[OTHER:.*]] = "relay.nn_batch_matmul"({{.*}} -> tensor<2x3x5xf32>
// CHECK: return %[[OUT]], %[[OTHER]]
func.func @two(%a: tensor<2x3x4xui8>, %b: tensor<1x2x5x4xui8>, %v: tensor<4xf32>) -> (tensor<1x2x3x5xui8>, tensor<2x3x5xf32>) {
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %z = "relay.constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "relay.qnn_dequantize"(%a, %two, %z) : (tensor<2x3x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x4xf32>
  %1 = "relay.qnn_dequantize"(%b, %two, %z) : (tensor<1x2x5x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x5x4xf32>
  %2 = "relay.transpose"(%1) {axes = array<i64: 0, 1, 3, 2>} : (tensor<1x2x5x4xf32>) -> tensor<1x2x4x5xf32>
  %3 = "relay.reshape"(%2) {newshape = array<i64: 2, 4, 5>} : (tensor<1x2x4x5xf32>) -> tensor<2x4x5xf32>
  %4 = "relay.nn_batch_matmul"(%0, %3) {transpose_b = false} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %5 = "relay.reshape"(%4) {newshape = array<i64: 1, 2, 3, 5>} : (tensor<2x3x5xf32>) -> tensor<1x2x3x5xf32>
  %6 = "relay.qnn_quantize"(%5, %two, %z) {out_dtype = "uint8", rounding = "TONEVEN"}
    : (tensor<1x2x3x5xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2x3x5xui8>
  %7 = "relay.qnn_dequantize"(%a, %v, %z) {axis = 2 : i64} : (tensor<2x3x4xui8>, tensor<4xf32>, tensor<ui8>) -> tensor<2x3x4xf32>
  %8 = "relay.nn_batch_matmul"(%7, %3) {transpose_b = false} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %6, %8 : tensor<1x2x3x5xui8>, tensor<2x3x5xf32>
}

// -----

// A padding is of the integer that its number is quantised to: 4 + 6 / 2.
// CHECK-LABEL: func.func @padded
// CHECK: %[[SEVEN:.*]] = "relay.constant"() {value = dense<7> : tensor<ui8>}
// CHECK: %[[PAD:.*]] = "relay.nn_pad"(%arg0, %[[SEVEN]]) {pad_mode = "constant", pad_width = array<i64: 0, 1, 2, 0>} : (tensor<3x4xui8>, tensor<ui8>) -> tensor<4x6xui8>
// CHECK: return %[[PAD]]
func.func @padded(%x: tensor<3x4xui8>) -> tensor<4x6xui8> {
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %six = "relay.constant"() {value = dense<6.0> : tensor<f32>} : () -> tensor<f32>
  %four = "relay.constant"() {value = dense<4> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "relay.qnn_dequantize"(%x, %two, %four) : (tensor<3x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<3x4xf32>
  %1 = "relay.nn_pad"(%0, %six) {pad_width = array<i64: 0, 1, 2, 0>} : (tensor<3x4xf32>, tensor<f32>) -> tensor<4x6xf32>
  %2 = "relay.qnn_quantize"(%1, %two, %four) {out_dtype = "uint8", rounding = "TONEVEN"} : (tensor<4x6xf32>, tensor<f32>, tensor<ui8>) -> tensor<4x6xui8>
  return %2 : tensor<4x6xui8>
}

// -----

// Moves go before a dequantisation: the axis of its scales is transposed, too. Sums of 32 bits are not transposed.
// CHECK-LABEL: func.func @moves
// CHECK: %[[T:.*]] = "relay.transpose"(%arg0) {axes = array<i64: 2, 0, 1>} : (tensor<2x3x4xi8>) -> tensor<4x2x3xi8>
// CHECK: %[[A:.*]] = "relay.qnn_dequantize"(%[[T]], %arg2, %{{.*}}) {axis = 2 : i64, {{.*}} : (tensor<4x2x3xi8>,
// CHECK: %[[R:.*]] = "relay.transpose"(%arg0) : (tensor<2x3x4xi8>) -> tensor<4x3x2xi8>
// CHECK: %[[B:.*]] = "relay.qnn_dequantize"(%[[R]], %arg2, %{{.*}}) {axis = 1 : i64,
// CHECK: %[[S:.*]] = "relay.qnn_dequantize"(%arg1,
// CHECK: %[[C:.*]] = "relay.transpose"(%[[S]])
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @moves(%x: tensor<2x3x4xi8>, %sum: tensor<2x3xi32>, %scales: tensor<3xf32>)
    -> (tensor<4x2x3xf32>, tensor<4x3x2xf32>, tensor<3x2xf32>) {
  %zeros = "relay.constant"() {value = dense<0> : tensor<3xi8>} : () -> tensor<3xi8>
  %none = "relay.constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.qnn_dequantize"(%x, %scales, %zeros) {axis = 1 : i64} : (tensor<2x3x4xi8>, tensor<3xf32>, tensor<3xi8>) -> tensor<2x3x4xf32>
  %1 = "relay.transpose"(%0) {axes = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %2 = "relay.transpose"(%0) : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %3 = "relay.qnn_dequantize"(%sum, %two, %none) : (tensor<2x3xi32>, tensor<f32>, tensor<i8>) -> tensor<2x3xf32>
  %4 = "relay.transpose"(%3) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1, %2, %4 : tensor<4x2x3xf32>, tensor<4x3x2xf32>, tensor<3x2xf32>
}

// -----

// Images are resized in bytes by the nearest element, unless the elements get another type.
// CHECK-LABEL: func.func @nearest
// CHECK: %[[R:.*]] = "relay.image_resize2d"(%arg0) {{.*}} : (tensor<1x2x3x3xi8>) -> tensor<1x2x6x6xi8>
// CHECK: %[[A:.*]] = "relay.qnn_dequantize"(%[[R]],
// CHECK: %[[D:.*]] = "relay.qnn_dequantize"(%arg1,
// CHECK: %[[B:.*]] = "relay.image_resize2d"(%[[D]]) {{.*}} : (tensor<1x2x3x3xf32>) -> tensor<1x2x6x6xf64>
// CHECK: return %[[A]], %[[B]]
func.func @nearest(%x: tensor<1x2x3x3xi8>, %y: tensor<1x2x3x3xi8>) -> (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf64>) {
  %none = "relay.constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.qnn_dequantize"(%x, %two, %none) : (tensor<1x2x3x3xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2x3x3xf32>
  %1 = "relay.image_resize2d"(%0) {method = "nearest_neighbor", size = array<i64: 6, 6>} : (tensor<1x2x3x3xf32>) -> tensor<1x2x6x6xf32>
  %2 = "relay.qnn_dequantize"(%y, %two, %none) : (tensor<1x2x3x3xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2x3x3xf32>
  %3 = "relay.image_resize2d"(%2) {method = "nearest_neighbor", out_dtype = "float64", size = array<i64: 6, 6>}
    : (tensor<1x2x3x3xf32>) -> tensor<1x2x6x6xf64>
  return %1, %3 : tensor<1x2x6x6xf32>, tensor<1x2x6x6xf64>
}

// -----

// Windows that may be without elements, of which the largest number is that of no byte, stay in floats: in the padding, or around an axis
// that is short. A dilated window has an element where the axis has as many as the dilation.
// CHECK-LABEL: func.func @empty
// CHECK-COUNT-2: "relay.nn_max_pool1d"(%{{.*}}) {{.*}} -> tensor<1x1x{{.*}}xf32
// CHECK: "relay.nn_max_pool1d"(%arg1) {{.*}} : (tensor<1x1x3xui8>) -> tensor<1x1x1xui8>
// CHECK: "relay.nn_max_pool1d"(%arg0) {{.*}} -> tensor<1x1x?xui8, ["n"]>
func.func @empty(%x: tensor<1x1x?xui8, ["n"]>, %y: tensor<1x1x3xui8>) -> (tensor<1x1x?xui8, ["n"]>, tensor<1x1x?xui8, ["n + 3"]>, tensor<1x1x1xui8>, tensor<1x1x?xui8, ["n"]>) {
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %z = "relay.constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "relay.qnn_dequantize"(%x, %two, %z) : (tensor<1x1x?xui8, ["n"]>, tensor<f32>, tensor<ui8>) -> tensor<1x1x?xf32, ["n"]>
  %1 = "relay.nn_max_pool1d"(%0) {pool_size = array<i64: 2>, dilation = array<i64: 2>, padding = array<i64: 1, 1>} : (tensor<1x1x?xf32, ["n"]>) -> tensor<1x1x?xf32, ["n"]>
  %2 = "relay.qnn_quantize"(%1, %two, %z) {out_dtype = "uint8", rounding = "TONEVEN"} : (tensor<1x1x?xf32, ["n"]>, tensor<f32>, tensor<ui8>) -> tensor<1x1x?xui8, ["n"]>
  %3 = "relay.nn_max_pool1d"(%0) {pool_size = array<i64: 2>, padding = array<i64: 2, 2>} : (tensor<1x1x?xf32, ["n"]>) -> tensor<1x1x?xf32, ["n + 3"]>
  %4 = "relay.qnn_quantize"(%3, %two, %z) {out_dtype = "uint8", rounding = "TONEVEN"} : (tensor<1x1x?xf32, ["n + 3"]>, tensor<f32>, tensor<ui8>) -> tensor<1x1x?xui8, ["n + 3"]>
  %5 = "relay.qnn_dequantize"(%y, %two, %z) : (tensor<1x1x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x3xf32>
  %6 = "relay.nn_max_pool1d"(%5) {pool_size = array<i64: 2>, dilation = array<i64: 3>, strides = array<i64: 2>, padding = array<i64: 1, 1>} : (tensor<1x1x3xf32>) -> tensor<1x1x1xf32>
  %7 = "relay.qnn_quantize"(%6, %two, %z) {out_dtype = "uint8", rounding = "TONEVEN"} : (tensor<1x1x1xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x1x1xui8>
  %8 = "relay.nn_max_pool1d"(%0) {pool_size = array<i64: 3>, padding = array<i64: 1, 1>} : (tensor<1x1x?xf32, ["n"]>) -> tensor<1x1x?xf32, ["n"]>
  %9 = "relay.qnn_quantize"(%8, %two, %z) {out_dtype = "uint8", rounding = "TONEVEN"} : (tensor<1x1x?xf32, ["n"]>, tensor<f32>, tensor<ui8>) -> tensor<1x1x?xui8, ["n"]>
  return %2, %4, %7, %9 : tensor<1x1x?xui8, ["n"]>, tensor<1x1x?xui8, ["n + 3"]>, tensor<1x1x1xui8>, tensor<1x1x?xui8, ["n"]>
}
