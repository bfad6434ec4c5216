// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.nn_col2im at {{.*}}: data, dimension 5: expected 4, found tensor<1x4x3x3x4x5xf32>
func.func @main(%x: tensor<1x4x3x3x4x5xf32>) {
  %0 = "relay.nn_col2im"(%x) {image_shape = array<i64: 6, 6>} : (tensor<1x4x3x3x4x5xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_max_pool_indices at {{.*}}: largest: expected tensor<1x4x7x7xf32>, found tensor<1x4x8x8xf32>
func.func @main(%x: tensor<1x4x8x8xf32>) {
  %0 = "relay.nn_max_pool_indices"(%x, %x) {pool_size = array<i64: 2, 2>} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<?x?x?x?xi64>
  return
}
