// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// Elements of a tensor become values of symbols, which sizes after it say.
// CHECK-LABEL: func.func @define
// CHECK: "relay.define_sizes"(%arg0) {names = ["k", "l"]} : (tensor<2xi64>) -> ()
// CHECK: "relay.define_sizes"(%arg1) {names = ["m"]} : (tensor<i32>) -> ()
// CHECK: "relay.define_sizes"(%0) {names = ["p", "q"]} : (tensor<2xi64>) -> ()
// CHECK: "relay.zeros"() {shape = ["k", "l + m", 3]} : () -> tensor<?x?x3xf32, ["k", "l + m"]>
func.func @define(%s: tensor<2xi64>, %m: tensor<i32>) {
  "relay.define_sizes"(%s) {names = ["k", "l"]} : (tensor<2xi64>) -> ()
  "relay.define_sizes"(%m) {names = ["m"]} : (tensor<i32>) -> ()
  %u = "relay.add"(%s, %s) : (tensor<2xi64>, tensor<2xi64>) -> tensor<?xi64>
  "relay.define_sizes"(%u) {names = ["p", "q"]} : (tensor<?xi64>) -> ()
  %0 = "relay.zeros"() {shape = ["k", "l + m", 3]} : () -> tensor<?x?x?xf32>
  return
}

// -----

// What a program states of a shape is known from there on.
// CHECK-LABEL: func.func @match
// CHECK: %[[X:.*]] = "relay.match_shape"(%arg0) {shape = ["m", 768]} : (tensor<?x?xf32, ["n", "d"]>) -> tensor<?x768xf32, ["m"]>
// CHECK: "relay.add"(%[[X]], %arg1) : (tensor<?x768xf32, ["m"]>, tensor<?x768xf32, ["m"]>) -> tensor<?x768xf32, ["m"]>
func.func @match(%x: tensor<?x?xf32, ["n", "d"]>, %y: tensor<?x768xf32, ["m"]>) {
  %0 = "relay.match_shape"(%x) {shape = ["m", 768]} : (tensor<?x?xf32, ["n", "d"]>) -> tensor<?x?xf32>
  %1 = "relay.add"(%0, %y) : (tensor<?x?xf32>, tensor<?x768xf32, ["m"]>) -> tensor<?x?xf32>
  return
}

// -----

// The same sizes written otherwise.
// CHECK-LABEL: func.func @cast
// CHECK: "relay.cast_shape"(%arg0) {shape = ["k", 4]} : (tensor<?x4xf32, ["2*n"]>) -> tensor<?x4xf32, ["k"]>
func.func @cast(%x: tensor<?x4xf32, ["2*n"]>) {
  %0 = "relay.cast_shape"(%x) {shape = ["k", 4]} : (tensor<?x4xf32, ["2*n"]>) -> tensor<?x?xf32>
  return
}

// -----

// Attributes of operators say expressions.
// CHECK-LABEL: func.func @attributes
// CHECK: "relay.strided_slice"{{.*}} -> tensor<?x8xf32, ["n"]>
// CHECK: "relay.reshape"{{.*}} -> tensor<?x4x2xf32, ["n + past"]>
// CHECK: "relay.broadcast_to"{{.*}} -> tensor<?x?x8xf32, ["b", "n + past"]>
// CHECK: "relay.tile"{{.*}} -> tensor<?x?xf32, ["n*past + past*past", "8*b"]>
func.func @attributes(%x: tensor<?x8xf32, ["n + past"]>, %p: tensor<?xf32, ["past"]>, %n: tensor<?xf32, ["n"]>, %b: tensor<?xf32, ["b"]>) {
  %0 = "relay.strided_slice"(%x) {begin = ["past", 0], end = ["n + past", 8]} : (tensor<?x8xf32, ["n + past"]>) -> tensor<?x?xf32>
  %1 = "relay.reshape"(%x) {newshape = ["n + past", -1, 2]} : (tensor<?x8xf32, ["n + past"]>) -> tensor<?x?x?xf32>
  %2 = "relay.broadcast_to"(%x) {shape = ["b", "n + past", 8]} : (tensor<?x8xf32, ["n + past"]>) -> tensor<?x?x?xf32>
  %3 = "relay.tile"(%x) {reps = ["past", "b"]} : (tensor<?x8xf32, ["n + past"]>) -> tensor<?x?xf32>
  return
}
