// RUN: relayc-opt %s --passes simplify-expr,dead-code-elimination --split-input-file | filecheck %s

// Reshapes of reshapes; to the shape that it has.
// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT: return %arg0
func.func @reshapes(%x: tensor<?x?x4xf32, ["n", "m"]>) -> tensor<?x?x4xf32, ["n", "m"]> {
  %0 = "relay.reshape"(%x) {newshape = ["m*n", 4]} : (tensor<?x?x4xf32, ["n", "m"]>) -> tensor<?x4xf32, ["m*n"]>
  %1 = "relay.reshape"(%0) {newshape = ["4*m*n"]} : (tensor<?x4xf32, ["m*n"]>) -> tensor<?xf32, ["4*m*n"]>
  %2 = "relay.reshape"(%1) {newshape = ["n", "m", 4]} : (tensor<?xf32, ["4*m*n"]>) -> tensor<?x?x4xf32, ["n", "m"]>
  return %2 : tensor<?x?x4xf32, ["n", "m"]>
}

// -----

// A broadcast operand is left out where the result has its size without it.
// CHECK-LABEL: func.func @broadcasts
// CHECK-NEXT: %[[B:.*]] = "relay.broadcast_to"(%arg1)
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%arg0, %arg1)
// CHECK-NEXT: %[[C:.*]] = "relay.add"(%[[B]], %arg1)
// CHECK-NEXT: return %[[A]], %[[C]]
func.func @broadcasts(%x: tensor<?x4xf32, ["n"]>, %y: tensor<4xf32>) -> (tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>) {
  %0 = "relay.broadcast_to"(%y) {shape = ["n", 4]} : (tensor<4xf32>) -> tensor<?x4xf32, ["n"]>
  %1 = "relay.add"(%x, %0) : (tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  %2 = "relay.add"(%0, %y) : (tensor<?x4xf32, ["n"]>, tensor<4xf32>) -> tensor<?x4xf32, ["n"]>
  return %1, %2 : tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>
}

// -----

// The branches of a condition stand for the result only where they have its shape.
// CHECK-LABEL: func.func @conditions
// CHECK-NEXT: %[[W:.*]] = "relay.where"(%arg0, %arg1, %arg1)
// CHECK-NEXT: return %[[W]], %arg2
func.func @conditions(%c: tensor<?xi1, ["n"]>, %x: tensor<1xf32>, %y: tensor<?xf32, ["n"]>) -> (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) {
  %0 = "relay.where"(%c, %x, %x) : (tensor<?xi1, ["n"]>, tensor<1xf32>, tensor<1xf32>) -> tensor<?xf32, ["n"]>
  %1 = "relay.where"(%c, %y, %y) : (tensor<?xi1, ["n"]>, tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %0, %1 : tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>
}

// -----

// Two dimensions of which nothing is known may differ: what has one of each is not the other.
// CHECK-LABEL: func.func @unknown
// CHECK-NEXT: "relay.where"(%arg0, %arg1, %arg1)
func.func @unknown(%c: tensor<?xi1>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "relay.where"(%c, %x, %x) : (tensor<?xi1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Part of a concatenation: of a cache that grows by concatenation, what is new and what was there.
// CHECK-LABEL: func.func @cache
// CHECK-NEXT: %[[C:.*]] = tensor.concat
// CHECK-NEXT: %[[N:.*]] = "relay.strided_slice"(%arg1) {{.*}}begin = array<i64: 0>, end = ["n"]
// CHECK-NEXT: %[[P:.*]] = "relay.strided_slice"(%arg0) {{.*}}begin = array<i64: 0>, end = ["past"]
// CHECK-NEXT: %[[B:.*]] = "relay.strided_slice"(%[[C]]) {{.*}}end = ["n"]
// CHECK-NEXT: return %[[N]], %[[P]], %[[B]]
func.func @cache(%p: tensor<?x4xf32, ["past"]>, %x: tensor<?x4xf32, ["n"]>) -> (tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["past"]>, tensor<?x4xf32, ["n"]>) {
  %0 = tensor.concat dim(0) %p, %x : (tensor<?x4xf32, ["past"]>, tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n + past"]>
  %1 = "relay.strided_slice"(%0) {begin = ["past"], end = array<i64: 9223372036854775807>, strides = array<i64: 1>, axes = array<i64: 0>} : (tensor<?x4xf32, ["n + past"]>) -> tensor<?x4xf32, ["n"]>
  %2 = "relay.strided_slice"(%0) {begin = array<i64: 0>, end = ["past"], strides = array<i64: 1>, axes = array<i64: 0>} : (tensor<?x4xf32, ["n + past"]>) -> tensor<?x4xf32, ["past"]>
  %3 = "relay.strided_slice"(%0) {begin = array<i64: 0>, end = ["n"], strides = array<i64: 1>, axes = array<i64: 0>} : (tensor<?x4xf32, ["n + past"]>) -> tensor<?x4xf32, ["n"]>
  return %1, %2, %3 : tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["past"]>, tensor<?x4xf32, ["n"]>
}

// -----

// The first element of an axis that has one; of an axis that may be empty it is read with its index clamped.
// CHECK-LABEL: func.func @first
// CHECK: "relay.strided_slice"(%arg0) {{.*}}begin = array<i64: 0>, end = array<i64: 1>
// CHECK: "relay.strided_slice"(%arg0) {{.*}}begin = ["some - 1"], end = ["some"]
// CHECK: "relay.take"(%arg1
module attributes {relay.symbols = {some = array<i64: 1, 64, 8>}} {
  func.func @first(%x: tensor<?x4xf32, ["some"]>, %y: tensor<?x4xf32, ["any"]>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %i = "relay.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %j = "relay.constant"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
    %0 = "relay.take"(%x, %i) {axis = 0} : (tensor<?x4xf32, ["some"]>, tensor<i64>) -> tensor<4xf32>
    %1 = "relay.take"(%x, %j) {axis = 0, mode = "fast"} : (tensor<?x4xf32, ["some"]>, tensor<i64>) -> tensor<4xf32>
    %2 = "relay.take"(%y, %i) {axis = 0} : (tensor<?x4xf32, ["any"]>, tensor<i64>) -> tensor<4xf32>
    return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// The heads of a joint query, key and value, of symbolic batch and length.
// CHECK-LABEL: func.func @heads
// CHECK-NEXT: %[[R:.*]] = "relay.reshape"(%arg0) {{.*}}newshape = ["b", "s", 12, 8]
// CHECK-NEXT: "relay.strided_slice"(%[[R]]) {axes = array<i64: 2>, begin = array<i64: 4>, end = array<i64: 8>
func.func @heads(%x: tensor<?x?x96xf32, ["b", "s"]>) -> tensor<?x?x4x8xf32, ["b", "s"]> {
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 32>, end = array<i64: 64>, strides = array<i64: 1>, axes = array<i64: 2>} : (tensor<?x?x96xf32, ["b", "s"]>) -> tensor<?x?x32xf32, ["b", "s"]>
  %1 = "relay.reshape"(%0) {newshape = ["b", "s", 4, 8]} : (tensor<?x?x32xf32, ["b", "s"]>) -> tensor<?x?x4x8xf32, ["b", "s"]>
  return %1 : tensor<?x?x4x8xf32, ["b", "s"]>
}

// -----

// Pixels that are transposed as a matrix, and a product of an operand that was transposed.
// CHECK-LABEL: func.func @transposes
// CHECK-NEXT: %[[T:.*]] = "relay.transpose"(%arg0) {axes = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT: %[[P:.*]] = "relay.reshape"(%[[T]]) {{.*}}newshape = ["n", "h*w", 8]
// CHECK-NEXT: "relay.nn_batch_matmul"(%[[P]], %arg1) {{.*}}transpose_b = true
func.func @transposes(%x: tensor<?x8x?x?xf32, ["n", "h", "w"]>, %y: tensor<?x?x8xf32, ["n", "m"]>) -> tensor<?x?x?xf32, ["n", "h*w", "m"]> {
  %0 = "relay.reshape"(%x) {newshape = ["n", 8, "h*w"]} : (tensor<?x8x?x?xf32, ["n", "h", "w"]>) -> tensor<?x8x?xf32, ["n", "h*w"]>
  %1 = "relay.transpose"(%0) {axes = array<i64: 0, 2, 1>} : (tensor<?x8x?xf32, ["n", "h*w"]>) -> tensor<?x?x8xf32, ["n", "h*w"]>
  %2 = "relay.transpose"(%y) {axes = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32, ["n", "m"]>) -> tensor<?x8x?xf32, ["n", "m"]>
  %3 = "relay.nn_batch_matmul"(%1, %2) {transpose_b = false} : (tensor<?x?x8xf32, ["n", "h*w"]>, tensor<?x8x?xf32, ["n", "m"]>) -> tensor<?x?x?xf32, ["n", "h*w", "m"]>
  return %3 : tensor<?x?x?xf32, ["n", "h*w", "m"]>
}
