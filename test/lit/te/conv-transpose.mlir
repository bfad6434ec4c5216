// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// A stride of 1: a convolution with the kernel turned round.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 - d5 + 2, d3 - d6 + 2)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d1, d5, d6)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
// CHECK: func.func private @fused_conv2d_transpose(
// CHECK: tensor.pad {{.*}} low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins({{.*}} : tensor<1x3x11x10xf32>, tensor<3x5x3x3xf32>) outs({{.*}} : tensor<1x5x9x8xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
func.func @main(%x: tensor<1x3x9x8xf32>, %w: tensor<3x5x3x3xf32>) -> tensor<1x5x9x8xf32> {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x3x9x8xf32>, tensor<3x5x3x3xf32>) -> tensor<1x5x9x8xf32>
  return %0 : tensor<1x5x9x8xf32>
}

// -----

// A stride as long as the kernel: each element of the result has one tap, in its own phase.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8) -> (d0, d6, d2 - d7, d4 - d8)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8) -> (d6, d1, d7, d3, d8, d5)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8) -> (d0, d1, d2, d3, d4, d5)>
// CHECK: func.func private @fused_conv2d_transpose(
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1], [2, 3], [4, 5{{\]\]}} output_shape [4, 5, 1, 2, 1, 2] : tensor<4x5x2x2xf32> into tensor<4x5x1x2x1x2xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins({{.*}} : tensor<1x4x9x8xf32>, tensor<4x5x1x2x1x2xf32>) outs({{.*}} : tensor<1x5x9x2x8x2xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1], [2, 3], [4, 5{{\]\]}} : tensor<1x5x9x2x8x2xf32> into tensor<1x5x18x16xf32>
func.func @main(%x: tensor<1x4x9x8xf32>, %w: tensor<4x5x2x2xf32>) -> tensor<1x5x18x16xf32> {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x4x9x8xf32>, tensor<4x5x2x2xf32>) -> tensor<1x5x18x16xf32>
  return %0 : tensor<1x5x18x16xf32>
}

// -----

// Phases of two taps, cut at the padding.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d2 - d5 + 1)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d1, d5, d3)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK: func.func private @fused_conv1d_transpose(
// CHECK: tensor.pad {{.*}} low[0, 0, 1] high[0, 0, 1]
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1], [2, 3{{\]\]}} output_shape [4, 5, 2, 2] : tensor<4x5x4xf32> into tensor<4x5x2x2xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<1x4x10xf32>, tensor<4x5x2x2xf32>) outs({{.*}} : tensor<1x5x9x2xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1], [2, 3{{\]\]}} : tensor<1x5x9x2xf32> into tensor<1x5x18xf32>
// CHECK: tensor.extract_slice {{.*}}[0, 0, 1] [1, 5, 16] [1, 1, 1] : tensor<1x5x18xf32> to tensor<1x5x16xf32>
func.func @main(%x: tensor<1x4x8xf32>, %w: tensor<4x5x4xf32>) -> tensor<1x5x16xf32> {
  %0 = "relay.nn_conv1d_transpose"(%x, %w) {strides = array<i64: 2>, padding = array<i64: 1, 1>} : (tensor<1x4x8xf32>, tensor<4x5x4xf32>) -> tensor<1x5x16xf32>
  return %0 : tensor<1x5x16xf32>
}

// -----

// A kernel that the stride does not divide is filled up with zeros.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d2 - d5 + 1)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d1, d5, d3)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK: func.func private @fused_conv1d_transpose(
// CHECK: tensor.pad {{.*}} low[0, 0, 1] high[0, 0, 1]
// CHECK: tensor.pad {{.*}} low[0, 0, 0] high[0, 0, 1]
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1], [2, 3{{\]\]}} output_shape [4, 5, 2, 2] : tensor<4x5x4xf32> into tensor<4x5x2x2xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<1x4x10xf32>, tensor<4x5x2x2xf32>) outs({{.*}} : tensor<1x5x9x2xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1], [2, 3{{\]\]}} : tensor<1x5x9x2xf32> into tensor<1x5x18xf32>
// CHECK: tensor.extract_slice {{.*}}[0, 0, 0] [1, 5, 17] [1, 1, 1] : tensor<1x5x18xf32> to tensor<1x5x17xf32>
func.func @main(%x: tensor<1x4x8xf32>, %w: tensor<4x5x3xf32>) -> tensor<1x5x17xf32> {
  %0 = "relay.nn_conv1d_transpose"(%x, %w) {strides = array<i64: 2>} : (tensor<1x4x8xf32>, tensor<4x5x3xf32>) -> tensor<1x5x17xf32>
  return %0 : tensor<1x5x17xf32>
}

// -----

// Groups.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d5, d3 - d6)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d5, d2, d6, d4)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4)>
// CHECK: func.func private @fused_conv1d_transpose(
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1, 2], [3{{\]\]}} output_shape [1, 2, 3, 8] : tensor<1x6x8xf32> into tensor<1x2x3x8xf32>
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0, 1], [2], [3, 4{{\]\]}} output_shape [2, 3, 5, 1, 2] : tensor<6x5x2xf32> into tensor<2x3x5x1x2xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<1x2x3x8xf32>, tensor<2x3x5x1x2xf32>) outs({{.*}} : tensor<1x2x5x8x2xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1, 2], [3, 4{{\]\]}} : tensor<1x2x5x8x2xf32> into tensor<1x10x16xf32>
func.func @main(%x: tensor<1x6x8xf32>, %w: tensor<6x5x2xf32>) -> tensor<1x10x16xf32> {
  %0 = "relay.nn_conv1d_transpose"(%x, %w) {strides = array<i64: 2>, groups = 2 : i64} : (tensor<1x6x8xf32>, tensor<6x5x2xf32>) -> tensor<1x10x16xf32>
  return %0 : tensor<1x10x16xf32>
}
