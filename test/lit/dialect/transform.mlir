// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// Relay's reshape codes; -1 can be inferred around unknown dimensions that are copied.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.reshape"{{.*}} -> tensor<2x12xf32>
// CHECK-NEXT: %{{.*}} = "relay.reshape"{{.*}} -> tensor<6x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.reshape"{{.*}} -> tensor<2x1x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.reshape"{{.*}} -> tensor<?x128xf32, ["arg1_0"]>
// CHECK-NEXT: %{{.*}} = "relay.reshape"{{.*}} -> tensor<?x64xf32, ["2*arg1_0"]>
// CHECK-NEXT: %{{.*}} = "relay.nn_batch_flatten"{{.*}} -> tensor<?x128xf32, ["arg1_0"]>
func.func @main(%x: tensor<2x3x4xf32>, %y: tensor<?x8x16xf32>) {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 0, -1>} : (tensor<2x3x4xf32>) -> tensor<?x?xf32>
  %1 = "relay.reshape"(%x) {newshape = array<i64: -3, -2>} : (tensor<2x3x4xf32>) -> tensor<?x?xf32>
  %2 = "relay.reshape"(%x) {newshape = array<i64: -4, 2, -1, -2>} : (tensor<2x3x4xf32>) -> tensor<?x?x?x?xf32>
  %3 = "relay.reshape"(%y) {newshape = array<i64: 0, -1>} : (tensor<?x8x16xf32>) -> tensor<?x?xf32>
  %4 = "relay.reshape"(%y) {newshape = array<i64: -1, 64>} : (tensor<?x8x16xf32>) -> tensor<?x?xf32>
  %5 = "relay.nn_batch_flatten"(%y) : (tensor<?x8x16xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.expand_dims"{{.*}} -> tensor<2x1x1x1x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.squeeze"{{.*}} -> tensor<2x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.transpose"{{.*}} -> tensor<7x1x2xf32>
// CHECK-NEXT: %{{.*}} = "relay.transpose"{{.*}} -> tensor<1x2x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.reverse"{{.*}} -> tensor<2x1x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.broadcast_to"{{.*}} -> tensor<3x2x5x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.tile"{{.*}} -> tensor<2x3x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.repeat"{{.*}} -> tensor<8x1x7xf32>
// CHECK-NEXT: %{{.*}} = "relay.repeat"{{.*}} -> tensor<56xf32>
func.func @main(%x: tensor<2x1x?xf32>) {
  %0 = "relay.expand_dims"(%x) {axis = 1, num_newaxis = 2} : (tensor<2x1x?xf32>) -> tensor<?x?x?x?x?xf32>
  %1 = "relay.squeeze"(%x) {axis = array<i64: 1>} : (tensor<2x1x?xf32>) -> tensor<?x?xf32>
  %2 = "relay.transpose"(%x) : (tensor<2x1x?xf32>) -> tensor<?x?x?xf32>
  %3 = "relay.transpose"(%x) {axes = array<i64: 1, 0, -1>} : (tensor<2x1x?xf32>) -> tensor<?x?x?xf32>
  %4 = "relay.reverse"(%x) {axis = -1} : (tensor<2x1x?xf32>) -> tensor<?x?x?xf32>
  %5 = "relay.broadcast_to"(%x) {shape = array<i64: 3, 2, 5, 7>} : (tensor<2x1x?xf32>) -> tensor<?x?x?x?xf32>
  %6 = "relay.tile"(%x) {reps = array<i64: 3, 1>} : (tensor<2x1x?xf32>) -> tensor<?x?x?xf32>
  %7 = "relay.repeat"(%x) {repeats = 4, axis = 0} : (tensor<2x1x?xf32>) -> tensor<?x?x?xf32>
  %8 = "relay.repeat"(%x) {repeats = 4} : (tensor<2x1x?xf32>) -> tensor<?xf32>
  return
}

// -----

// Slices clamp like numpy's; a negative stride runs backwards; axes left out stay whole.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.strided_slice"{{.*}} -> tensor<4x2xf32>
// CHECK-NEXT: %{{.*}} = "relay.strided_slice"{{.*}} -> tensor<8x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.strided_slice"{{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %{{.*}} = "relay.split"{{.*}} -> tuple<tensor<8x1xf32>, tensor<8x3xf32>, tensor<8x3xf32>>
// CHECK-NEXT: %{{.*}} = "relay.split"{{.*}} -> tuple<tensor<4x7xf32>, tensor<4x7xf32>>
func.func @main(%x: tensor<8x7xf32>) {
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 4, -2>, end = array<i64: 100, 100>} : (tensor<8x7xf32>) -> tensor<?x?xf32>
  %1 = "relay.strided_slice"(%x) {begin = array<i64: -1>, end = array<i64: -100>, strides = array<i64: -2>, axes = array<i64: 1>}
    : (tensor<8x7xf32>) -> tensor<?x?xf32>
  %2 = "relay.strided_slice"(%x) {begin = array<i64: 1, -3>, end = array<i64: 2, -1>, slice_mode = "size"} : (tensor<8x7xf32>) -> tensor<?x?xf32>
  %3 = "relay.split"(%x) {indices_or_sections = array<i64: 1, 4>, axis = 1} : (tensor<8x7xf32>) -> tuple<tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>>
  %4 = "relay.split"(%x) {indices_or_sections = 2} : (tensor<8x7xf32>) -> tuple<tensor<?x?xf32>, tensor<?x?xf32>>
  return
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = tensor.concat dim(1) {{.*}} -> tensor<2x8xf32>
// CHECK-NEXT: %{{.*}} = tensor.concat dim(1) {{.*}} -> tensor<2x?xf32, ["arg2_1 + 3"]>
// CHECK-NEXT: %{{.*}} = "relay.stack"{{.*}} -> tensor<2x?x2xf32, ["arg2_1"]>
func.func @main(%x: tensor<2x3xf32>, %y: tensor<?x5xf32>, %z: tensor<2x?xf32>) {
  %0 = tensor.concat dim(1) %x, %y : (tensor<2x3xf32>, tensor<?x5xf32>) -> tensor<2x8xf32>
  %1 = tensor.concat dim(1) %x, %z : (tensor<2x3xf32>, tensor<2x?xf32>) -> tensor<2x?xf32>
  %2 = "relay.stack"(%z, %z) {axis = -1} : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// Layouts: blocks divide their axis and stand where the string says.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.layout_transform"{{.*}} -> tensor<?x2x4x6x8xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.layout_transform"{{.*}} -> tensor<?x4x6x16xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.nn_depth_to_space"{{.*}} -> tensor<?x4x8x12xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.nn_space_to_depth"{{.*}} -> tensor<?x64x2x3xf32, ["arg0_0"]>
func.func @main(%x: tensor<?x16x4x6xf32>) {
  %0 = "relay.layout_transform"(%x) {src_layout = "NCHW", dst_layout = "NCHW8c"} : (tensor<?x16x4x6xf32>) -> tensor<?x?x?x?x?xf32>
  %1 = "relay.layout_transform"(%x) {src_layout = "NCHW", dst_layout = "NHWC"} : (tensor<?x16x4x6xf32>) -> tensor<?x?x?x?xf32>
  %2 = "relay.nn_depth_to_space"(%x) {block_size = 2} : (tensor<?x16x4x6xf32>) -> tensor<?x?x?x?xf32>
  %3 = "relay.nn_space_to_depth"(%x) {block_size = 2} : (tensor<?x16x4x6xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.nn_pad"{{.*}} -> tensor<?x8xf32, ["arg0_0 + 2"]>
// CHECK-NEXT: %{{.*}} = "relay.nn_mirror_pad"{{.*}} -> tensor<?x10xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.trilu"{{.*}} -> tensor<?x5xf32, ["arg0_0"]>
func.func @main(%x: tensor<?x5xf32>, %v: tensor<f32>, %k: tensor<i64>) {
  %0 = "relay.nn_pad"(%x, %v) {pad_width = array<i64: 1, 1, 3, 0>} : (tensor<?x5xf32>, tensor<f32>) -> tensor<?x?xf32>
  %1 = "relay.nn_mirror_pad"(%x) {pad_width = array<i64: 0, 0, 5, 0>} : (tensor<?x5xf32>) -> tensor<?x?xf32>
  %2 = "relay.trilu"(%x, %k) : (tensor<?x5xf32>, tensor<i64>) -> tensor<?x?xf32>
  return
}
