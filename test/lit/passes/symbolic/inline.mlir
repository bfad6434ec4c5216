// RUN: relayc-opt %s --passes inline --split-input-file | filecheck %s
// RUN: relayc-opt %s --passes infer-type,inline --split-input-file | filecheck %s

// The symbols of the callee's arguments become the sizes of the call, in types and attributes; the casts around the call go.
func.func private @twice(%x: tensor<?x4xf32, ["n"]>) -> tensor<?xf32, ["8*n"]> {
  %0 = tensor.concat dim(0) %x, %x : (tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["2*n"]>
  %1 = "relay.reshape"(%0) {newshape = ["8*n"]} : (tensor<?x4xf32, ["2*n"]>) -> tensor<?xf32, ["8*n"]>
  return %1 : tensor<?xf32, ["8*n"]>
}
func.func @sizes(%x: tensor<?x4xf32, ["m + 1"]>, %y: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["8*m + 8"]> {
  %0 = "relay.cast_shape"(%x) {shape = ["n", 4]} : (tensor<?x4xf32, ["m + 1"]>) -> tensor<?x4xf32, ["n"]>
  %1 = func.call @twice(%0) : (tensor<?x4xf32, ["n"]>) -> tensor<?xf32, ["8*n"]>
  %2 = "relay.cast_shape"(%1) {shape = ["8*m + 8"]} : (tensor<?xf32, ["8*n"]>) -> tensor<?xf32, ["8*m + 8"]>
  return %2 : tensor<?xf32, ["8*m + 8"]>
}
// CHECK-LABEL: func.func @sizes
// CHECK-NEXT: %[[C:.*]] = tensor.concat dim(0) %arg0, %arg0 : {{.*}} -> tensor<?x4xf32, ["2*m + 2"]>
// CHECK-NEXT: %[[R:.*]] = "relay.reshape"(%[[C]]) {newshape = ["8*m + 8"]} : {{.*}} -> tensor<?xf32, ["8*m + 8"]>
// CHECK-NEXT: return %[[R]]

// -----

// A symbol that the callee defines has the name by which the caller knows it, and a new one where that has none; two calls have two.
func.func private @count(%x: tensor<?xf32, ["n"]>, %c: tensor<i64>) -> tensor<?xf32, ["k"]> {
  "relay.define_sizes"(%c) {names = ["k"]} : (tensor<i64>) -> ()
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 0>, end = ["k"], strides = array<i64: 1>} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["min(k, n)"]>
  %1 = "relay.match_shape"(%0) {shape = ["k"]} : (tensor<?xf32, ["min(k, n)"]>) -> tensor<?xf32, ["k"]>
  return %1 : tensor<?xf32, ["k"]>
}
func.func @names(%x: tensor<?xf32, ["n"]>, %c: tensor<i64>) -> (tensor<?xf32, ["few"]>, tensor<?xf32, ["more"]>) {
  %0 = func.call @count(%x, %c) : (tensor<?xf32, ["n"]>, tensor<i64>) -> tensor<?xf32, ["k"]>
  %1 = "relay.cast_shape"(%0) {shape = ["few"]} : (tensor<?xf32, ["k"]>) -> tensor<?xf32, ["few"]>
  %2 = "relay.cast_shape"(%1) {shape = ["n"]} : (tensor<?xf32, ["few"]>) -> tensor<?xf32, ["n"]>
  %3 = func.call @count(%2, %c) : (tensor<?xf32, ["n"]>, tensor<i64>) -> tensor<?xf32, ["k"]>
  %4 = "relay.cast_shape"(%3) {shape = ["more"]} : (tensor<?xf32, ["k"]>) -> tensor<?xf32, ["more"]>
  return %1, %4 : tensor<?xf32, ["few"]>, tensor<?xf32, ["more"]>
}
// CHECK-LABEL: func.func @names
// CHECK-NEXT: "relay.define_sizes"(%arg1) {names = ["few"]}
// CHECK-NEXT: %[[A:.*]] = "relay.strided_slice"(%arg0) {{.*}}end = ["few"]{{.*}} -> tensor<?xf32, ["min(few, n)"]>
// CHECK-NEXT: %[[B:.*]] = "relay.match_shape"(%[[A]]) {shape = ["few"]}
// CHECK-NEXT: "relay.define_sizes"(%arg1) {names = ["more"]}
// CHECK-NEXT: %[[C:.*]] = "relay.strided_slice"(%[[B]]) {{.*}}end = ["more"]{{.*}} -> tensor<?xf32, ["min(few, more)"]>
// CHECK-NEXT: %[[D:.*]] = "relay.match_shape"(%[[C]]) {shape = ["more"]}
// CHECK-NEXT: return %[[B]], %[[D]]

// A size that the caller knows as a number is checked to be that number.
func.func @number(%x: tensor<?xf32, ["n"]>, %c: tensor<i64>) -> tensor<4xf32> {
  %0 = func.call @count(%x, %c) : (tensor<?xf32, ["n"]>, tensor<i64>) -> tensor<?xf32, ["k"]>
  %1 = "relay.cast_shape"(%0) {shape = [4]} : (tensor<?xf32, ["k"]>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @number
// CHECK-NEXT: "relay.define_sizes"(%arg1) {names = ["k_0"]}
// CHECK-NEXT: relay.strided_slice
// CHECK-NEXT: %[[E:.*]] = "relay.match_shape"(%{{.*}}) {shape = ["k_0"]}
// CHECK-NEXT: "relay.match_shape"(%[[E]]) {shape = array<i64: 4>}

// -----

// Calls in the callee keep the symbols of their own callee, though they have the same names.
func.func private @deep(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %0 = func.call @deep(%x) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
func.func private @around(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %0 = func.call @deep(%x) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %1 = "relay.exp"(%0) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}
func.func @nested(%x: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]> {
  %0 = "relay.cast_shape"(%x) {shape = ["n"]} : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
  %1 = func.call @around(%0) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %2 = "relay.cast_shape"(%1) {shape = ["m"]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m"]>
  return %2 : tensor<?xf32, ["m"]>
}
// CHECK-LABEL: func.func @nested
// CHECK-NEXT: %[[A:.*]] = "relay.cast_shape"(%arg0) {shape = ["n"]}
// CHECK-NEXT: %[[R:.*]] = call @deep(%[[A]])
// CHECK-NEXT: %[[C:.*]] = "relay.cast_shape"(%[[R]]) {shape = ["m"]}
// CHECK-NEXT: "relay.exp"(%[[C]]) : (tensor<?xf32, ["m"]>)

// -----

// What is known of a callee's symbol is not known of every size: a body that was simplified by it stays where it is.
// CHECK-LABEL: func.func @ranges
// CHECK: call @bounded
module attributes {relay.symbols = {few = array<i64: 1, 4, 2>}} {
  func.func private @bounded(%x: tensor<?xf32, ["few"]>) -> tensor<1xf32> {
    %0 = "relay.strided_slice"(%x) {begin = array<i64: 0>, end = array<i64: 1>, strides = array<i64: 1>} : (tensor<?xf32, ["few"]>) -> tensor<1xf32>
    return %0 : tensor<1xf32>
  }
  func.func @ranges(%x: tensor<?xf32, ["m"]>) -> tensor<1xf32> {
    %0 = "relay.cast_shape"(%x) {shape = ["few"]} : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["few"]>
    %1 = func.call @bounded(%0) : (tensor<?xf32, ["few"]>) -> tensor<1xf32>
    return %1 : tensor<1xf32>
  }
}

// -----

// Fields of a result, too, have the names of the caller; what is known of a symbol of the callee is known of what it becomes.
// CHECK: relay.symbols = {few = array<i64: 1, 9, 4>, k = array<i64: 1, 9, 4>, more = array<i64: 1, 9, 4>}
// CHECK-LABEL: func.func @fields
// CHECK-NEXT: "relay.define_sizes"(%arg1) {names = ["few"]}
// CHECK: "relay.match_shape"(%{{.*}}) {shape = ["few"]}
// CHECK-NEXT: %{{.*}} = builtin.unrealized_conversion_cast %{{.*}}, %arg0 : {{.*}} to tuple<tensor<?xf32, ["few"]>, tensor<?xf32, ["m"]>>
// CHECK: "relay.define_sizes"(%arg1) {names = ["more"]}
// CHECK: "relay.match_shape"(%{{.*}}) {shape = ["more"]}
// CHECK-NEXT: %{{.*}} = builtin.unrealized_conversion_cast %{{.*}}, %arg0 : {{.*}} to tuple<tensor<?xf32, ["more"]>, tensor<?xf32, ["m"]>>
// CHECK-NOT: relay.cast_shape
// CHECK: return %{{.*}} : tensor<?xf32, ["few"]>, tensor<?xf32, ["m"]>, tensor<?xf32, ["more"]>
module attributes {relay.symbols = {k = array<i64: 1, 9, 4>}} {
  func.func private @pair(%x: tensor<?xf32, ["n"]>, %c: tensor<i64>) -> tuple<tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>> {
    "relay.define_sizes"(%c) {names = ["k"]} : (tensor<i64>) -> ()
    %0 = "relay.strided_slice"(%x) {begin = array<i64: 0>, end = ["k"], strides = array<i64: 1>} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["min(k, n)"]>
    %1 = "relay.match_shape"(%0) {shape = ["k"]} : (tensor<?xf32, ["min(k, n)"]>) -> tensor<?xf32, ["k"]>
    %2 = "builtin.unrealized_conversion_cast"(%1, %x) : (tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>) -> tuple<tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>>
    return %2 : tuple<tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>>
  }
  func.func @fields(%x: tensor<?xf32, ["m"]>, %c: tensor<i64>) -> (tensor<?xf32, ["few"]>, tensor<?xf32, ["m"]>, tensor<?xf32, ["more"]>) {
    %given = "relay.cast_shape"(%x) {shape = ["n"]} : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
    %0 = func.call @pair(%given, %c) : (tensor<?xf32, ["n"]>, tensor<i64>) -> tuple<tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>>
    %1 = "relay.tuple_get_item"(%0) {index = 0} : (tuple<tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>>) -> tensor<?xf32, ["k"]>
    %2 = "relay.cast_shape"(%1) {shape = ["few"]} : (tensor<?xf32, ["k"]>) -> tensor<?xf32, ["few"]>
    %3 = "relay.tuple_get_item"(%0) {index = 1} : (tuple<tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>>) -> tensor<?xf32, ["n"]>
    %4 = "relay.cast_shape"(%3) {shape = ["m"]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m"]>
    %5 = func.call @pair(%given, %c) : (tensor<?xf32, ["n"]>, tensor<i64>) -> tuple<tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>>
    %6 = "relay.tuple_get_item"(%5) {index = 0} : (tuple<tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>>) -> tensor<?xf32, ["k"]>
    %7 = "relay.cast_shape"(%6) {shape = ["more"]} : (tensor<?xf32, ["k"]>) -> tensor<?xf32, ["more"]>
    return %2, %4, %7 : tensor<?xf32, ["few"]>, tensor<?xf32, ["m"]>, tensor<?xf32, ["more"]>
  }
}
