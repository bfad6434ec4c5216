// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s
// RUN: relayc-opt %s --passes infer-type,infer-type --split-input-file | filecheck %s

// Sizes of which nothing is known get symbols named after the argument.
// CHECK-LABEL: func.func @named
// CHECK-SAME: (%arg0: tensor<?x3xf32, ["ids_0"]> {relay.name = "ids"}, %arg1: tensor<?x?xf32, ["arg1_0", "arg1_1"]>)
// CHECK-SAME: -> tensor<3x?xf32, ["ids_0"]>
// CHECK: "relay.transpose"(%arg0) : (tensor<?x3xf32, ["ids_0"]>) -> tensor<3x?xf32, ["ids_0"]>
func.func @named(%x: tensor<?x3xf32> {relay.name = "ids"}, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = "relay.transpose"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Those of which something is known keep it.
// CHECK-LABEL: func.func @some
// CHECK-SAME: (%arg0: tensor<?x3xf32, ["k"]>, %arg1: tensor<?x3xf32, ["arg1_0"]>, %arg2: tensor<?xf32, ["arg2_0"]>)
func.func @some(%x: tensor<?x3xf32, ["k"]>, %y: tensor<?x3xf32>, %z: tensor<?xf32>) -> tensor<?xf32> {
  return %z : tensor<?xf32>
}

// -----

// Sizes that an operator wants equal are; one that it wants to be a number is that.
// CHECK-LABEL: func.func @equal
// CHECK-SAME: (%arg0: tensor<?x8xf32, ["arg0_0"]>, %arg1: tensor<?x8xf32, ["arg0_0"]>, %arg2: tensor<4x8xf32>)
// CHECK-SAME: -> tensor<?x4xf32, ["arg0_0"]>
func.func @equal(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %w: tensor<4x8xf32>) -> tensor<?x?xf32> {
  %0 = "relay.add"(%x, %y) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = "relay.nn_dense"(%0, %w) : (tensor<?x?xf32>, tensor<4x8xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// Expressions reach results.
// CHECK-LABEL: func.func @cache
// CHECK: tensor.concat dim(1) {{.*}} -> tensor<2x?x64xf32, ["n + past"]>
// CHECK: "relay.reshape"{{.*}} -> tensor<2x?x8x8xf32, ["n + past"]>
func.func @cache(%old: tensor<2x?x64xf32, ["past"]>, %new: tensor<2x?x64xf32, ["n"]>) -> tensor<2x?x?x8xf32> {
  %0 = tensor.concat dim(1) %old, %new : (tensor<2x?x64xf32, ["past"]>, tensor<2x?x64xf32, ["n"]>) -> tensor<2x?x64xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 0, 0, 8, -1>} : (tensor<2x?x64xf32>) -> tensor<2x?x?x8xf32>
  return %1 : tensor<2x?x?x8xf32>
}

// -----

// A function keeps its own symbols, and is called at several sizes.
// CHECK-LABEL: func.func private @twice(%arg0: tensor<?x3xf32, ["k"]>) -> tensor<?x3xf32, ["2*k"]>
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = "relay.cast_shape"(%arg0) {shape = ["k", 3]} : (tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32, ["k"]>
// CHECK: %[[B:.*]] = call @twice(%[[A]]) : (tensor<?x3xf32, ["k"]>) -> tensor<?x3xf32, ["2*k"]>
// CHECK: %[[C:.*]] = "relay.cast_shape"(%[[B]]) {shape = ["2*n", 3]}
// CHECK: %[[D:.*]] = "relay.cast_shape"(%[[C]]) {shape = ["k", 3]} : (tensor<?x3xf32, ["2*n"]>) -> tensor<?x3xf32, ["k"]>
// CHECK: %[[E:.*]] = call @twice(%[[D]])
// CHECK: %[[F:.*]] = "relay.cast_shape"(%[[E]]) {shape = ["4*n", 3]}
// CHECK: return {{.*}} : tensor<?x3xf32, ["4*n"]>
func.func private @twice(%x: tensor<?x3xf32, ["k"]>) -> tensor<?x3xf32, ["2*k"]> {
  %0 = tensor.concat dim(0) %x, %x : (tensor<?x3xf32, ["k"]>, tensor<?x3xf32, ["k"]>) -> tensor<?x3xf32, ["2*k"]>
  return %0 : tensor<?x3xf32, ["2*k"]>
}
func.func @main(%x: tensor<?x3xf32, ["n"]>) -> tensor<?x?xf32> {
  %a = "relay.cast_shape"(%x) {shape = ["k", 3]} : (tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32, ["k"]>
  %0 = call @twice(%a) : (tensor<?x3xf32, ["k"]>) -> tensor<?x3xf32, ["2*k"]>
  %b = "relay.cast_shape"(%0) {shape = ["2*n", 3]} : (tensor<?x3xf32, ["2*k"]>) -> tensor<?x3xf32, ["2*n"]>
  %c = "relay.cast_shape"(%b) {shape = ["k", 3]} : (tensor<?x3xf32, ["2*n"]>) -> tensor<?x3xf32, ["k"]>
  %1 = call @twice(%c) : (tensor<?x3xf32, ["k"]>) -> tensor<?x3xf32, ["2*k"]>
  %d = "relay.cast_shape"(%1) {shape = ["4*n", 3]} : (tensor<?x3xf32, ["2*k"]>) -> tensor<?x3xf32, ["4*n"]>
  %2 = "relay.cast_shape"(%d) {shape = ["4*n", 3]} : (tensor<?x3xf32, ["4*n"]>) -> tensor<?x?xf32>
  return %2 : tensor<?x?xf32>
}

// -----

// Arguments of a private function say what its calls agree on: sizes that are equal in each call are one symbol.
// CHECK-LABEL: func.func private @sum
// CHECK-SAME: (%arg0: tensor<?x3xf32, ["n_0"]>, %arg1: tensor<?x3xf32, ["n_0"]>) -> tensor<?x3xf32, ["n_0"]>
// CHECK-LABEL: func.func @calls
// CHECK-SAME: -> tensor<?x3xf32, ["m + n"]>
func.func private @sum(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = "relay.add"(%x, %y) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @calls(%x: tensor<?x3xf32, ["n"]>, %y: tensor<?x3xf32, ["m"]>) -> tensor<?x?xf32> {
  %x0 = "relay.exp"(%x) : (tensor<?x3xf32, ["n"]>) -> tensor<?x?xf32>
  %y0 = "relay.exp"(%y) : (tensor<?x3xf32, ["m"]>) -> tensor<?x?xf32>
  %0 = call @sum(%x0, %x0) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = call @sum(%y0, %y0) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = tensor.concat dim(0) %0, %1 : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %2 : tensor<?x?xf32>
}

// -----

// A size that differs between branches is a new symbol.
// CHECK-LABEL: func.func @branches
// CHECK-SAME: -> tensor<?x3xf32, ["branch"]>
// CHECK: "relay.if"
// CHECK: }) : (tensor<i1>) -> tensor<?x3xf32, ["branch"]>
func.func @branches(%c: tensor<i1>, %x: tensor<?x3xf32, ["n"]>) -> tensor<?x?xf32> {
  %0 = "relay.if"(%c) ({
    "relay.yield"(%x) : (tensor<?x3xf32, ["n"]>) -> ()
  }, {
    %1 = tensor.concat dim(0) %x, %x : (tensor<?x3xf32, ["n"]>, tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32>
    "relay.yield"(%1) : (tensor<?x3xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A loop carries a size that a step changes as a symbol of its own, and one that it does not as it is.
// CHECK-LABEL: func.func @grows
// CHECK: ^bb0(%{{.*}}: tuple<tensor<i1>, tensor<?x?xf32, ["carried", "n"]>>):
// CHECK: ^bb0(%{{.*}}: tuple<tensor<i1>, tensor<?x?xf32, ["carried", "n"]>>):
// CHECK: tensor.concat dim(0) {{.*}} -> tensor<?x?xf32, ["carried + m", "n"]>
// CHECK: return {{.*}} : tensor<?x?xf32, ["carried", "n"]>
func.func @grows(%c: tensor<i1>, %x: tensor<?x?xf32, ["m", "n"]>) -> tensor<?x?xf32> {
  %1 = builtin.unrealized_conversion_cast %c, %x : tensor<i1>, tensor<?x?xf32, ["m", "n"]> to tuple<tensor<i1>, tensor<?x?xf32, ["m", "n"]>>
  %2 = "relay.while"(%1) ({
  ^bb0(%s: tuple<tensor<i1>, tensor<?x?xf32>>):
    %3 = "relay.tuple_get_item"(%s) {index = 0} : (tuple<tensor<i1>, tensor<?x?xf32>>) -> tensor<i1>
    "relay.yield"(%3) : (tensor<i1>) -> ()
  }, {
  ^bb0(%s: tuple<tensor<i1>, tensor<?x?xf32>>):
    %4 = "relay.tuple_get_item"(%s) {index = 1} : (tuple<tensor<i1>, tensor<?x?xf32>>) -> tensor<?x?xf32>
    %5 = tensor.concat dim(0) %4, %x : (tensor<?x?xf32>, tensor<?x?xf32, ["m", "n"]>) -> tensor<?x?xf32>
    %6 = builtin.unrealized_conversion_cast %c, %5 : tensor<i1>, tensor<?x?xf32> to tuple<tensor<i1>, tensor<?x?xf32>>
    "relay.yield"(%6) : (tuple<tensor<i1>, tensor<?x?xf32>>) -> ()
  }) : (tuple<tensor<i1>, tensor<?x?xf32, ["m", "n"]>>) -> tuple<tensor<i1>, tensor<?x?xf32>>
  %7 = "relay.tuple_get_item"(%2) {index = 1} : (tuple<tensor<i1>, tensor<?x?xf32>>) -> tensor<?x?xf32>
  return %7 : tensor<?x?xf32>
}

// -----

// A recursive function: nothing says the size of its result, which is another one at each call.
// CHECK-LABEL: func.func private @climb
// CHECK-SAME: (%arg0: tensor<i1>, %arg1: tensor<?x3xf32, ["n_0"]>) -> tensor<?x3xf32, ["branch"]>
// CHECK: %[[A:.*]] = "relay.cast_shape"(%concat) {shape = ["n_0", 3]} : (tensor<?x3xf32, ["2*n_0"]>) -> tensor<?x3xf32, ["n_0"]>
// CHECK: %[[R:.*]] = func.call @climb(%arg0, %[[A]]) : (tensor<i1>, tensor<?x3xf32, ["n_0"]>) -> tensor<?x3xf32, ["branch"]>
// CHECK: "relay.cast_shape"(%[[R]]) {shape = ["size", 3]} : (tensor<?x3xf32, ["branch"]>) -> tensor<?x3xf32, ["size"]>
// CHECK-LABEL: func.func @start
// CHECK-SAME: -> tensor<?x3xf32, ["branch_0"]>
func.func private @climb(%c: tensor<i1>, %x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "relay.if"(%c) ({
    %1 = tensor.concat dim(0) %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %2 = func.call @climb(%c, %1) : (tensor<i1>, tensor<?x3xf32>) -> tensor<?x3xf32>
    "relay.yield"(%2) : (tensor<?x3xf32>) -> ()
  }, {
    "relay.yield"(%x) : (tensor<?x3xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
func.func @start(%c: tensor<i1>, %x: tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32> {
  %x0 = "relay.exp"(%x) : (tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32>
  %0 = call @climb(%c, %x0) : (tensor<i1>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// Sizes are written in one form, whatever they are written as.
// CHECK-LABEL: func.func @form
// CHECK-SAME: (%arg0: tensor<?x?x?xf32, ["n", "m", "m*n"]>) -> tensor<?x?x?xf32, ["n", "m", "m*n"]>
// CHECK: "relay.nn_relu"(%arg0) : (tensor<?x?x?xf32, ["n", "m", "m*n"]>)
func.func @form(%x: tensor<?x?x?xf32, ["n", "m", "n*m"]>) -> tensor<?x?x?xf32, ["n", "m", "n*m"]> {
  %0 = "relay.nn_relu"(%x) : (tensor<?x?x?xf32, ["n", "m", "n*m"]>) -> tensor<?x?x?xf32, ["n", "m", "n*m"]>
  return %0 : tensor<?x?x?xf32, ["n", "m", "n*m"]>
}

// -----

// Sizes that differ before the loop, and that a step makes equal, are symbols of their own.
// CHECK-LABEL: func.func @become_equal
// CHECK: return {{.*}} : tensor<?x?xf32, ["carried", "carried_0"]>
func.func @become_equal(%c: tensor<i1>, %x: tensor<?x?xf32, ["m", "n"]>, %y: tensor<?x?xf32, ["k", "k"]>) -> tensor<?x?xf32> {
  %1 = builtin.unrealized_conversion_cast %c, %x : tensor<i1>, tensor<?x?xf32, ["m", "n"]> to tuple<tensor<i1>, tensor<?x?xf32, ["m", "n"]>>
  %2 = "relay.while"(%1) ({
  ^bb0(%s: tuple<tensor<i1>, tensor<?x?xf32>>):
    %3 = "relay.tuple_get_item"(%s) {index = 0} : (tuple<tensor<i1>, tensor<?x?xf32>>) -> tensor<i1>
    "relay.yield"(%3) : (tensor<i1>) -> ()
  }, {
  ^bb0(%s: tuple<tensor<i1>, tensor<?x?xf32>>):
    %5 = "relay.exp"(%y) : (tensor<?x?xf32, ["k", "k"]>) -> tensor<?x?xf32>
    %6 = builtin.unrealized_conversion_cast %c, %5 : tensor<i1>, tensor<?x?xf32> to tuple<tensor<i1>, tensor<?x?xf32>>
    "relay.yield"(%6) : (tuple<tensor<i1>, tensor<?x?xf32>>) -> ()
  }) : (tuple<tensor<i1>, tensor<?x?xf32, ["m", "n"]>>) -> tuple<tensor<i1>, tensor<?x?xf32>>
  %7 = "relay.tuple_get_item"(%2) {index = 1} : (tuple<tensor<i1>, tensor<?x?xf32>>) -> tensor<?x?xf32>
  return %7 : tensor<?x?xf32>
}

// -----

// Sizes that are equal before the loop, and that a step changes in different ways, are symbols of their own; those it changes alike are one.
// CHECK-LABEL: func.func @grow_apart
// CHECK: "relay.nn_pad"{{.*}} -> tensor<?x?x?xf32, ["carried + 1", "carried_0 + 2", "carried + 1"]>
// CHECK: return {{.*}} : tensor<?x?x?xf32, ["carried", "carried_0", "carried"]>
func.func @grow_apart(%c: tensor<i1>, %x: tensor<?x?x?xf32, ["m", "m", "m"]>) -> tensor<?x?x?xf32> {
  %zero = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %1 = builtin.unrealized_conversion_cast %c, %x : tensor<i1>, tensor<?x?x?xf32, ["m", "m", "m"]> to tuple<tensor<i1>, tensor<?x?x?xf32, ["m", "m", "m"]>>
  %2 = "relay.while"(%1) ({
  ^bb0(%s: tuple<tensor<i1>, tensor<?x?x?xf32>>):
    %3 = "relay.tuple_get_item"(%s) {index = 0} : (tuple<tensor<i1>, tensor<?x?x?xf32>>) -> tensor<i1>
    "relay.yield"(%3) : (tensor<i1>) -> ()
  }, {
  ^bb0(%s: tuple<tensor<i1>, tensor<?x?x?xf32>>):
    %4 = "relay.tuple_get_item"(%s) {index = 1} : (tuple<tensor<i1>, tensor<?x?x?xf32>>) -> tensor<?x?x?xf32>
    %5 = "relay.nn_pad"(%4, %zero) {pad_width = array<i64: 0, 1, 0, 2, 1, 0>} : (tensor<?x?x?xf32>, tensor<f32>) -> tensor<?x?x?xf32>
    %6 = builtin.unrealized_conversion_cast %c, %5 : tensor<i1>, tensor<?x?x?xf32> to tuple<tensor<i1>, tensor<?x?x?xf32>>
    "relay.yield"(%6) : (tuple<tensor<i1>, tensor<?x?x?xf32>>) -> ()
  }) : (tuple<tensor<i1>, tensor<?x?x?xf32, ["m", "m", "m"]>>) -> tuple<tensor<i1>, tensor<?x?x?xf32>>
  %7 = "relay.tuple_get_item"(%2) {index = 1} : (tuple<tensor<i1>, tensor<?x?x?xf32>>) -> tensor<?x?x?xf32>
  return %7 : tensor<?x?x?xf32>
}
