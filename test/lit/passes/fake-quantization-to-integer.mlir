// RUN: relayc-opt %s --passes fake-quantization-to-integer,fold-constant --split-input-file | filecheck %s

// A convolution between quantised tensors: bytes are padded with the zero point, the sums of the weights times it and the bias are one
// constant, and what turns a sum into a byte has one factor for each channel.
// CHECK-LABEL: func.func @between
// CHECK: %[[W:.*]] = "relay.constant"() {value = dense<{{.*}}> : tensor<2x1x1x2xi8>}
// CHECK: %[[CONV:.*]] = "relay.nn_conv2d"(%arg0, %[[W]]) {{.*}}out_dtype = "int32"{{.*}}pad_value = 4 : i64{{.*}} -> tensor<1x2x4x5xi32>
// CHECK: %[[B:.*]] = "relay.constant"() {value = dense<{{\[\[\[}}-2]], {{\[\[}}-18]]]> : tensor<2x1x1xi32>}
// CHECK: %[[SUM:.*]] = "relay.add"(%[[CONV]], %[[B]])
// CHECK: %[[REAL:.*]] = "relay.cast"(%[[SUM]]) {dtype = "float32"}
// CHECK: %[[F:.*]] = "relay.constant"() {value = dense<{{\[\[\[}}1.000000e+00]], {{\[\[}}2.000000e+00]]]> : tensor<2x1x1xf32>}
// CHECK: %[[STEPS:.*]] = "relay.multiply"(%[[REAL]], %[[F]])
// CHECK: "relay.round"(%[[STEPS]])
// CHECK: return {{.*}} : tensor<1x2x4x5xui8>
func.func @between(%x: tensor<1x1x4x4xui8>) -> tensor<1x2x4x5xui8> {
  %w = "relay.constant"() {value = dense<[[[[1, 2]]], [[[3, 4]]]]> : tensor<2x1x1x2xi32>} : () -> tensor<2x1x1x2xi32>
  %ws = "relay.constant"() {value = dense<[[[[0.5]]], [[[1.0]]]]> : tensor<2x1x1x1xf32>} : () -> tensor<2x1x1x1xf32>
  %b = "relay.constant"() {value = dense<[[[10.0]], [[20.0]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %four = "relay.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.cast"(%x) {dtype = "int32"} : (tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xi32>
  %1 = "relay.subtract"(%0, %four) : (tensor<1x1x4x4xi32>, tensor<i32>) -> tensor<1x1x4x4xi32>
  %2 = "relay.cast"(%1) {dtype = "float32"} : (tensor<1x1x4x4xi32>) -> tensor<1x1x4x4xf32>
  %3 = "relay.multiply"(%2, %two) : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %4 = "relay.cast"(%w) {dtype = "float32"} : (tensor<2x1x1x2xi32>) -> tensor<2x1x1x2xf32>
  %5 = "relay.multiply"(%4, %ws) : (tensor<2x1x1x2xf32>, tensor<2x1x1x1xf32>) -> tensor<2x1x1x2xf32>
  %6 = "relay.nn_conv2d"(%3, %5) {padding = array<i64: 0, 1, 0, 1>} : (tensor<1x1x4x4xf32>, tensor<2x1x1x2xf32>) -> tensor<1x2x4x5xf32>
  %7 = "relay.add"(%6, %b) : (tensor<1x2x4x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x5xf32>
  %8 = "relay.divide"(%7, %one) : (tensor<1x2x4x5xf32>, tensor<f32>) -> tensor<1x2x4x5xf32>
  %9 = "relay.round"(%8) : (tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  %10 = "relay.clip"(%9) {a_min = 0.0 : f64, a_max = 255.0 : f64} : (tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  %11 = "relay.cast"(%10) {dtype = "uint8"} : (tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xui8>
  return %11 : tensor<1x2x4x5xui8>
}

// -----

// Integers of 32 bits that are bytes less a zero point which only a call knows.
// CHECK-LABEL: func.func @dynamic
// CHECK: %[[SUM:.*]] = "relay.nn_matmul"(%arg0, %{{.*}}) {{.*}} : (tensor<?x3xui8, ["n"]>, tensor<3x2xi8>) -> tensor<?x2xi32, ["n"]>
// CHECK: %[[W:.*]] = "relay.constant"() {value = dense<[9, 12]> : tensor<2xi32>}
// CHECK: %[[EXCESS:.*]] = "relay.multiply"(%[[W]], %arg1)
// CHECK: "relay.subtract"(%[[SUM]], %[[EXCESS]])
// CHECK-NEXT: return
func.func @dynamic(%x: tensor<?x3xui8, ["n"]>, %zero: tensor<i32>) -> tensor<?x2xi32, ["n"]> {
  %w = "relay.constant"() {value = dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>} : () -> tensor<3x2xi32>
  %0 = "relay.cast"(%x) {dtype = "int32"} : (tensor<?x3xui8, ["n"]>) -> tensor<?x3xi32, ["n"]>
  %1 = "relay.subtract"(%0, %zero) : (tensor<?x3xi32, ["n"]>, tensor<i32>) -> tensor<?x3xi32, ["n"]>
  %2 = "relay.nn_matmul"(%1, %w) : (tensor<?x3xi32, ["n"]>, tensor<3x2xi32>) -> tensor<?x2xi32, ["n"]>
  return %2 : tensor<?x2xi32, ["n"]>
}

// -----

// Weights that need more than 8 bits stay as they are; so do products of two tensors of a call.
// CHECK-LABEL: func.func @wide
// CHECK: "relay.nn_matmul"(%{{.*}}, %{{.*}}){{.*}} : (tensor<4x1xi32>, tensor<1x2xi32>) -> tensor<4x2xi32>
func.func @wide(%x: tensor<4x1xui8>) -> tensor<4x2xi32> {
  %w = "relay.constant"() {value = dense<[[1, 128]]> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
  %0 = "relay.cast"(%x) {dtype = "int32"} : (tensor<4x1xui8>) -> tensor<4x1xi32>
  %1 = "relay.nn_matmul"(%0, %w) : (tensor<4x1xi32>, tensor<1x2xi32>) -> tensor<4x2xi32>
  return %1 : tensor<4x2xi32>
}

// -----

// What takes the largest bytes of one scale works on the bytes.
// CHECK-LABEL: func.func @largest
// CHECK-NEXT: %[[POOL:.*]] = "relay.nn_max_pool2d"(%arg0) {{.*}} : (tensor<1x1x4x4xui8>) -> tensor<1x1x2x2xui8>
// CHECK-NEXT: return %[[POOL]]
func.func @largest(%x: tensor<1x1x4x4xui8>) -> tensor<1x1x2x2xui8> {
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.cast"(%x) {dtype = "int32"} : (tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xi32>
  %1 = "relay.cast"(%0) {dtype = "float32"} : (tensor<1x1x4x4xi32>) -> tensor<1x1x4x4xf32>
  %2 = "relay.multiply"(%1, %two) : (tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %3 = "relay.nn_max_pool2d"(%2) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  %4 = "relay.divide"(%3, %two) : (tensor<1x1x2x2xf32>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %5 = "relay.round"(%4) : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %6 = "relay.clip"(%5) {a_min = 0.0 : f64, a_max = 255.0 : f64} : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %7 = "relay.cast"(%6) {dtype = "uint8"} : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xui8>
  return %7 : tensor<1x1x2x2xui8>
}
