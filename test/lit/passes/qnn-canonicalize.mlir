// RUN: relayc-opt %s --passes qnn-canonicalize,fold-constant --split-input-file | filecheck %s

// A product of bytes and constant weights, requantised: the zero point is the padding, and its share and the bias are one constant, and
// so are limits.
// CHECK-LABEL: func.func @product
// CHECK: %[[W:.*]] = "relay.constant"() {value = dense<{{.*}}> : tensor<2x1x1x2xi8>}
// CHECK: %[[CONV:.*]] = "relay.nn_conv2d"(%arg0, %[[W]]) {{.*}}out_dtype = "int32"{{.*}}pad_value = 4 : i64{{.*}} -> tensor<1x2x4x5xi32>
// CHECK: %[[B:.*]] = "relay.constant"() {value = dense<{{\[\[\[}}-2]], {{\[\[}}-18]]]> : tensor<2x1x1xi32>}
// CHECK: %[[SUM:.*]] = "relay.add"(%[[CONV]], %[[B]])
// CHECK: %[[REAL:.*]] = "relay.cast"(%[[SUM]]) {dtype = "float32"}
// CHECK: %[[STEPS:.*]] = "relay.multiply"(%[[REAL]], %{{.*}})
// CHECK: "relay.round"(%[[STEPS]])
// CHECK: "relay.clip"({{.*}}) {a_max = 9.000000e+01 : f64, a_min = 4.000000e+00 : f64}
// CHECK-NOT: "relay.clip"
// CHECK: return {{.*}} : tensor<1x2x4x5xui8>
func.func @product(%x: tensor<1x1x4x4xui8>) -> tensor<1x2x4x5xui8> {
  %w = "relay.constant"() {value = dense<[[[[1, 2]]], [[[3, 4]]]]> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %ws = "relay.constant"() {value = dense<[0.5, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %s = "relay.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "relay.constant"() {value = dense<[[[10]], [[10]]]> : tensor<2x1x1xi32>} : () -> tensor<2x1x1xi32>
  %four = "relay.constant"() {value = dense<4> : tensor<ui8>} : () -> tensor<ui8>
  %none = "relay.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.qnn_conv2d"(%x, %w, %four, %none, %two, %ws) {padding = array<i64: 0, 1, 0, 1>}
    : (tensor<1x1x4x4xui8>, tensor<2x1x1x2xi8>, tensor<ui8>, tensor<i32>, tensor<f32>, tensor<2xf32>) -> tensor<1x2x4x5xi32>
  %1 = "relay.add"(%0, %b) : (tensor<1x2x4x5xi32>, tensor<2x1x1xi32>) -> tensor<1x2x4x5xi32>
  %2 = "relay.qnn_requantize"(%1, %s, %none, %one, %none) {axis = 1 : i64, out_dtype = "uint8", rounding = "TONEVEN"}
    : (tensor<1x2x4x5xi32>, tensor<2xf32>, tensor<i32>, tensor<f32>, tensor<i32>) -> tensor<1x2x4x5xui8>
  %3 = "relay.clip"(%2) {a_min = 4.0 : f64, a_max = 90.0 : f64} : (tensor<1x2x4x5xui8>) -> tensor<1x2x4x5xui8>
  return %3 : tensor<1x2x4x5xui8>
}

// -----

// A zero point that only a call knows; unsigned weights are moved by 128, which the sums of the rows make up for.
// CHECK-LABEL: func.func @dynamic
// CHECK: %[[SUM:.*]] = "relay.nn_matmul"(%arg0, %{{.*}}) {{.*}} : (tensor<?x3xui8, ["n"]>, tensor<3x2xi8>) -> tensor<?x2xi32, ["n"]>
// CHECK: %[[W:.*]] = "relay.constant"() {value = dense<[9, 12]> : tensor<2xi32>}
// CHECK: %[[EXCESS:.*]] = "relay.multiply"(%[[W]]
// CHECK: "relay.subtract"(%[[SUM]]
// CHECK: "relay.nn_matmul"(%arg0, %{{.*}}){{.*}} : (tensor<?x3xui8, ["n"]>, tensor<3x1xi8>) -> tensor<?x1xi32, ["n"]>
// CHECK: "relay.sum"({{.*}}) {axis = array<i64: -1>, {{.*}}keepdims = true} : (tensor<?x3xi32, ["n"]>) -> tensor<?x1xi32, ["n"]>
func.func @dynamic(%x: tensor<?x3xui8, ["n"]>, %zero: tensor<ui8>) -> (tensor<?x2xi32, ["n"]>, tensor<?x1xi32, ["n"]>) {
  %w = "relay.constant"() {value = dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi8>} : () -> tensor<3x2xi8>
  %v = "relay.constant"() {value = dense<[[1], [255], [0]]> : tensor<3x1xui8>} : () -> tensor<3x1xui8>
  %none = "relay.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.qnn_matmul"(%x, %w, %zero, %none, %one, %one)
    : (tensor<?x3xui8, ["n"]>, tensor<3x2xi8>, tensor<ui8>, tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<?x2xi32, ["n"]>
  %1 = "relay.qnn_matmul"(%x, %v, %zero, %none, %one, %one)
    : (tensor<?x3xui8, ["n"]>, tensor<3x1xui8>, tensor<ui8>, tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<?x1xi32, ["n"]>
  return %0, %1 : tensor<?x2xi32, ["n"]>, tensor<?x1xi32, ["n"]>
}
