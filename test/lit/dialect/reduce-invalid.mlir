// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.sum at {{.*}}: axis: expected a value in [-2, 2), found 2
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.sum"(%x) {axis = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

// CHECK: relay.max at {{.*}}: axis: expected no axis twice, found (0, -2)
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.max"(%x) {axis = array<i64: 0, -2>} : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.sum at {{.*}}: attribute axis: expected a sequence of integers, found 1 : i64
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.sum"(%x) {axis = 1} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

// CHECK: relay.all at {{.*}}: data: expected element type bool (i1), found tensor<2x3xf32>
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.all"(%x) : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

// CHECK: relay.argmax at {{.*}}: data: expected at least one element along axis 1, found tensor<2x0xf32>
func.func @main(%x: tensor<2x0xf32>) {
  %0 = "relay.argmax"(%x) {axis = array<i64: 1>} : (tensor<2x0xf32>) -> tensor<2xi32>
  return
}

// -----

// CHECK: relay.variance at {{.*}}: mean: expected tensor<2x1xf32>, found tensor<1x3xf32>
func.func @main(%x: tensor<2x3xf32>, %m: tensor<1x3xf32>) {
  %0 = "relay.variance"(%x, %m) {axis = array<i64: 1>} : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2xf32>
  return
}
