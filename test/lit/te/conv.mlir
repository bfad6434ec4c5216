// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// Padding, then linalg's named convolution.
// CHECK: func.func private @fused_conv2d(
// CHECK: tensor.pad {{.*}} low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins({{.*}} : tensor<1x3x11x11xf32>, tensor<4x3x3x3xf32>) outs({{.*}} : tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32>
func.func @main(%x: tensor<1x3x9x9xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x5x5xf32> {
  %0 = "relay.nn_conv2d"(%x, %w) {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x5x5xf32>
  return %0 : tensor<1x4x5x5xf32>
}

// -----

// f16 accumulates in f32 and is rounded once.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK: func.func private @fused_conv2d(
// CHECK: linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins({{.*}} : tensor<1x3x9x9xf16>, tensor<4x3x3x3xf16>) outs({{.*}} : tensor<1x4x7x7xf32>) -> tensor<1x4x7x7xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x4x7x7xf32>) outs({{.*}} : tensor<1x4x7x7xf16>)
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @main(%x: tensor<1x3x9x9xf16>, %w: tensor<4x3x3x3xf16>) -> tensor<1x4x7x7xf16> {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x3x9x9xf16>, tensor<4x3x3x3xf16>) -> tensor<1x4x7x7xf16>
  return %0 : tensor<1x4x7x7xf16>
}

// -----

// Unsigned integers that are widened need a body of their own.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 + d5, d3 + d6)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
// CHECK: func.func private @fused_conv2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins({{.*}} : tensor<1x3x9x9xi8>, tensor<4x3x3x3xi8>) outs({{.*}} : tensor<1x4x7x7xi32>)
// CHECK: arith.extui {{.*}} : i8 to i32
// CHECK: arith.extui {{.*}} : i8 to i32
// CHECK: arith.muli {{.*}} : i32
// CHECK: arith.addi {{.*}} : i32
func.func @main(%x: tensor<1x3x9x9xui8>, %w: tensor<4x3x3x3xui8>) -> tensor<1x4x7x7xi32> {
  %0 = "relay.nn_conv2d"(%x, %w) {out_dtype = "int32"} : (tensor<1x3x9x9xui8>, tensor<4x3x3x3xui8>) -> tensor<1x4x7x7xi32>
  return %0 : tensor<1x4x7x7xi32>
}

// -----

// Channels last.
// CHECK: func.func private @fused_conv2d(
// CHECK: linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins({{.*}} : tensor<1x9x9x3xf32>, tensor<3x3x3x4xf32>) outs({{.*}} : tensor<1x7x7x4xf32>) -> tensor<1x7x7x4xf32>
func.func @main(%x: tensor<1x9x9x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<1x7x7x4xf32> {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"} : (tensor<1x9x9x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x7x7x4xf32>
  return %0 : tensor<1x7x7x4xf32>
}

// -----

// Depthwise: the weight without its axis of length 1.
// CHECK: func.func private @fused_conv2d(
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0, 1], [2], [3{{\]\]}} : tensor<6x1x3x3xf32> into tensor<6x3x3xf32>
// CHECK: linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins({{.*}} : tensor<1x6x9x9xf32>, tensor<6x3x3xf32>) outs({{.*}} : tensor<1x6x7x7xf32>) -> tensor<1x6x7x7xf32>
func.func @main(%x: tensor<1x6x9x9xf32>, %w: tensor<6x1x3x3xf32>) -> tensor<1x6x7x7xf32> {
  %0 = "relay.nn_conv2d"(%x, %w) {groups = 6 : i64} : (tensor<1x6x9x9xf32>, tensor<6x1x3x3xf32>) -> tensor<1x6x7x7xf32>
  return %0 : tensor<1x6x7x7xf32>
}

// -----

