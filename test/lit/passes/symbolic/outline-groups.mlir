// RUN: relayc-opt %s --passes fuse-ops,outline-groups | filecheck %s

// Groups keep the names of their symbols: equal ones of one size share a function, those of other sizes have their own.
// CHECK: func.func private @fused_zeros(){{.*}} -> tensor<?xf32, ["m + n"]>
// CHECK: func.func private @fused_exp_1(%arg0: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
// CHECK: func.func private @fused_exp(%arg0: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
// CHECK-LABEL: func.func @main
// CHECK: call @fused_exp
// CHECK: call @fused_exp_1
// CHECK: call @fused_exp
func.func @main(%x: tensor<?xf32, ["m"]>, %y: tensor<?xf32, ["n"]>) -> (tensor<?xf32, ["m"]>, tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>, tensor<?xf32, ["m + n"]>) {
  %0 = "relay.exp"(%x) : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
  %1 = "relay.exp"(%y) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %2 = "relay.match_shape"(%0) {shape = ["m"]} : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
  %3 = "relay.exp"(%2) : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
  %4 = "relay.zeros"() {shape = ["m + n"], dtype = "float32"} : () -> tensor<?xf32, ["m + n"]>
  return %0, %1, %3, %4 : tensor<?xf32, ["m"]>, tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>, tensor<?xf32, ["m + n"]>
}
