// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.slice-beside-epilogue | filecheck %s --check-prefix OFF

// What a step of a loop adds to its product is read where it is: no kernel copies it.
// CHECK-LABEL: func.func @step
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.nn_dense"
// CHECK-NEXT: "relay.take"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @step
// OFF: "relay.take"
// OFF-NEXT: "relay.yield"
func.func @step(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %rows: tensor<9x4x4xf32>, %i: tensor<i64>) -> tensor<4x4xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.take"(%rows, %i) {axis = 0 : i64} : (tensor<9x4x4xf32>, tensor<i64>) -> tensor<4x4xf32>
  %2 = "relay.add"(%0, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// Not what has an index for each row, nor what the anchor reads.
// CHECK-LABEL: func.func @others
// CHECK: "relay.take"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.take"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.yield"
func.func @others(%x: tensor<9x4x4xf32>, %w: tensor<4x4xf32>, %rows: tensor<9x4xf32>, %i: tensor<i64>, %j: tensor<4xi64>) -> tensor<4x4xf32> {
  %0 = "relay.take"(%x, %i) {axis = 0 : i64} : (tensor<9x4x4xf32>, tensor<i64>) -> tensor<4x4xf32>
  %1 = "relay.take"(%rows, %j) {axis = 0 : i64} : (tensor<9x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %2 = "relay.nn_dense"(%0, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "relay.add"(%2, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}
