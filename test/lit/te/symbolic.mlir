// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// Sizes are values of the function: a bound of a slice is an offset, clamped.
// CHECK-LABEL: func.func private @fused_strided_slice(
// CHECK-SAME: %[[X:\w+]]: tensor<?x?xf32, ["n", "m"]>, %[[M:\w+]]: index {relay.symbol = "m"}, %[[N:\w+]]: index {relay.symbol = "n"}
// CHECK: %[[START:.*]] = arith.minsi %{{.*}}, %[[N]]
// CHECK: %[[COUNT:.*]] = arith.maxsi
// CHECK: tensor.extract_slice %[[X]][%[[START]], 0] [%[[COUNT]], %[[M]]] [1, 1]
// CHECK-LABEL: func.func private @fused_concatenate(
// CHECK: tensor.concat dim(0) {{.*}} -> tensor<?x?xf32, ["n + 3", "m"]>
// Loops run to sizes.
// CHECK-LABEL: func.func private @fused_cumsum(
// CHECK-SAME: %[[M:\w+]]: index {relay.symbol = "m"}, %[[N:\w+]]: index {relay.symbol = "n"}
// CHECK: scf.for {{.*}} to %[[N]]
// CHECK: scf.for {{.*}} to %[[M]]
// What an affine map cannot say is an index that the body computes, of sizes from outside of it.
// CHECK-LABEL: func.func private @fused_reverse(
// CHECK-SAME: %[[X:\w+]]: tensor<?x?xf32, ["n", "m"]>, %[[M:\w+]]: index {relay.symbol = "m"}
// CHECK: %[[LAST:.*]] = arith.addi %[[M]], %c-1
// CHECK: linalg.generic
// CHECK: %[[ROW:.*]] = linalg.index 0
// CHECK: %[[AT:.*]] = arith.addi %[[LAST]],
// CHECK: tensor.extract %[[X]][%[[ROW]], %[[AT]]]
// A divisor is converted in the body.
// CHECK-LABEL: func.func private @fused_mean(
// CHECK-SAME: %[[M:\w+]]: index {relay.symbol = "m"}
// CHECK: %[[COUNT:.*]] = arith.index_cast %[[M]]
// CHECK: %[[BY:.*]] = arith.sitofp %[[COUNT]]
// CHECK: arith.divf %{{.*}}, %[[BY]]
func.func @main(%x: tensor<?x?xf32, ["n", "m"]>, %y: tensor<3x?xf32, ["m"]>) -> (tensor<?x1xf32, ["n"]>, tensor<?x?xf32, ["n", "m"]>, tensor<?x?xf32, ["n", "m"]>, tensor<?x?xf32, ["n + 3", "m"]>, tensor<?x?xf32, ["max(n - 1, 0)", "m"]>) {
  %0 = "relay.mean"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<?x?xf32, ["n", "m"]>) -> tensor<?x1xf32, ["n"]>
  %1 = "relay.reverse"(%x) {axis = 1 : i64} : (tensor<?x?xf32, ["n", "m"]>) -> tensor<?x?xf32, ["n", "m"]>
  %2 = "relay.cumsum"(%x) {axis = 1 : i64} : (tensor<?x?xf32, ["n", "m"]>) -> tensor<?x?xf32, ["n", "m"]>
  %3 = tensor.concat dim(0) %x, %y : (tensor<?x?xf32, ["n", "m"]>, tensor<3x?xf32, ["m"]>) -> tensor<?x?xf32, ["n + 3", "m"]>
  %4 = "relay.strided_slice"(%x) {begin = array<i64: 1>, end = array<i64: 4611686018427387904>, axes = array<i64: 0>} : (tensor<?x?xf32, ["n", "m"]>) -> tensor<?x?xf32, ["max(n - 1, 0)", "m"]>
  return %0, %1, %2, %3, %4 : tensor<?x1xf32, ["n"]>, tensor<?x?xf32, ["n", "m"]>, tensor<?x?xf32, ["n", "m"]>, tensor<?x?xf32, ["n + 3", "m"]>, tensor<?x?xf32, ["max(n - 1, 0)", "m"]>
}

// -----

// A whole factor between sizes is an affine index. The last element along an axis is a slice at its size less one.
// CHECK: affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 floordiv 2, d3 floordiv 2)>
// CHECK-LABEL: func.func private @fused_image_resize2d(
// CHECK: linalg.generic {indexing_maps = [#map, #map1]
// CHECK-NOT: tensor.extract
// CHECK-LABEL: func.func private @fused_take(
// CHECK-SAME: %[[X:\w+]]: tensor<?x3xf32, ["n"]>
// CHECK: %[[LAST:.*]] = arith.maxsi
// CHECK: tensor.extract_slice %[[X]][%[[LAST]], 0] [1, 3] [1, 1]
func.func @main(%x: tensor<?x3xf32, ["n"]>, %y: tensor<1x1x?x?xf32, ["h", "w"]>) -> (tensor<3xf32>, tensor<1x1x?x?xf32, ["2*h", "2*w"]>) {
  %c = "relay.constant"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %0 = "relay.take"(%x, %c) {axis = 0 : i64, mode = "fast"} : (tensor<?x3xf32, ["n"]>, tensor<i64>) -> tensor<3xf32>
  %1 = "relay.image_resize2d"(%y) {size = ["2*h", "2*w"], method = "nearest_neighbor", coordinate_transformation_mode = "asymmetric"} : (tensor<1x1x?x?xf32, ["h", "w"]>) -> tensor<1x1x?x?xf32, ["2*h", "2*w"]>
  return %0, %1 : tensor<3xf32>, tensor<1x1x?x?xf32, ["2*h", "2*w"]>
}
