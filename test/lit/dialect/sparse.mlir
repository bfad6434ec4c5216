// RUN: relayc-opt %s | filecheck %s

// CHECK: relay.nn_sparse_dense{{.*}} -> tensor<5x?xf32>
func.func @rows(%x: tensor<5x8xf32>, %d: tensor<20xf32>, %i: tensor<20xi32>, %p: tensor<?xi32>) {
  %0 = "relay.nn_sparse_dense"(%x, %d, %i, %p) : (tensor<5x8xf32>, tensor<20xf32>, tensor<20xi32>, tensor<?xi32>) -> tensor<5x?xf32>
  return
}

// CHECK: relay.nn_sparse_dense{{.*}} -> tensor<12x5xf32>
func.func @blocks(%x: tensor<5x8xf32>, %d: tensor<20x3x2xf32>, %i: tensor<20xi64>, %p: tensor<5xi64>) {
  %0 = "relay.nn_sparse_dense"(%x, %d, %i, %p) {sparse_lhs = true}
    : (tensor<5x8xf32>, tensor<20x3x2xf32>, tensor<20xi64>, tensor<5xi64>) -> tensor<12x5xf32>
  return
}