// Groups: channels are seen as [group, channel of the group].
// CHECK: func.func private @fused_conv2d(
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1, 2], [3], [4{{\]\]}} output_shape [1, 3, 2, 9, 9] : tensor<1x6x9x9xf32> into tensor<1x3x2x9x9xf32>
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0, 1], [2], [3], [4{{\]\]}} output_shape [3, 3, 2, 3, 3] : tensor<9x2x3x3xf32> into tensor<3x3x2x3x3xf32>
// CHECK: linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins({{.*}} : tensor<1x3x2x9x9xf32>, tensor<3x3x2x3x3xf32>) outs({{.*}} : tensor<1x3x3x7x7xf32>) -> tensor<1x3x3x7x7xf32>
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1, 2], [3], [4{{\]\]}} : tensor<1x3x3x7x7xf32> into tensor<1x9x7x7xf32>
func.func @main(%x: tensor<1x6x9x9xf32>, %w: tensor<9x2x3x3xf32>) -> tensor<1x9x7x7xf32> {
  %0 = "relay.nn_conv2d"(%x, %w) {groups = 3 : i64} : (tensor<1x6x9x9xf32>, tensor<9x2x3x3xf32>) -> tensor<1x9x7x7xf32>
  return %0 : tensor<1x9x7x7xf32>
}

// -----

// Blocked channels of data and result, a weight that is not: one generic over the blocks.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8) -> (d0, d5, d2 + d7, d3 + d8, d6)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8) -> (d1 * 16 + d4, d5 * 8 + d6, d7, d8)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8) -> (d0, d1, d2, d3, d4)>
// CHECK: func.func private @fused_conv2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction", "reduction"]} ins({{.*}} : tensor<1x2x9x9x8xf32>, tensor<32x16x3x3xf32>) outs({{.*}} : tensor<1x2x7x7x16xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
func.func @main(%x: tensor<1x2x9x9x8xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x2x7x7x16xf32> {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW8c", out_layout = "NCHW16c"} : (tensor<1x2x9x9x8xf32>, tensor<32x16x3x3xf32>) -> tensor<1x2x7x7x16xf32>
  return %0 : tensor<1x2x7x7x16xf32>
}

// -----

// Depthwise with blocked channels.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2 + d5, d3 + d6, d4)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1 * 8 + d4, 0, d5, d6)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4)>
// CHECK: func.func private @fused_conv2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<1x2x9x9x8xf32>, tensor<16x1x3x3xf32>) outs({{.*}} : tensor<1x2x7x7x8xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
func.func @main(%x: tensor<1x2x9x9x8xf32>, %w: tensor<16x1x3x3xf32>) -> tensor<1x2x7x7x8xf32> {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW8c", groups = 16 : i64} : (tensor<1x2x9x9x8xf32>, tensor<16x1x3x3xf32>) -> tensor<1x2x7x7x8xf32>
  return %0 : tensor<1x2x7x7x8xf32>
}

// -----

// One and three spatial axes.
// CHECK: func.func private @fused_conv1d(
// CHECK: linalg.conv_1d_ncw_fcw {dilations = dense<2> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>} ins({{.*}} : tensor<1x3x9xf32>, tensor<4x3x3xf32>) outs({{.*}} : tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
func.func @main(%x: tensor<1x3x9xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x4x5xf32> {
  %0 = "relay.nn_conv1d"(%x, %w) {dilation = array<i64: 2>} : (tensor<1x3x9xf32>, tensor<4x3x3xf32>) -> tensor<1x4x5xf32>
  return %0 : tensor<1x4x5xf32>
}

// -----

// Three axes have no grouped named operation.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d1, d0, d6, d3 + d7, d4 + d8, d5 + d9)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d0 * 2 + d2, d6, d7, d8, d9)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d1, d0, d2, d3, d4, d5)>
// CHECK: func.func private @fused_conv3d(
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1, 2], [3], [4], [5{{\]\]}} output_shape [1, 2, 2, 5, 5, 5] : tensor<1x4x5x5x5xf32> into tensor<1x2x2x5x5x5xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction", "reduction"]} ins({{.*}} : tensor<1x2x2x5x5x5xf32>, tensor<4x2x3x3x3xf32>) outs({{.*}} : tensor<1x2x2x3x3x3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1, 2], [3], [4], [5{{\]\]}} : tensor<1x2x2x3x3x3xf32> into tensor<1x4x3x3x3xf32>
func.func @main(%x: tensor<1x4x5x5x5xf32>, %w: tensor<4x2x3x3x3xf32>) -> tensor<1x4x3x3x3xf32> {
  %0 = "relay.nn_conv3d"(%x, %w) {groups = 2 : i64} : (tensor<1x4x5x5x5xf32>, tensor<4x2x3x3x3xf32>) -> tensor<1x4x3x3x3xf32>
  return %0 : tensor<1x4x3x3x3xf32>
}
