// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// Padding holds the lowest value.
// CHECK: func.func private @fused_max_pool2d(
// CHECK: tensor.pad {{.*}} low[0, 0, 1, 1] high[0, 0, 0, 0]
// CHECK: linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins({{.*}} : tensor<1x3x9x9xf32>, tensor<3x3xf32>) outs({{.*}} : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32> {
  %0 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}

// -----

// Unsigned integers compare as such.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 + d4, d3 + d5)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK: func.func private @fused_max_pool2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<1x3x8x8xi8>, tensor<2x2xi8>) outs({{.*}} : tensor<1x3x7x7xi8>)
// CHECK: arith.maxui {{.*}} : i8
func.func @main(%x: tensor<1x3x8x8xui8>) -> tensor<1x3x7x7xui8> {
  %0 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 2, 2>} : (tensor<1x3x8x8xui8>) -> tensor<1x3x7x7xui8>
  return %0 : tensor<1x3x7x7xui8>
}

// -----

// A constant number of elements divides the sum.
// CHECK: func.func private @fused_avg_pool2d(
// CHECK: linalg.pooling_nchw_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins({{.*}} : tensor<1x3x8x8xf32>, tensor<2x2xf32>) outs({{.*}} : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x3x4x4xf32>) outs({{.*}} : tensor<1x3x4x4xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.constant 4.000000e+00 : f32
// CHECK-NEXT: arith.divf {{.*}} : f32
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32> {
  %0 = "relay.nn_avg_pool2d"(%x) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}

// -----

// Padding that does not count: the number of elements depends on the position, and is 1 or more.
// CHECK: func.func private @fused_avg_pool2d(
// CHECK: tensor.pad {{.*}} low[0, 0, 2, 0] high[0, 0, 2, 0]
// CHECK: linalg.pooling_nchw_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins({{.*}} : tensor<1x3x12x8xf32>, tensor<3x1xf32>) outs({{.*}} : tensor<1x3x10x8xf32>) -> tensor<1x3x10x8xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x3x10x8xf32>) outs({{.*}} : tensor<1x3x10x8xf32>)
// CHECK: arith.muli {{.*}} : index
// CHECK: arith.subi {{.*}} : index
// CHECK: arith.subi {{.*}} : index
// CHECK: arith.maxsi {{.*}} : index
// CHECK: arith.minsi {{.*}} : index
// CHECK: arith.subi {{.*}} : index
// CHECK: arith.maxsi {{.*}} : index
// CHECK: arith.minsi {{.*}} : index
// CHECK: arith.subi {{.*}} : index
// CHECK-NEXT: arith.constant 1.000000e+00 : f32
// CHECK-NEXT: arith.index_cast {{.*}} : index to i32
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.divf {{.*}} : f32
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x10x8xf32> {
  %0 = "relay.nn_avg_pool2d"(%x) {pool_size = array<i64: 3, 1>, padding = array<i64: 2, 0, 2, 0>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x10x8xf32>
  return %0 : tensor<1x3x10x8xf32>
}

// -----

// Padding that counts.
// CHECK: func.func private @fused_avg_pool2d(
// CHECK: tensor.pad {{.*}} low[0, 0, 1, 0] high[0, 0, 1, 0]
// CHECK: linalg.pooling_nchw_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins({{.*}} : tensor<1x3x10x8xf32>, tensor<3x1xf32>) outs({{.*}} : tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x3x8x8xf32>) outs({{.*}} : tensor<1x3x8x8xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.constant 3.000000e+00 : f32
// CHECK-NEXT: arith.divf {{.*}} : f32
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32> {
  %0 = "relay.nn_avg_pool2d"(%x) {pool_size = array<i64: 3, 1>, padding = array<i64: 1, 0, 1, 0>, count_include_pad = true} : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}

// -----

// ceil_mode: what the last window hangs over is padding.
// CHECK: func.func private @fused_max_pool2d(
// CHECK: tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 0, 1, 1]
// CHECK: linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins({{.*}} : tensor<1x3x9x9xf32>, tensor<3x3xf32>) outs({{.*}} : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32> {
  %0 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, ceil_mode = true} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}

// -----

// Blocked channels: a generic.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2 * 2 + d5 * 2, d3 * 2 + d6, d4)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d5, d6)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d4)>
// CHECK: func.func private @fused_max_pool2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<1x2x8x8x4xf32>, tensor<3x3xf32>) outs({{.*}} : tensor<1x2x2x3x4xf32>)
// CHECK: arith.maximumf {{.*}} : f32
func.func @main(%x: tensor<1x2x8x8x4xf32>) -> tensor<1x2x2x3x4xf32> {
  %0 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilation = array<i64: 2, 1>, layout = "NCHW4c"} : (tensor<1x2x8x8x4xf32>) -> tensor<1x2x2x3x4xf32>
  return %0 : tensor<1x2x2x3x4xf32>
}

// -----

// Global: a reduction, then the division.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK: func.func private @fused_global_avg_pool2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<1x3x8x8xf32>) outs({{.*}} : tensor<1x3xf32>)
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x3xf32>) outs({{.*}} : tensor<1x3x1x1xf32>)
// CHECK: arith.divf {{.*}} : f32
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32> {
  %0 = "relay.nn_global_avg_pool2d"(%x) : (tensor<1x3x8x8xf32>) -> tensor<1x3x1x1xf32>
  return %0 : tensor<1x3x1x1xf32>
}

// -----

// An adaptive pooling of equal windows is an ordinary one.
// CHECK: func.func private @fused_adaptive_max_pool2d(
// CHECK: linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 4]> : tensor<2xi64>} ins({{.*}} : tensor<1x3x8x8xf32>, tensor<2x4xf32>) outs({{.*}} : tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32>
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x4x2xf32> {
  %0 = "relay.nn_adaptive_max_pool2d"(%x) {output_size = array<i64: 4, 2>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x2xf32>
  return %0 : tensor<1x3x4x2xf32>
}

// -----

// Windows of different lengths read at computed indices.
// CHECK: func.func private @fused_adaptive_max_pool1d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins({{.*}} : tensor<4xf32>) outs({{.*}} : tensor<1x3x3xf32>)
// CHECK: arith.muli {{.*}} : index
// CHECK: arith.divui {{.*}} : index
// CHECK: arith.addi {{.*}} : index
// CHECK: arith.divui {{.*}} : index
// CHECK: arith.addi {{.*}} : index
// CHECK: arith.cmpi ult, {{.*}} : index
// CHECK: arith.minui {{.*}} : index
// CHECK: tensor.extract {{.*}}[{{.*}}] : tensor<1x3x8xf32>
// CHECK: arith.select {{.*}} : f32
// CHECK: arith.maximumf {{.*}} : f32
func.func @main(%x: tensor<1x3x8xf32>) -> tensor<1x3x3xf32> {
  %0 = "relay.nn_adaptive_max_pool1d"(%x) {output_size = array<i64: 3>} : (tensor<1x3x8xf32>) -> tensor<1x3x3xf32>
  return %0 : tensor<1x3x3xf32>
}
