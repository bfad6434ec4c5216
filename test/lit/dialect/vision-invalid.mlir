// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.vision_all_class_non_max_suppression at {{.*}}: scores, dimension 2: expected 6, found tensor<2x3x5xf32>
func.func @main(%boxes: tensor<2x6x4xf32>, %scores: tensor<2x3x5xf32>, %most: tensor<i64>, %t: tensor<f32>) {
  %0:2 = "relay.vision_all_class_non_max_suppression"(%boxes, %scores, %most, %t, %t) : (tensor<2x6x4xf32>, tensor<2x3x5xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<30x3xi64>, tensor<1xi64>)
  return
}

// -----

// CHECK: relay.vision_all_class_non_max_suppression at {{.*}}: iou_threshold: expected tensor<f32>, found tensor<1xf32>
func.func @main(%boxes: tensor<2x6x4xf32>, %scores: tensor<2x3x6xf32>, %most: tensor<i64>, %t: tensor<1xf32>, %u: tensor<f32>) {
  %0:2 = "relay.vision_all_class_non_max_suppression"(%boxes, %scores, %most, %t, %u) : (tensor<2x6x4xf32>, tensor<2x3x6xf32>, tensor<i64>, tensor<1xf32>, tensor<f32>) -> (tensor<36x3xi64>, tensor<1xi64>)
  return
}

// -----

// CHECK: relay.vision_roi_align at {{.*}}: rois: expected a shape [regions, 5], found tensor<4x4xf32>
func.func @main(%x: tensor<1x3x8x8xf32>, %rois: tensor<4x4xf32>) {
  %0 = "relay.vision_roi_align"(%x, %rois) {pooled_size = array<i64: 7>, spatial_scale = 1.0 : f64} : (tensor<1x3x8x8xf32>, tensor<4x4xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.vision_roi_align at {{.*}}: mode: expected avg, max or max_neighbor, found sum
func.func @main(%x: tensor<1x3x8x8xf32>, %rois: tensor<4x5xf32>) {
  %0 = "relay.vision_roi_align"(%x, %rois) {pooled_size = array<i64: 7>, spatial_scale = 1.0 : f64, mode = "sum"} : (tensor<1x3x8x8xf32>, tensor<4x5xf32>) -> tensor<?x?x?x?xf32>
  return
}
