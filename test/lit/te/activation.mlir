// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// Signed and unsigned integers have their own maximum.
// CHECK: func.func private @fused_relu(
// CHECK: linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x3xi32>) outs({{.*}} : tensor<2x3xi32>)
// CHECK: arith.maxsi {{.*}} : i32
func.func @main(%x: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %0 = "relay.nn_relu"(%x) : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// -----

// NaN passes.
// CHECK: func.func private @fused_relu(
// CHECK: linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x3xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.maximumf {{.*}} : f32
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "relay.nn_relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Below zero, alpha times the element.
// CHECK: func.func private @fused_leaky_relu(
// CHECK: linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x3xf32>) outs({{.*}} : tensor<2x3xf32>)
// CHECK: arith.cmpf oge, {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.select {{.*}} : f32
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "relay.nn_leaky_relu"(%x) {alpha = 0.5} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// An alpha for each channel.
// CHECK: #map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #map1 = affine_map<(d0, d1, d2) -> (d1)>
// CHECK: func.func private @fused_prelu(
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins({{.*}} : tensor<2x3x4xf32>, tensor<3xf32>) outs({{.*}} : tensor<2x3x4xf32>)
// CHECK: arith.cmpf oge, {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.select {{.*}} : f32
func.func @main(%x: tensor<2x3x4xf32>, %w: tensor<3xf32>) -> tensor<2x3x4xf32> {
  %0 = "relay.nn_prelu"(%x, %w) : (tensor<2x3x4xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// Largest element, exponentials, their sum, quotients.
// CHECK: #map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #map1 = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: func.func private @fused_softmax(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction", "parallel"]} ins({{.*}} : tensor<2x3x4xf32>) outs({{.*}} : tensor<2x4xf32>)
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins({{.*}} : tensor<2x3x4xf32>, tensor<2x4xf32>) outs({{.*}} : tensor<2x3x4xf32>)
// CHECK: arith.subf {{.*}} : f32
// CHECK: math.exp {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction", "parallel"]} ins({{.*}} : tensor<2x3x4xf32>) outs({{.*}} : tensor<2x4xf32>)
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins({{.*}} : tensor<2x3x4xf32>, tensor<2x4xf32>) outs({{.*}} : tensor<2x3x4xf32>)
// CHECK: arith.divf {{.*}} : f32
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = "relay.nn_softmax"(%x) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// In f32 for f16.
// CHECK: func.func private @fused_softmax(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins({{.*}} : tensor<2x8xf16>) outs({{.*}} : tensor<2xf32>)
// CHECK: arith.extf {{.*}} : f16 to f32
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x8xf16>, tensor<2xf32>) outs({{.*}} : tensor<2x8xf32>)
// CHECK: arith.extf {{.*}} : f16 to f32
// CHECK: arith.subf {{.*}} : f32
// CHECK: math.exp {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins({{.*}} : tensor<2x8xf32>) outs({{.*}} : tensor<2xf32>)
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x8xf32>, tensor<2xf32>) outs({{.*}} : tensor<2x8xf16>)
// CHECK: arith.divf {{.*}} : f32
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @main(%x: tensor<2x8xf16>) -> tensor<2x8xf16> {
  %0 = "relay.nn_softmax"(%x) : (tensor<2x8xf16>) -> tensor<2x8xf16>
  return %0 : tensor<2x8xf16>
}

// -----

// The logarithm needs no exponentials of its own.
// CHECK: func.func private @fused_log_softmax(
// CHECK: linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins({{.*}} : tensor<2x8xf32>) outs({{.*}} : tensor<2xf32>)
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins({{.*}} : tensor<2x8xf32>, tensor<2xf32>) outs({{.*}} : tensor<2xf32>)
// CHECK: arith.subf {{.*}} : f32
// CHECK: math.exp {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel"]} ins({{.*}} : tensor<2xf32>, tensor<2xf32>) outs({{.*}} : tensor<2xf32>)
// CHECK: math.log {{.*}} : f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins({{.*}} : tensor<2x8xf32>, tensor<2xf32>) outs({{.*}} : tensor<2x8xf32>)
// CHECK: arith.subf {{.*}} : f32
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = "relay.nn_log_softmax"(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
