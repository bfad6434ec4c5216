// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The axes of the indices stand where the axis was; batch axes stand once.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.take"(%arg0, %arg1) {axis = 1 : i64{{.*}} -> tensor<2x6x7x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.take"(%arg0, %arg1) : {{.*}} -> tensor<6x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.take"(%arg0, %arg2) {axis = -1 : i64{{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %{{.*}} = "relay.take"(%arg0, %arg3) {axis = 2 : i64, batch_dims = 1 : i64}{{.*}} -> tensor<2x3x?xf32, ["arg3_1"]>
func.func @main(%x: tensor<2x3x4xf32>, %i: tensor<6x7xi64>, %s: tensor<i32>, %b: tensor<2x?xi32>) {
  %0 = "relay.take"(%x, %i) {axis = 1} : (tensor<2x3x4xf32>, tensor<6x7xi64>) -> tensor<?x?x?x?xf32>
  %1 = "relay.take"(%x, %i) : (tensor<2x3x4xf32>, tensor<6x7xi64>) -> tensor<?x?xf32>
  %2 = "relay.take"(%x, %s) {axis = -1} : (tensor<2x3x4xf32>, tensor<i32>) -> tensor<?x?xf32>
  %3 = "relay.take"(%x, %b) {axis = 2, batch_dims = 1} : (tensor<2x3x4xf32>, tensor<2x?xi32>) -> tensor<?x?x?xf32>
  return
}

// -----

// gather has the shape of its indices; gather_nd that of the columns and of what the index leaves.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.gather"{{.*}} -> tensor<2x9x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.gather_nd"{{.*}} -> tensor<5x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.gather_nd"{{.*}} -> tensor<2x5xf32>
func.func @main(%x: tensor<2x3x4xf32>, %i: tensor<2x9x4xi64>, %n: tensor<2x5xi64>, %b: tensor<2x2x5xi64>) {
  %0 = "relay.gather"(%x, %i) {axis = 1} : (tensor<2x3x4xf32>, tensor<2x9x4xi64>) -> tensor<?x?x?xf32>
  %1 = "relay.gather_nd"(%x, %n) : (tensor<2x3x4xf32>, tensor<2x5xi64>) -> tensor<?x?xf32>
  %2 = "relay.gather_nd"(%x, %b) {batch_dims = 1} : (tensor<2x3x4xf32>, tensor<2x2x5xi64>) -> tensor<?x?xf32>
  return
}

// -----

// Scattering gives a tensor like data; one_hot a new axis.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.scatter_elements"{{.*}} -> tensor<4x5xf32>
// CHECK-NEXT: %{{.*}} = "relay.scatter_nd"{{.*}} -> tensor<4x5xf32>
// CHECK-NEXT: %{{.*}} = "relay.one_hot"{{.*}} -> tensor<2x3x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.one_hot"{{.*}} -> tensor<7x2x3xf32>
func.func @main(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>, %n: tensor<1x6xi32>, %r: tensor<6x5xf32>, %v: tensor<f32>) {
  %0 = "relay.scatter_elements"(%x, %i, %u) : (tensor<4x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<?x?xf32>
  %1 = "relay.scatter_nd"(%x, %n, %r) {mode = "add"} : (tensor<4x5xf32>, tensor<1x6xi32>, tensor<6x5xf32>) -> tensor<?x?xf32>
  %2 = "relay.one_hot"(%i, %v, %v) {depth = 7} : (tensor<2x3xi64>, tensor<f32>, tensor<f32>) -> tensor<?x?x?xf32>
  %3 = "relay.one_hot"(%i, %v, %v) {depth = 7, axis = 0} : (tensor<2x3xi64>, tensor<f32>, tensor<f32>) -> tensor<?x?x?xf32>
  return
}
