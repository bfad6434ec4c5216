// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.nn_sparse_dense at {{.*}}: sparse_data: expected rank 1, or rank 3 for blocks, found tensor<20x3xf32>
func.func @main(%x: tensor<5x8xf32>, %d: tensor<20x3xf32>, %i: tensor<20xi32>, %p: tensor<5xi32>) {
  %0 = "relay.nn_sparse_dense"(%x, %d, %i, %p) : (tensor<5x8xf32>, tensor<20x3xf32>, tensor<20xi32>, tensor<5xi32>) -> tensor<5x12xf32>
  return
}

// -----

// CHECK: relay.nn_sparse_dense at {{.*}}: sparse_indptr: expected an integer element type, found
func.func @main(%x: tensor<5x8xf32>, %d: tensor<20xf32>, %i: tensor<20xi32>, %p: tensor<5xf32>) {
  %0 = "relay.nn_sparse_dense"(%x, %d, %i, %p) : (tensor<5x8xf32>, tensor<20xf32>, tensor<20xi32>, tensor<5xf32>) -> tensor<5x4xf32>
  return
}

// -----

// CHECK: relay.nn_sparse_dense at {{.*}}: dense_data: expected at least 3 columns, those of a block, found tensor<5x2xf32>
func.func @main(%x: tensor<5x2xf32>, %d: tensor<20x1x3xf32>, %i: tensor<20xi32>, %p: tensor<5xi32>) {
  %0 = "relay.nn_sparse_dense"(%x, %d, %i, %p) : (tensor<5x2xf32>, tensor<20x1x3xf32>, tensor<20xi32>, tensor<5xi32>) -> tensor<5x4xf32>
  return
}
