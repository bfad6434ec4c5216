// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// A program takes its symbols behind its tensors, and gives the values of those that it defines. Data and statements of shapes become integers
// and requirements; a branch gives the sizes of its results.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[M:[a-z0-9]+]]: index {relay.symbol = "m"}, %[[N:[a-z0-9]+]]: index {relay.symbol = "n"})
// CHECK-SAME: index {relay.symbol = "branch"}, index {relay.symbol = "k"})
// CHECK: %[[TWICE:.*]] = arith.muli %[[N]],
// CHECK: %[[K:.*]] = arith.index_cast %{{.*}} {relay.symbol = "k"} : i64 to index
// CHECK: "relay.require"(%[[K]], %{{.*}}) {{.*}}k: expected 0 or more, found %lld", predicate = "ge"}
// CHECK: "relay.require"(%{{.*}}, %[[K]]) {{.*}}k: expected at most %lld, found %lld", predicate = "ge"}
// CHECK: "relay.require"(%[[M]], %[[N]]) {{.*}}dimension 0: m is %lld and n is %lld, expected the same", predicate = "eq"}
// CHECK: %[[Y:.*]] = tensor.cast %arg1 : tensor<?xf32, ["m"]> to tensor<?xf32, ["n"]>
// CHECK: call @fused_add(%arg0, %[[Y]], %[[N]])
// CHECK: call @fused_zeros(%[[K]])
// CHECK: %[[R:.*]]:2 = scf.if %{{.*}} -> (tensor<?xf32, ["branch"]>, index) {
// CHECK: scf.yield %{{.*}}, %[[N]]
// CHECK: scf.yield %{{.*}}, %[[TWICE]]
// CHECK: } {relay.symbols = ["branch"]}
// CHECK: return %{{.*}}, %{{.*}}, %[[R]]#0, %[[R]]#1, %[[K]]
func.func @main(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>, %c: tensor<1xi64>, %b: tensor<i1>, %z: tensor<?xf32, ["2*n"]>) -> (tensor<?xf32, ["n"]>, tensor<?xf32, ["k"]>, tensor<?xf32, ["branch"]>) {
  "relay.define_sizes"(%c) {names = ["k"]} : (tensor<1xi64>) -> ()
  %0 = "relay.match_shape"(%y) {shape = ["n"]} : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
  %1 = "relay.add"(%x, %0) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %2 = "relay.zeros"() {shape = ["k"], dtype = "float32"} : () -> tensor<?xf32, ["k"]>
  %3 = "relay.if"(%b) ({
    "relay.yield"(%x) : (tensor<?xf32, ["n"]>) -> ()
  }, {
    %4 = "relay.exp"(%z) : (tensor<?xf32, ["2*n"]>) -> tensor<?xf32, ["2*n"]>
    "relay.yield"(%4) : (tensor<?xf32, ["2*n"]>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32, ["branch"]>
  return %1, %2, %3 : tensor<?xf32, ["n"]>, tensor<?xf32, ["k"]>, tensor<?xf32, ["branch"]>
}

// -----

// What changes its size in a loop is carried with that size.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]]:3 = scf.while (%{{.*}} = %arg0, %{{.*}} = %{{.*}}, %{{.*}} = %arg2) : (tensor<i32>, tensor<?xf32, ["m"]>, index)
// CHECK: ^bb0(%{{.*}}: tensor<i32>, %[[X:.*]]: tensor<?xf32, ["m"]>, %[[M:.*]]: index):
// CHECK: %[[C:.*]] = func.call @fused_concatenate(%[[X]], %arg1, %[[M]], %arg2)
// CHECK: %[[T:.*]] = tensor.cast %[[C]] : tensor<?xf32, ["m + n"]> to tensor<?xf32, ["m"]>
// CHECK: %[[S:.*]] = arith.addi %[[M]], %arg2
// CHECK: scf.yield %{{.*}}, %[[T]], %[[S]]
// CHECK: } attributes {relay.symbols = ["m"]}
// CHECK: return %[[W]]#1, %[[W]]#2
func.func @main(%i: tensor<i32>, %x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m"]> {
  %0 = builtin.unrealized_conversion_cast %i, %x : tensor<i32>, tensor<?xf32, ["n"]> to tuple<tensor<i32>, tensor<?xf32, ["n"]>>
  %1 = "relay.while"(%0) ({
  ^bb0(%s: tuple<tensor<i32>, tensor<?xf32, ["m"]>>):
    %3 = "relay.tuple_get_item"(%s) {index = 0} : (tuple<tensor<i32>, tensor<?xf32, ["m"]>>) -> tensor<i32>
    %k = "relay.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %4 = "relay.less"(%3, %k) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "relay.yield"(%4) : (tensor<i1>) -> ()
  }, {
  ^bb0(%s: tuple<tensor<i32>, tensor<?xf32, ["m"]>>):
    %3 = "relay.tuple_get_item"(%s) {index = 0} : (tuple<tensor<i32>, tensor<?xf32, ["m"]>>) -> tensor<i32>
    %4 = "relay.tuple_get_item"(%s) {index = 1} : (tuple<tensor<i32>, tensor<?xf32, ["m"]>>) -> tensor<?xf32, ["m"]>
    %5 = tensor.concat dim(0) %4, %x : (tensor<?xf32, ["m"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m + n"]>
    %7 = builtin.unrealized_conversion_cast %3, %5 : tensor<i32>, tensor<?xf32, ["m + n"]> to tuple<tensor<i32>, tensor<?xf32, ["m + n"]>>
    "relay.yield"(%7) : (tuple<tensor<i32>, tensor<?xf32, ["m + n"]>>) -> ()
  }) : (tuple<tensor<i32>, tensor<?xf32, ["n"]>>) -> tuple<tensor<i32>, tensor<?xf32, ["m"]>>
  %2 = "relay.tuple_get_item"(%1) {index = 1} : (tuple<tensor<i32>, tensor<?xf32, ["m"]>>) -> tensor<?xf32, ["m"]>
  return %2 : tensor<?xf32, ["m"]>
}

// -----

// MLIR does not know that a tensor of 0 and an unknown number of rows has no elements.
// CHECK: tensor.collapse_shape {{.*}} : tensor<?x?xf32, ["0", "n"]> into tensor<?xf32, ["0"]>
// CHECK: tensor.expand_shape {{.*}} : tensor<?xf32, ["0"]> into tensor<?x?x?xf32, ["0", "n", "3"]>
func.func @main(%x: tensor<0x?xf32, ["n"]>) -> tensor<0x?x3xf32, ["n"]> {
  %0 = "relay.reshape"(%x) {newshape = [0, "n", 3]} : (tensor<0x?xf32, ["n"]>) -> tensor<0x?x3xf32, ["n"]>
  return %0 : tensor<0x?x3xf32, ["n"]>
}
