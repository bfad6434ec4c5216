// RUN: relayc-opt %s --passes fuse-ops --split-input-file | filecheck %s

// Dimensions of one expression are one size: an anchor takes its epilogue, elementwise operators of one shape form a group.
// CHECK-LABEL: func.func @equal
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.yield"
// CHECK-NOT: "relay.fused"
func.func @equal(%x: tensor<?x8xf32, ["2*n"]>, %w: tensor<8x8xf32>, %y: tensor<?x8xf32, ["2*n"]>) -> tensor<?x8xf32, ["2*n"]> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x8xf32, ["2*n"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["2*n"]>
  %1 = "relay.add"(%0, %y) : (tensor<?x8xf32, ["2*n"]>, tensor<?x8xf32, ["2*n"]>) -> tensor<?x8xf32, ["2*n"]>
  return %1 : tensor<?x8xf32, ["2*n"]>
}

// -----

// A row that is read for each of the rows of an image is not computed again for each, whatever the sizes are.
// CHECK-LABEL: func.func @gate
// CHECK: "relay.sigmoid"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.multiply"
// CHECK-NEXT: "relay.yield"
func.func @gate(%x: tensor<?x8x?x?xf32, ["n", "h", "w"]>, %g: tensor<?x8x1x1xf32, ["n"]>) -> tensor<?x8x?x?xf32, ["n", "h", "w"]> {
  %0 = "relay.sigmoid"(%g) : (tensor<?x8x1x1xf32, ["n"]>) -> tensor<?x8x1x1xf32, ["n"]>
  %1 = "relay.multiply"(%x, %0) : (tensor<?x8x?x?xf32, ["n", "h", "w"]>, tensor<?x8x1x1xf32, ["n"]>) -> tensor<?x8x?x?xf32, ["n", "h", "w"]>
  return %1 : tensor<?x8x?x?xf32, ["n", "h", "w"]>
}

// -----

// What is smaller at typical sizes may read part of what is computed.
// CHECK-LABEL: func.func @part
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.strided_slice"
// CHECK-NEXT: "relay.yield"
// CHECK-NOT: "relay.fused"
func.func @part(%x: tensor<?x?x8xf32, ["n", "s"]>) -> tensor<?x?x8xf32, ["n", "min(1, s)"]> {
  %0 = "relay.exp"(%x) : (tensor<?x?x8xf32, ["n", "s"]>) -> tensor<?x?x8xf32, ["n", "s"]>
  %1 = "relay.strided_slice"(%0) {begin = array<i64: 0>, end = array<i64: 1>, strides = array<i64: 1>, axes = array<i64: 1>} : (tensor<?x?x8xf32, ["n", "s"]>) -> tensor<?x?x8xf32, ["n", "min(1, s)"]>
  return %1 : tensor<?x?x8xf32, ["n", "min(1, s)"]>
}

// -----

// A reshape between symbolic shapes is a view between groups; row operators take producers of their shape.
// CHECK-LABEL: func.func @views
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.reshape"(%{{.*}} -> tensor<?x?x8xf32, ["b", "s"]>
// CHECK: "relay.abs"
// CHECK-NEXT: "relay.nn_softmax"
// CHECK-NEXT: "relay.exp"
// CHECK-NEXT: "relay.yield"
func.func @views(%x: tensor<?x8xf32, ["b*s"]>, %w: tensor<8x8xf32>, %y: tensor<?x?xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x8xf32, ["b*s"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["b*s"]>
  %1 = "relay.reshape"(%0) {newshape = ["b", "s", 8]} : (tensor<?x8xf32, ["b*s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
  %2 = "relay.abs"(%1) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
  %3 = "relay.nn_softmax"(%2) {axis = -1} : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
  %4 = "relay.exp"(%3) : (tensor<?x?x8xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
  return %4 : tensor<?x?x8xf32, ["b", "s"]>
}

// -----

// The concatenation of a cache along its first dimension is written in place; along another one it moves.
// CHECK-LABEL: func.func @caches
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: tensor.concat dim(0)
// CHECK-NEXT: "relay.yield"
// CHECK: tensor.concat dim(1)
// CHECK-NEXT: "relay.yield"
func.func @caches(%p: tensor<?x4xf32, ["past"]>, %x: tensor<?x4xf32, ["n"]>) -> (tensor<?x4xf32, ["n + past"]>, tensor<?x8xf32, ["n + past"]>) {
  %0 = "relay.exp"(%x) : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  %1 = "relay.abs"(%p) : (tensor<?x4xf32, ["past"]>) -> tensor<?x4xf32, ["past"]>
  %2 = tensor.concat dim(0) %1, %0 : (tensor<?x4xf32, ["past"]>, tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n + past"]>
  %3 = tensor.concat dim(1) %2, %2 : (tensor<?x4xf32, ["n + past"]>, tensor<?x4xf32, ["n + past"]>) -> tensor<?x8xf32, ["n + past"]>
  return %2, %3 : tensor<?x4xf32, ["n + past"]>, tensor<?x8xf32, ["n + past"]>
}

// -----

// A size that the data define is known behind its definition only; what computes the data stands before it.
// CHECK-LABEL: func.func @data
// CHECK: "relay.sum"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.define_sizes"
// CHECK-NEXT: "relay.fused"
// CHECK-NEXT: "relay.exp"
// CHECK-NEXT: "relay.strided_slice"(%{{.*}}) {{.*}}end = ["k"]
func.func @data(%c: tensor<4xi64>, %x: tensor<16xf32>) -> tensor<?xf32, ["min(16, k)"]> {
  %0 = "relay.exp"(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = "relay.sum"(%c) {axis = array<i64: 0>} : (tensor<4xi64>) -> tensor<i64>
  "relay.define_sizes"(%1) {names = ["k"]} : (tensor<i64>) -> ()
  %2 = "relay.strided_slice"(%0) {begin = array<i64: 0>, end = ["k"], strides = array<i64: 1>} : (tensor<16xf32>) -> tensor<?xf32, ["min(16, k)"]>
  return %2 : tensor<?xf32, ["min(16, k)"]>
}
