// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// Samples of a known number are two loops that are reduced.
// CHECK: func.func private @fused_vision_roi_align(
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<2x2xf32>, {{.*}} outs({{.*}} : tensor<4x3x7x7xf32>)
// CHECK-COUNT-4: tensor.extract {{.*}} : tensor<1x3x8x8xf32>
func.func @main(%x: tensor<1x3x8x8xf32>, %rois: tensor<4x5xf32>) -> tensor<4x3x7x7xf32> {
  %0 = "relay.vision_roi_align"(%x, %rois) {pooled_size = array<i64: 7>, spatial_scale = 1.0 : f64, sample_ratio = 2 : i64} : (tensor<1x3x8x8xf32>, tensor<4x5xf32>) -> tensor<4x3x7x7xf32>
  return %0 : tensor<4x3x7x7xf32>
}

// -----

// Of those that depend on the region, as many as the region says.
// CHECK: func.func private @fused_vision_roi_align(
// CHECK-COUNT-4: scf.for
// CHECK: math.ceil
// CHECK-COUNT-2: scf.for
func.func @main(%x: tensor<1x3x8x8xf32>, %rois: tensor<4x5xf32>) -> tensor<4x3x7x7xf32> {
  %0 = "relay.vision_roi_align"(%x, %rois) {pooled_size = array<i64: 7>, spatial_scale = 1.0 : f64} : (tensor<1x3x8x8xf32>, tensor<4x5xf32>) -> tensor<4x3x7x7xf32>
  return %0 : tensor<4x3x7x7xf32>
}

// -----

// A maximum makes these two loops that are reduced, too.
// CHECK: func.func private @fused_vision_roi_align(
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins({{.*}} : tensor<5x5xf32>, {{.*}} outs({{.*}} : tensor<4x3x7x7xf32>)
func.func @main(%x: tensor<1x3x8x8xf32>, %rois: tensor<4x5xf32>) -> tensor<4x3x7x7xf32> {
  %0 = "relay.vision_roi_align"(%x, %rois) {pooled_size = array<i64: 7>, spatial_scale = 1.0 : f64, most_samples = 5 : i64} : (tensor<1x3x8x8xf32>, tensor<4x5xf32>) -> tensor<4x3x7x7xf32>
  return %0 : tensor<4x3x7x7xf32>
}
