// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te | filecheck %s

// Rows of the sparse matrix in any order, in them lanes of rows of the dense one, in them the stored elements of the row.
// CHECK: func.func private @fused_sparse_dense(
// CHECK: scf.for {{.*}} -> (tensor<4x1x5xf32>) {
// CHECK: scf.for {{.*}} = %c0{{.*}} to %c5{{.*}} -> (tensor<4x1x5xf32>) {
// CHECK: scf.for {{.*}} -> (f32) {
// CHECK: arith.minsi
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: } {relay.distinct}
// CHECK: } {relay.distinct, relay.threads
func.func @main(%x: tensor<5x8xf32>, %d: tensor<20xf32>, %i: tensor<20xi32>, %p: tensor<5xi32>) -> tensor<5x4xf32> {
  %0 = "relay.nn_sparse_dense"(%x, %d, %i, %p) : (tensor<5x8xf32>, tensor<20xf32>, tensor<20xi32>, tensor<5xi32>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}
