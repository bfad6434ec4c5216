// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.image_resize2d at {{.*}}: attribute size: expected a sequence of sizes, found none
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.image_resize2d"(%x) : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.image_resize2d at {{.*}}: size: expected 1 or 2 values, found (1, 2, 3)
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 1, 2, 3>} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.image_resize2d at {{.*}}: method: expected nearest_neighbor or linear or cubic, found area
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 4, 4>, method = "area"} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.image_resize2d at {{.*}}: coordinate_transformation_mode: expected half_pixel or half_pixel_symmetric or pytorch_half_pixel or align_corners or asymmetric or tf_half_pixel_for_nn or tf_crop_and_resize, found corners
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 4, 4>, coordinate_transformation_mode = "corners"} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.image_resize2d at {{.*}}: scales: expected 2 values, found (0.5,)
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 4, 4>, scales = array<f64: 0.5>} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.image_resize2d at {{.*}}: roi: expected 4 values, found ()
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 4, 4>, coordinate_transformation_mode = "tf_crop_and_resize"} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.image_resize2d at {{.*}}: rounding_method: expected round or round_prefer_floor or round_prefer_ceil or floor or ceil, found nearest
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.image_resize2d"(%x) {size = array<i64: 4, 4>, rounding_method = "nearest"} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_upsampling at {{.*}}: scale: expected values above 0, found (-2.0, 1.0)
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.nn_upsampling"(%x) {scale_h = -2.0} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_upsampling at {{.*}}: method: expected nearest_neighbor or bilinear or bicubic, found trilinear
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.nn_upsampling"(%x) {method = "trilinear"} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}
