// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.take at "embedding": indices: expected an integer element type, found tensor<3xf32>
func.func @main(%x: tensor<4x5xf32>, %i: tensor<3xf32>) {
  %0 = "relay.take"(%x, %i) {axis = 0} : (tensor<4x5xf32>, tensor<3xf32>) -> tensor<3x5xf32> loc("embedding")
  return
}

// -----

// CHECK: relay.take at {{.*}}: mode: expected one of raise, clip, wrap, fast, found nearest
func.func @main(%x: tensor<4x5xf32>, %i: tensor<3xi32>) {
  %0 = "relay.take"(%x, %i) {axis = 0, mode = "nearest"} : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<3x5xf32>
  return
}

// -----

// CHECK: relay.take at {{.*}}: data: expected at least one element along axis 0 to read, found tensor<0x5xf32>
func.func @main(%x: tensor<0x5xf32>, %i: tensor<3xi32>) {
  %0 = "relay.take"(%x, %i) {axis = 0} : (tensor<0x5xf32>, tensor<3xi32>) -> tensor<3x5xf32>
  return
}

// -----

// CHECK: relay.take at {{.*}}: indices, dimension 0: expected 4, found 3
func.func @main(%x: tensor<4x5xf32>, %i: tensor<3x2xi32>) {
  %0 = "relay.take"(%x, %i) {axis = 1, batch_dims = 1} : (tensor<4x5xf32>, tensor<3x2xi32>) -> tensor<4x2xf32>
  return
}

// -----

// CHECK: relay.gather at {{.*}}: indices: expected rank 2, that of data, found tensor<3xi32>
func.func @main(%x: tensor<4x5xf32>, %i: tensor<3xi32>) {
  %0 = "relay.gather"(%x, %i) : (tensor<4x5xf32>, tensor<3xi32>) -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.gather at {{.*}}: indices, dimension 1: expected at most 5, found 6
func.func @main(%x: tensor<4x5xf32>, %i: tensor<9x6xi32>) {
  %0 = "relay.gather"(%x, %i) : (tensor<4x5xf32>, tensor<9x6xi32>) -> tensor<9x6xf32>
  return
}

// -----

// CHECK: relay.gather_nd at {{.*}}: indices: expected at most 2 in the first dimension, found tensor<3x7xi32>
func.func @main(%x: tensor<4x5xf32>, %i: tensor<3x7xi32>) {
  %0 = "relay.gather_nd"(%x, %i) : (tensor<4x5xf32>, tensor<3x7xi32>) -> tensor<7xf32>
  return
}

// -----

// CHECK: relay.scatter_elements at {{.*}}: updates: expected tensor<2x3xf32>, found tensor<2x2xf32>
func.func @main(%x: tensor<4x5xf32>, %i: tensor<2x3xi32>, %u: tensor<2x2xf32>) {
  %0 = "relay.scatter_elements"(%x, %i, %u) : (tensor<4x5xf32>, tensor<2x3xi32>, tensor<2x2xf32>) -> tensor<4x5xf32>
  return
}

// -----

// CHECK: relay.scatter_nd at {{.*}}: mode: expected one of update, add, mul, min, max, found set
func.func @main(%x: tensor<4x5xf32>, %i: tensor<1x3xi32>, %u: tensor<3x5xf32>) {
  %0 = "relay.scatter_nd"(%x, %i, %u) {mode = "set"} : (tensor<4x5xf32>, tensor<1x3xi32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

// CHECK: relay.one_hot at {{.*}}: off_value: expected tensor<f32>, found tensor<i32>
func.func @main(%i: tensor<3xi32>, %v: tensor<f32>, %w: tensor<i32>) {
  %0 = "relay.one_hot"(%i, %v, %w) {depth = 4} : (tensor<3xi32>, tensor<f32>, tensor<i32>) -> tensor<3x4xf32>
  return
}
