// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// There is room for every box of every class.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}}:2 = "relay.vision_all_class_non_max_suppression"{{.*}} -> (tensor<?x3xi64, ["3*b*n"]>, tensor<1xi64>)
func.func @main(%boxes: tensor<?x?x4xf32, ["b", "n"]>, %scores: tensor<?x3x?xf32, ["b", "n"]>, %most: tensor<i64>, %t: tensor<f32>) {
  %0:2 = "relay.vision_all_class_non_max_suppression"(%boxes, %scores, %most, %t, %t) : (tensor<?x?x4xf32, ["b", "n"]>, tensor<?x3x?xf32, ["b", "n"]>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<?x?xi64>, tensor<?xi64>)
  return
}

// -----

// CHECK-LABEL: func.func @static
// CHECK-NEXT: %{{.*}}:2 = "relay.vision_all_class_non_max_suppression"{{.*}} -> (tensor<42x3xi64>, tensor<1xi64>)
func.func @static(%boxes: tensor<2x7x4xf32>, %scores: tensor<2x3x7xf32>, %most: tensor<i64>, %t: tensor<f32>) {
  %0:2 = "relay.vision_all_class_non_max_suppression"(%boxes, %scores, %most, %t, %t) : (tensor<2x7x4xf32>, tensor<2x3x7xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> (tensor<?x?xi64>, tensor<?xi64>)
  return
}

// -----

// CHECK-LABEL: func.func @regions
// CHECK-NEXT: "relay.vision_roi_align"{{.*}} -> tensor<?x3x7x7xf32, ["r"]>
// CHECK-NEXT: "relay.vision_roi_pool"{{.*}} -> tensor<?x3x2x5xf32, ["r"]>
func.func @regions(%x: tensor<1x3x?x8xf32, ["h"]>, %rois: tensor<?x5xf32, ["r"]>) {
  %0 = "relay.vision_roi_align"(%x, %rois) {pooled_size = array<i64: 7>, spatial_scale = 0.5 : f64} : (tensor<1x3x?x8xf32, ["h"]>, tensor<?x5xf32, ["r"]>) -> tensor<?x?x?x?xf32>
  %1 = "relay.vision_roi_pool"(%x, %rois) {pooled_size = array<i64: 2, 5>, spatial_scale = 0.5 : f64} : (tensor<1x3x?x8xf32, ["h"]>, tensor<?x5xf32, ["r"]>) -> tensor<?x?x?x?xf32>
  return
}
