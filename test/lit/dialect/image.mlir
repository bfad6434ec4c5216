// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The spatial axes get the size; other axes and the type stay.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.image_resize2d"(%arg0){{.*}} -> tensor<?x3x16x20xf32, ["arg0_0"]>
// CHECK-NEXT: "relay.image_resize2d"(%arg0){{.*}} -> tensor<?x3x7x7xf16, ["arg0_0"]>
// CHECK-NEXT: "relay.image_resize1d"(%arg1){{.*}} -> tensor<1x5x3xui8>
// CHECK-NEXT: "relay.image_resize3d"(%arg2){{.*}} -> tensor<1x2x6x6x6xf32>
func.func @main(%x: tensor<?x3x8x9xf32>, %y: tensor<1x9x3xui8>, %z: tensor<1x2x3x4x5xf32>) {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 16, 20>} : (tensor<?x3x8x9xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.image_resize2d"(%x) {size = array<i64: 7>, method = "cubic", out_dtype = "float16"} : (tensor<?x3x8x9xf32>) -> tensor<?x?x?x?xf16>
  %2 = "relay.image_resize1d"(%y) {size = array<i64: 5>, layout = "NWC", method = "nearest_neighbor"} : (tensor<1x9x3xui8>) -> tensor<?x?x?xui8>
  %3 = "relay.image_resize3d"(%z) {size = array<i64: 6, 6, 6>, scales = array<f64: 2.0, 1.5, 1.3>} : (tensor<1x2x3x4x5xf32>) -> tensor<?x?x?x?x?xf32>
  return
}

// -----

// Factors, rounded to whole sizes.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.nn_upsampling"(%arg0){{.*}} -> tensor<1x3x16x?xf32, ["2*arg0_3"]>
// CHECK-NEXT: "relay.nn_upsampling"(%arg1){{.*}} -> tensor<1x2x12x27x4xf32>
// CHECK-NEXT: "relay.nn_upsampling3d"(%arg2){{.*}} -> tensor<1x2x6x8x10xf32>
func.func @main(%x: tensor<1x3x8x?xf32>, %y: tensor<1x2x8x9x4xf32>, %z: tensor<1x2x3x4x5xf32>) {
  %0 = "relay.nn_upsampling"(%x) {scale_h = 2.0, scale_w = 2.0} : (tensor<1x3x8x?xf32>) -> tensor<?x?x?x?xf32>
  %1 = "relay.nn_upsampling"(%y) {scale_h = 1.5, scale_w = 3.0, layout = "NCHW4c", method = "bilinear"} : (tensor<1x2x8x9x4xf32>) -> tensor<?x?x?x?x?xf32>
  %2 = "relay.nn_upsampling3d"(%z) {scale_d = 2.0, scale_h = 2.0, scale_w = 2.0, method = "trilinear"} : (tensor<1x2x3x4x5xf32>) -> tensor<?x?x?x?x?xf32>
  return
}
