// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// take reads at an index brought into range: clamped, or negative from the end first.
// CHECK-DAG: #[[INDICES:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func private @fused_take_2(
// CHECK: arith.index_castui
// CHECK-NOT: arith.addi
// CHECK: arith.minsi
// CHECK: tensor.extract
// CHECK-LABEL: func.func private @fused_take_1(
// CHECK: arith.remsi
// CHECK: arith.select
// CHECK: tensor.extract
// CHECK-LABEL: func.func private @fused_take(
// CHECK: indexing_maps = [#[[INDICES]],
// CHECK: arith.index_cast %in : i64 to index
// CHECK: arith.addi
// CHECK: arith.cmpi slt
// CHECK: arith.select
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: linalg.index 0
// CHECK: tensor.extract %arg0[
func.func @main(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xui8>) -> (tensor<4x2x3xf32>, tensor<4x2x3xf32>, tensor<2x3x5xf32>) {
  %0 = "relay.take"(%x, %i) {axis = 1, mode = "fast"} : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<4x2x3xf32>
  %1 = "relay.take"(%x, %i) {axis = 1, mode = "wrap"} : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<4x2x3xf32>
  %2 = "relay.take"(%x, %u) {axis = 0} : (tensor<4x5xf32>, tensor<2x3xui8>) -> tensor<2x3x5xf32>
  return %0, %1, %2 : tensor<4x2x3xf32>, tensor<4x2x3xf32>, tensor<2x3x5xf32>
}

// -----

// An index known at compile time is an affine map.
// CHECK-DAG: affine_map<(d0) -> (d0, 4)>
// CHECK-LABEL: func.func private @fused_take(
// CHECK-NOT: tensor.extract
// CHECK: return
func.func @main(%x: tensor<4x5xf32>) -> tensor<4xf32> {
  %0 = "relay.fused"() ({
    %i = "relay.constant"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
    %1 = "relay.take"(%x, %i) {axis = 1, mode = "fast"} : (tensor<4x5xf32>, tensor<i64>) -> tensor<4xf32>
    "relay.yield"(%1) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// gather reads beside its own position; gather_nd one row of the indices for each axis.
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1) -> (0, d0)>
// CHECK-DAG: #[[SECOND:.*]] = affine_map<(d0, d1) -> (1, d0)>
// CHECK-LABEL: func.func private @fused_gather_nd(
// CHECK: indexing_maps = [#[[FIRST]], #[[SECOND]],
// CHECK: tensor.extract %arg0[
// CHECK-LABEL: func.func private @fused_gather(
// CHECK: arith.minsi
// CHECK: linalg.index 0
// CHECK: linalg.index 2
// CHECK: tensor.extract %arg0[
func.func @main(%x: tensor<4x5x6xf32>, %i: tensor<4x2x6xi64>, %n: tensor<2x3xi32>) -> (tensor<4x2x6xf32>, tensor<3x6xf32>) {
  %0 = "relay.gather"(%x, %i) {axis = 1} : (tensor<4x5x6xf32>, tensor<4x2x6xi64>) -> tensor<4x2x6xf32>
  %1 = "relay.gather_nd"(%x, %n) : (tensor<4x5x6xf32>, tensor<2x3xi32>) -> tensor<3x6xf32>
  return %0, %1 : tensor<4x2x6xf32>, tensor<3x6xf32>
}

// -----

// Scatters write one update after the other.
// CHECK-LABEL: func.func private @fused_scatter_nd(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tensor.extract
// CHECK: arith.maximumf
// CHECK: tensor.insert
// CHECK-LABEL: func.func private @fused_scatter_elements_1(
// CHECK: arith.addf
// CHECK: tensor.insert
// CHECK: arith.addi {{.*}} : i64
// CHECK: tensor.insert
// CHECK: arith.divf
// CHECK-LABEL: func.func private @fused_scatter_elements(
// CHECK: scf.for {{.*}}iter_args(%{{.*}} = %arg0)
// CHECK: scf.for
// CHECK: arith.minsi
// CHECK: tensor.insert
func.func @main(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>, %n: tensor<1x6xi64>, %r: tensor<6x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
  %0 = "relay.scatter_elements"(%x, %i, %u) {axis = 1} : (tensor<4x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<4x5xf32>
  %1 = "relay.scatter_elements"(%x, %i, %u) {axis = 1, reduction = "mean"} : (tensor<4x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<4x5xf32>
  %2 = "relay.scatter_nd"(%x, %n, %r) {mode = "max"} : (tensor<4x5xf32>, tensor<1x6xi64>, tensor<6x5xf32>) -> tensor<4x5xf32>
  return %0, %1, %2 : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
}

// -----

// one_hot compares the index with the position.
// CHECK-LABEL: func.func private @fused_one_hot(
// CHECK: linalg.index 1
// CHECK: arith.cmpi eq
// CHECK: arith.select {{.*}}, %in_0, %in_1
func.func @main(%i: tensor<3xi64>, %v: tensor<f32>, %w: tensor<f32>) -> (tensor<3x7xf32>) {
  %0 = "relay.one_hot"(%i, %v, %w) {depth = 7} : (tensor<3xi64>, tensor<f32>, tensor<f32>) -> tensor<3x7xf32>
  return %0 : tensor<3x7xf32>
}
