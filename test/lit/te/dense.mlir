// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// The weight is [units, in].
// CHECK: #map = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: #map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK: #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: func.func private @fused_dense(
// CHECK: linalg.matmul indexing_maps = [#map, #map1, #map2] ins({{.*}} : tensor<3x8xf32>, tensor<5x8xf32>) outs({{.*}} : tensor<3x5xf32>) -> tensor<3x5xf32>
func.func @main(%x: tensor<3x8xf32>, %w: tensor<5x8xf32>) -> tensor<3x5xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<3x8xf32>, tensor<5x8xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----

// Leading dimensions are rows.
// CHECK: func.func private @fused_dense(
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0, 1], [2{{\]\]}} : tensor<2x3x8xf32> into tensor<6x8xf32>
// CHECK: linalg.matmul indexing_maps = [#map, #map1, #map2] ins({{.*}} : tensor<6x8xf32>, tensor<5x8xf32>) outs({{.*}} : tensor<6x5xf32>) -> tensor<6x5xf32>
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0, 1], [2{{\]\]}} output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
func.func @main(%x: tensor<2x3x8xf32>, %w: tensor<5x8xf32>) -> tensor<2x3x5xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<2x3x8xf32>, tensor<5x8xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// -----

// A vector is one row.
// CHECK: func.func private @fused_dense(
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0, 1{{\]\]}} output_shape [1, 8] : tensor<8xf32> into tensor<1x8xf32>
// CHECK: linalg.matmul indexing_maps = [#map, #map1, #map2] ins({{.*}} : tensor<1x8xf32>, tensor<5x8xf32>) outs({{.*}} : tensor<1x5xf32>) -> tensor<1x5xf32>
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0, 1{{\]\]}} : tensor<1x5xf32> into tensor<5xf32>
func.func @main(%x: tensor<8xf32>, %w: tensor<5x8xf32>) -> tensor<5xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<8xf32>, tensor<5x8xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// f16 accumulates in f32.
// CHECK: func.func private @fused_dense(
// CHECK: linalg.matmul indexing_maps = [#map, #map1, #map2] ins({{.*}} : tensor<3x8xf16>, tensor<5x8xf16>) outs({{.*}} : tensor<3x5xf32>) -> tensor<3x5xf32>
// CHECK: linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<3x5xf32>) outs({{.*}} : tensor<3x5xf16>)
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @main(%x: tensor<3x8xf16>, %w: tensor<5x8xf16>) -> tensor<3x5xf16> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<3x8xf16>, tensor<5x8xf16>) -> tensor<3x5xf16>
  return %0 : tensor<3x5xf16>
}

// -----

// Transposed operands.
// CHECK: #map = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK: #map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK: #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: func.func private @fused_matmul(
// CHECK: linalg.matmul indexing_maps = [#map, #map1, #map2] ins({{.*}} : tensor<8x3xf32>, tensor<8x5xf32>) outs({{.*}} : tensor<3x5xf32>) -> tensor<3x5xf32>
func.func @main(%x: tensor<8x3xf32>, %w: tensor<8x5xf32>) -> tensor<3x5xf32> {
  %0 = "relay.nn_matmul"(%x, %w) {transpose_a = true} : (tensor<8x3xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----

// Batches.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK: func.func private @fused_batch_matmul(
// CHECK: linalg.batch_matmul indexing_maps = [#map, #map1, #map2] ins({{.*}} : tensor<2x3x8xf32>, tensor<2x5x8xf32>) outs({{.*}} : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
func.func @main(%x: tensor<2x3x8xf32>, %w: tensor<2x5x8xf32>) -> tensor<2x3x5xf32> {
  %0 = "relay.nn_batch_matmul"(%x, %w) : (tensor<2x3x8xf32>, tensor<2x5x8xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// -----

// A batch of 1 is read for every entry of the other.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (0, d1, d3)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK: func.func private @fused_batch_matmul(
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins({{.*}} : tensor<1x3x8xf32>, tensor<2x8x5xf32>) outs({{.*}} : tensor<2x3x5xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
func.func @main(%x: tensor<1x3x8xf32>, %w: tensor<2x8x5xf32>) -> tensor<2x3x5xf32> {
  %0 = "relay.nn_batch_matmul"(%x, %w) {transpose_b = false} : (tensor<1x3x8xf32>, tensor<2x8x5xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// -----

// A bias along an axis.
// CHECK: #map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #map1 = affine_map<(d0, d1, d2) -> (d1)>
// CHECK: func.func private @fused_bias_add(
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins({{.*}} : tensor<2x3x4xf32>, tensor<3xf32>) outs({{.*}} : tensor<2x3x4xf32>)
// CHECK: arith.addf {{.*}} : f32
func.func @main(%x: tensor<2x3x4xf32>, %w: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %0 = "relay.nn_bias_add"(%x, %w) : (tensor<2x3x4xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}
