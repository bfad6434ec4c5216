// RUN: relayc-opt %s --passes graph-pipeline --split-input-file | filecheck %s

// A size is written in one way, however the program wrote it: what a pass builds has the same type.
// CHECK-LABEL: func.func @main(%arg0: tensor<?x?x4xf32, ["n", "m"]>) -> tensor<?x4xf32, ["m*n"]>
// CHECK: "relay.reshape"(%arg0) {{.*}} -> tensor<?x4xf32, ["m*n"]>
func.func @main(%x: tensor<?x?x4xf32, ["n", "m"]>) -> tensor<?x4xf32, ["n*m"]> {
  %0 = "relay.reshape"(%x) {newshape = array<i64: -1, 4>} : (tensor<?x?x4xf32, ["n", "m"]>) -> tensor<?x4xf32, ["n*m"]>
  return %0 : tensor<?x4xf32, ["n*m"]>
}

// -----

// CHECK-LABEL: func.func @main(%arg0: tensor<?x4xf32, ["n"]>) -> tensor<1x4xf32>
module attributes {relay.symbols = {n = array<i64: 1, 64, 8>}} {
  func.func @main(%x: tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["min(n, 1)"]> {
    %0 = "relay.strided_slice"(%x) {begin = array<i64: 0>, end = array<i64: 1>, strides = array<i64: 1>, axes = array<i64: 0>} : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["min(n, 1)"]>
    return %0 : tensor<?x4xf32, ["min(n, 1)"]>
  }
}
