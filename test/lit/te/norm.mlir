// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// Mean, then the squared deviations from it, then the affine map.
// CHECK: #map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: #map2 = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #map3 = affine_map<(d0, d1, d2) -> (d2)>
// CHECK: func.func private @fused_layer_norm(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins({{.*}} : tensor<2x3x8xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x3xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins({{.*}} : tensor<2x3x8xf32>, tensor<2x3xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x3xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: math.rsqrt {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1, #map3, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins({{.*}} : tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<8xf32>, tensor<8xf32>) outs({{.*}} : tensor<2x3x8xf32>)
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
func.func @main(%x: tensor<2x3x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %0 = "relay.nn_layer_norm"(%x, %g, %b) : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// -----

// f16 in f32; neither gamma nor beta.
// CHECK: func.func private @fused_layer_norm(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins({{.*}} : tensor<3x8xf16>) outs({{.*}} : tensor<3xf32>)
// CHECK: arith.extf {{.*}} : f16 to f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins({{.*}} : tensor<3xf32>) outs({{.*}} : tensor<3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins({{.*}} : tensor<3x8xf16>, tensor<3xf32>) outs({{.*}} : tensor<3xf32>)
// CHECK: arith.extf {{.*}} : f16 to f32
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins({{.*}} : tensor<3xf32>) outs({{.*}} : tensor<3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: math.rsqrt {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<3x8xf16>, tensor<3xf32>, tensor<3xf32>) outs({{.*}} : tensor<3x8xf16>)
// CHECK: arith.extf {{.*}} : f16 to f32
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @main(%x: tensor<3x8xf16>, %g: tensor<8xf16>, %b: tensor<8xf16>) -> tensor<3x8xf16> {
  %0 = "relay.nn_layer_norm"(%x, %g, %b) {center = false, scale = false} : (tensor<3x8xf16>, tensor<8xf16>, tensor<8xf16>) -> tensor<3x8xf16>
  return %0 : tensor<3x8xf16>
}

// -----

// The mean square alone.
// CHECK: func.func private @fused_rms_norm(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins({{.*}} : tensor<3x8xf32>) outs({{.*}} : tensor<3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins({{.*}} : tensor<3xf32>) outs({{.*}} : tensor<3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: math.rsqrt {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map3, #map], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<3x8xf32>, tensor<3xf32>, tensor<8xf32>) outs({{.*}} : tensor<3x8xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
func.func @main(%x: tensor<3x8xf32>, %g: tensor<8xf32>) -> tensor<3x8xf32> {
  %0 = "relay.nn_rms_norm"(%x, %g) : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// -----

// Statistics of each channel of each entry.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK: #map2 = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #map3 = affine_map<(d0, d1, d2, d3) -> (d1)>
// CHECK: func.func private @fused_instance_norm(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<2x3x4x5xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x3xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<2x3x4x5xf32>, tensor<2x3xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x3xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: math.rsqrt {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1, #map3, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<2x3x4x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) outs({{.*}} : tensor<2x3x4x5xf32>)
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
func.func @main(%x: tensor<2x3x4x5xf32>, %g: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<2x3x4x5xf32> {
  %0 = "relay.nn_instance_norm"(%x, %g, %b) : (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x5xf32>
  return %0 : tensor<2x3x4x5xf32>
}

// -----

// Groups are a dimension of their own; gamma and beta are read by channel.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK: #map2 = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #map3 = affine_map<(d0, d1, d2, d3) -> (d1 * 3 + d2)>
// CHECK: func.func private @fused_group_norm(
// CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1, 2], [3{{\]\]}} output_shape [2, 2, 3, 5] : tensor<2x6x5xf32> into tensor<2x2x3x5xf32>
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<2x2x3x5xf32>) outs({{.*}} : tensor<2x2xf32>)
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x2xf32>) outs({{.*}} : tensor<2x2xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<2x2x3x5xf32>, tensor<2x2xf32>) outs({{.*}} : tensor<2x2xf32>)
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x2xf32>) outs({{.*}} : tensor<2x2xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: math.rsqrt {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1, #map3, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins({{.*}} : tensor<2x2x3x5xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<6xf32>, tensor<6xf32>) outs({{.*}} : tensor<2x2x3x5xf32>)
// CHECK: arith.subf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1, 2], [3{{\]\]}} : tensor<2x2x3x5xf32> into tensor<2x6x5xf32>
func.func @main(%x: tensor<2x6x5xf32>, %g: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<2x6x5xf32> {
  %0 = "relay.nn_group_norm"(%x, %g, %b) {num_groups = 2 : i64} : (tensor<2x6x5xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x5xf32>
  return %0 : tensor<2x6x5xf32>
}

// -----

// The norm of each row is at least the root of eps.
// CHECK: func.func private @fused_l2_normalize(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction", "reduction"]} ins({{.*}} : tensor<2x3x5xf32>) outs({{.*}} : tensor<2xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins({{.*}} : tensor<2xf32>) outs({{.*}} : tensor<2xf32>)
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: math.sqrt {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins({{.*}} : tensor<2x3x5xf32>, tensor<2xf32>) outs({{.*}} : tensor<2x3x5xf32>)
// CHECK: arith.divf {{.*}} : f32
func.func @main(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %0 = "relay.nn_l2_normalize"(%x) {eps = 0.5, axis = array<i64: 1, 2>} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// -----

// A window of squares along the channels; the power 3/4 is a product of roots.
// CHECK: #map = affine_map<(d0, d1, d2, d3) -> (d0, d1 + d3, d2)>
// CHECK: #map1 = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK: #map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK: #map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: func.func private @fused_lrn(
// CHECK: tensor.pad {{.*}} low[0, 1, 0] high[0, 2, 0]
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins({{.*}} : tensor<1x9x3xf32>, tensor<4xf32>) outs({{.*}} : tensor<1x6x3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins({{.*}} : tensor<1x6x3xf32>, tensor<1x6x3xf32>) outs({{.*}} : tensor<1x6x3xf32>)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: [[ROOT:%.*]] = math.sqrt {{.*}} : f32
// CHECK: [[FOURTH:%.*]] = math.sqrt [[ROOT]] : f32
// CHECK: [[POWER:%.*]] = arith.mulf [[ROOT]], [[FOURTH]] : f32
// CHECK: arith.divf {{.*}}, [[POWER]] : f32
func.func @main(%x: tensor<1x6x3xf32>) -> tensor<1x6x3xf32> {
  %0 = "relay.nn_lrn"(%x) {size = 4 : i64} : (tensor<1x6x3xf32>) -> tensor<1x6x3xf32>
  return %0 : tensor<1x6x3xf32>
}

// -----

// Another exponent than networks use takes a power.
// CHECK: func.func private @fused_lrn(
// CHECK: math.powf {{.*}} : f32
func.func @main(%x: tensor<1x6x3xf32>) -> tensor<1x6x3xf32> {
  %0 = "relay.nn_lrn"(%x) {size = 4 : i64, beta = 0.6} : (tensor<1x6x3xf32>) -> tensor<1x6x3xf32>
  return %0 : tensor<1x6x3xf32>
}
