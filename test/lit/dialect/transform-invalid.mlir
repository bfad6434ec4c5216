// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.reshape at "flatten": newshape: expected a shape of as many elements as tensor<2x3xf32>, found tensor<7xf32>
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 7>} : (tensor<2x3xf32>) -> tensor<7xf32> loc("flatten")
  return
}

// -----

// CHECK: relay.reshape at {{.*}}: newshape: expected at most one -1, found (-1, -1)
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.reshape"(%x) {newshape = array<i64: -1, -1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// CHECK: relay.reshape at {{.*}}: newshape: expected sizes that divide the 6 elements of the operand, found (4,)
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 4, -1>} : (tensor<2x3xf32>) -> tensor<4x1xf32>
  return
}

// -----

// CHECK: relay.transpose at {{.*}}: axes: expected a permutation of 2 axes, found (0, 0)
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.transpose"(%x) {axes = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

// CHECK: relay.squeeze at {{.*}}: dimension 1: expected 1, found 3
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.squeeze"(%x) {axis = array<i64: -1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

// CHECK: relay.strided_slice at {{.*}}: strides: expected at most 1 values other than 0, found (0,)
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 0>, end = array<i64: 1>, strides = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  return
}

// -----

// CHECK: relay.strided_slice at {{.*}}: end: expected 2 values, one for each begin, found (1,)
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 0, 0>, end = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  return
}

// -----

// CHECK: relay.split at {{.*}}: indices_or_sections: expected a divisor of 3, found 2
func.func @main(%x: tensor<2x3xf32>) {
  %0:2 = "relay.split"(%x) {indices_or_sections = 2, axis = 1} : (tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x2xf32>)
  return
}

// -----

// CHECK: 'tensor.concat' op static concatenation size mismatch along non-concatenated dimension 0
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  %0 = tensor.concat dim(1) %x, %y : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

// CHECK: relay.stack at {{.*}}: operand 1: expected the element type of operand 0, float32, found tensor<2x3xf16>
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf16>) {
  %0 = "relay.stack"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xf16>) -> tensor<2x2x3xf32>
  return
}

// -----

// CHECK: relay.broadcast_to at {{.*}}: shape: expected a shape to which tensor<2x3xf32> broadcasts, found (3,)
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.broadcast_to"(%x) {shape = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.layout_transform at {{.*}}: dst_layout: expected the axes N, C, H, W, found 'OIHW'
func.func @main(%x: tensor<2x3x4x5xf32>) {
  %0 = "relay.layout_transform"(%x) {src_layout = "NCHW", dst_layout = "OIHW"} : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// -----

// CHECK: relay.layout_transform at {{.*}}: result, axis C of layout NCHW8c: expected a multiple of 8, found 3
func.func @main(%x: tensor<2x3x4x5xf32>) {
  %0 = "relay.layout_transform"(%x) {src_layout = "NCHW", dst_layout = "NCHW8c"} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5x8xf32>
  return
}

// -----

// CHECK: relay.nn_pad at {{.*}}: pad_width: expected 4 values (before and after of each axis), found (1, 1)
func.func @main(%x: tensor<2x3xf32>, %v: tensor<f32>) {
  %0 = "relay.nn_pad"(%x, %v) {pad_width = array<i64: 1, 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  return
}

// -----

// CHECK: relay.nn_mirror_pad at {{.*}}: pad_width of axis 0: expected at most 1 for mode REFLECT, found (2, 0)
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.nn_mirror_pad"(%x) {mode = "REFLECT", pad_width = array<i64: 2, 0, 0, 0>} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

// CHECK: relay.nn_depth_to_space at {{.*}}: channels: expected a multiple of 4, found 3
func.func @main(%x: tensor<2x3x4x5xf32>) {
  %0 = "relay.nn_depth_to_space"(%x) {block_size = 2} : (tensor<2x3x4x5xf32>) -> tensor<2x1x8x10xf32>
  return
}

// -----

// CHECK: relay.trilu at {{.*}}: k: expected an integer element type, found tensor<f32>
func.func @main(%x: tensor<2x3xf32>, %k: tensor<f32>) {
  %0 = "relay.trilu"(%x, %k) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return
}

// -----

// CHECK: relay.stack at {{.*}}: data: expected at least one operand, found 0
func.func @main() {
  %0 = "relay.stack"() {axis = 0 : i64} : () -> tensor<2xf32>
  return
}
