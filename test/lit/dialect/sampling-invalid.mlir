// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.image_grid_sample at {{.*}}: grid: expected a shape [batch, 2, ...] of rank 4, found tensor<1x4x5x2xf32>
func.func @main(%x: tensor<1x3x8x8xf32>, %grid: tensor<1x4x5x2xf32>) {
  %0 = "relay.image_grid_sample"(%x, %grid) : (tensor<1x3x8x8xf32>, tensor<1x4x5x2xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.image_grid_sample at {{.*}}: padding_mode: expected zeros or border or reflection, found wrap
func.func @main(%x: tensor<1x3x8x8xf32>, %grid: tensor<1x2x4x5xf32>) {
  %0 = "relay.image_grid_sample"(%x, %grid) {padding_mode = "wrap"} : (tensor<1x3x8x8xf32>, tensor<1x2x4x5xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.image_grid_sample at {{.*}}: data along axis W: expected at least one element, found tensor<1x3x8x0xf32>
func.func @main(%x: tensor<1x3x8x0xf32>, %grid: tensor<1x2x4x5xf32>) {
  %0 = "relay.image_grid_sample"(%x, %grid) : (tensor<1x3x8x0xf32>, tensor<1x2x4x5xf32>) -> tensor<?x?x?x?xf32>
  return
}
