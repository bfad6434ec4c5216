// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// A bottom-up merge of indices in the two rows of one work tensor.
// CHECK-LABEL: func.func private @fused_argsort(
// CHECK: arith.cmpf ogt
// CHECK: arith.trunci {{.*}} : i64 to i32
// CHECK-LABEL: func.func private @fused_sort(
// CHECK: tensor.empty() : tensor<2x5xi64>
// CHECK: scf.for {{.*}}
// CHECK: arith.shli
// CHECK: arith.cmpf olt
// CHECK: arith.cmpf une
// CHECK: tensor.insert {{.*}} tensor<2x5xi64>
func.func @main(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xi32>) {
  %0 = "relay.sort"(%x) : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = "relay.argsort"(%x) {is_ascend = false} : (tensor<3x5xf32>) -> tensor<3x5xi32>
  return %0, %1 : tensor<3x5xf32>, tensor<3x5xi32>
}

// -----

// A few of many are inserted: an element that is not better than the worst of them costs one comparison.
// CHECK-LABEL: func.func private @fused_topk(
// CHECK: tensor.empty() : tensor<1x2xi64>
// CHECK: arith.constant 50 : index
// CHECK: arith.cmpf ogt
// CHECK: scf.if
// CHECK: scf.for
// CHECK: scf.yield
func.func @main(%x: tensor<3x50xf32>) -> (tensor<3x2xi32>) {
  %0 = "relay.topk"(%x) {k = 2, ret_type = "indices"} : (tensor<3x50xf32>) -> tensor<3x2xi32>
  return %0 : tensor<3x2xi32>
}

// -----

// Integers have no NaN; lines along an inner axis are views in three dimensions.
// CHECK-LABEL: func.func private @fused_sort(
// CHECK: tensor.empty() : tensor<2x5xi64>
// CHECK: arith.cmpi ult
// CHECK-NOT: arith.cmpf
// CHECK: return
func.func @main(%x: tensor<6x5x2xui8>) -> (tensor<6x5x2xui8>) {
  %0 = "relay.sort"(%x) {axis = 1} : (tensor<6x5x2xui8>) -> tensor<6x5x2xui8>
  return %0 : tensor<6x5x2xui8>
}

// -----

// Rows are compared up to the first column in which they differ.
// CHECK-LABEL: func.func private @fused_argsort_rows(
// CHECK-SAME: %[[X:\w+]]: tensor<?x?xi32, ["n", "m"]>, %[[M:\w+]]: index {relay.symbol = "m"}, %[[N:\w+]]: index {relay.symbol = "n"}
// CHECK: tensor.empty(%[[N]]) : tensor<2x?xi64, ["n"]>
// CHECK: scf.while
// CHECK: arith.cmpi slt, %{{.*}}, %[[M]] : index
// CHECK: scf.condition
// CHECK: tensor.extract %[[X]]
func.func @main(%x: tensor<?x?xi32, ["n", "m"]>) -> tensor<?xi64, ["n"]> {
  %0 = "relay.argsort_rows"(%x) : (tensor<?x?xi32, ["n", "m"]>) -> tensor<?xi64, ["n"]>
  return %0 : tensor<?xi64, ["n"]>
}
