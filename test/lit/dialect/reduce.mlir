// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// Axes count from either end; none given means all; keepdims leaves size 1; exclude turns the choice around.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.sum"{{.*}} -> tensor<2x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.mean"{{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %{{.*}} = "relay.max"{{.*}} -> tensor<f32>
// CHECK-NEXT: %{{.*}} = "relay.min"{{.*}} -> tensor<1x3x1xf32>
// CHECK-NEXT: %{{.*}} = "relay.prod"{{.*}} -> tensor<3xf32>
// CHECK-NEXT: %{{.*}} = "relay.sum"{{.*}} -> tensor<2x3x4xf32>
func.func @main(%x: tensor<2x3x4xf32>) {
  %0 = "relay.sum"(%x) {axis = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<?x?xf32>
  %1 = "relay.mean"(%x) {axis = array<i64: -1>} : (tensor<2x3x4xf32>) -> tensor<?x?xf32>
  %2 = "relay.max"(%x) : (tensor<2x3x4xf32>) -> tensor<f32>
  %3 = "relay.min"(%x) {axis = array<i64: 0, 2>, keepdims = true} : (tensor<2x3x4xf32>) -> tensor<?x?x?xf32>
  %4 = "relay.prod"(%x) {axis = array<i64: 1>, exclude = true} : (tensor<2x3x4xf32>) -> tensor<?xf32>
  %5 = "relay.sum"(%x) {axis = array<i64>} : (tensor<2x3x4xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// all and any reduce bools; argmax and argmin give int32; an unknown dimension that is kept stays unknown.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.all"{{.*}} -> tensor<5xi1>
// CHECK-NEXT: %{{.*}} = "relay.any"{{.*}} -> tensor<?xi1, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.argmax"{{.*}} -> tensor<?x1xi32, ["arg1_0"]>
// CHECK-NEXT: %{{.*}} = "relay.argmin"{{.*}} -> tensor<i32>
func.func @main(%b: tensor<?x5xi1>, %x: tensor<?x5xi8>) {
  %0 = "relay.all"(%b) {axis = array<i64: 0>} : (tensor<?x5xi1>) -> tensor<?xi1>
  %1 = "relay.any"(%b) {axis = array<i64: 1>} : (tensor<?x5xi1>) -> tensor<?xi1>
  %2 = "relay.argmax"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<?x5xi8>) -> tensor<?x?xi32>
  %3 = "relay.argmin"(%x) : (tensor<?x5xi8>) -> tensor<i32>
  return
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.variance"{{.*}} -> tensor<2x4xf32>
func.func @main(%x: tensor<2x3x4xf32>, %m: tensor<2x1x4xf32>) {
  %0 = "relay.variance"(%x, %m) {axis = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<?x?xf32>
  return
}
