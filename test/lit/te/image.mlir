// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// Nearest by a whole factor: an affine read.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 floordiv 2, d3 floordiv 3)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK: func.func private @fused_image_resize2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x2x8x8xf32>) outs({{.*}} : tensor<1x2x16x24xf32>)
func.func @main(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x16x24xf32> {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 16, 24>, method = "nearest_neighbor", rounding_method = "round_prefer_floor"} : (tensor<1x2x8x8xf32>) -> tensor<1x2x16x24xf32>
  return %0 : tensor<1x2x16x24xf32>
}

// -----

// And the same downwards.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 * 2, d3)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK: func.func private @fused_image_resize2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x2x8x8xf32>) outs({{.*}} : tensor<1x2x4x8xf32>)
func.func @main(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32> {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 4, 8>, method = "nearest_neighbor", coordinate_transformation_mode = "asymmetric"} : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x8xf32>
  return %0 : tensor<1x2x4x8xf32>
}

// -----

// Any other factor: a position, rounded and kept in bounds.
// CHECK: func.func private @fused_image_resize1d(
// CHECK: linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel"]} outs({{.*}} : tensor<1x2x5xf32>)
// CHECK: arith.index_cast {{.*}} : index to i32
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.divf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: math.floor {{.*}} : f32
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: arith.minimumf {{.*}} : f32
// CHECK: arith.fptosi {{.*}} : f32 to i32
// CHECK: arith.index_cast {{.*}} : i32 to index
// CHECK: tensor.extract {{.*}}[{{.*}}] : tensor<1x2x8xf32>
func.func @main(%x: tensor<1x2x8xf32>) -> tensor<1x2x5xf32> {
  %0 = "relay.image_resize1d"(%x) {size = array<i64: 5>, method = "nearest_neighbor"} : (tensor<1x2x8xf32>) -> tensor<1x2x5xf32>
  return %0 : tensor<1x2x5xf32>
}

// -----

// Linear: two elements, weighted; an axis that keeps its length has one.
// CHECK: func.func private @fused_image_resize2d(
// CHECK: linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs({{.*}} : tensor<1x2x16x9xf32>)
// CHECK: arith.index_cast {{.*}} : index to i32
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.divf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: math.floor {{.*}} : f32
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: arith.minimumf {{.*}} : f32
// CHECK: arith.fptosi {{.*}} : f32 to i32
// CHECK: arith.index_cast {{.*}} : i32 to index
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: arith.minimumf {{.*}} : f32
// CHECK: arith.fptosi {{.*}} : f32 to i32
// CHECK: arith.index_cast {{.*}} : i32 to index
// CHECK: tensor.extract {{.*}}[{{.*}}] : tensor<1x2x8x9xf32>
// CHECK: arith.mulf {{.*}} : f32
// CHECK: tensor.extract {{.*}}[{{.*}}] : tensor<1x2x8x9xf32>
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
func.func @main(%x: tensor<1x2x8x9xf32>) -> tensor<1x2x16x9xf32> {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 16, 9>, method = "linear"} : (tensor<1x2x8x9xf32>) -> tensor<1x2x16x9xf32>
  return %0 : tensor<1x2x16x9xf32>
}

// -----

// Upsampling of blocked channels.
// CHECK: #map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2 floordiv 2, d3 floordiv 2, d4)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
// CHECK: func.func private @fused_upsampling(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x2x8x8x4xf32>) outs({{.*}} : tensor<1x2x16x16x4xf32>)
func.func @main(%x: tensor<1x2x8x8x4xf32>) -> tensor<1x2x16x16x4xf32> {
  %0 = "relay.nn_upsampling"(%x) {scale_h = 2.0, scale_w = 2.0, layout = "NCHW4c"} : (tensor<1x2x8x8x4xf32>) -> tensor<1x2x16x16x4xf32>
  return %0 : tensor<1x2x16x16x4xf32>
}
