// RUN: relayc-opt %s --passes concatenate-in-place --split-input-file | filecheck %s

// Parts of symbolic size along the first axis follow each other in memory, wherever that begins.
// CHECK-NOT: @join(
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = call @k(%arg0, %arg2)
// CHECK: %[[B:.*]] = call @three(%arg1)
// CHECK: %[[C:.*]] = tensor.concat dim(0) %[[A]], %[[B]] : {{.*}} -> tensor<?x4xf32, ["n + 3"]>
// CHECK: call @use(%[[C]], %arg2)
func.func private @k(%x: tensor<?x4xf32, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<?x4xf32, ["n"]> {
  return %x : tensor<?x4xf32, ["n"]>
}
func.func private @three(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  return %x : tensor<3x4xf32>
}
func.func private @join(%x: tensor<?x4xf32, ["n"]>, %y: tensor<3x4xf32>, %n: index {relay.symbol = "n"}) -> tensor<?x4xf32, ["n + 3"]> {
  %0 = tensor.concat dim(0) %x, %y : (tensor<?x4xf32, ["n"]>, tensor<3x4xf32>) -> tensor<?x4xf32, ["n + 3"]>
  return %0 : tensor<?x4xf32, ["n + 3"]>
}
func.func private @use(%x: tensor<?x4xf32, ["n + 3"]>, %n: index {relay.symbol = "n"}) -> tensor<?x4xf32, ["n + 3"]> {
  return %x : tensor<?x4xf32, ["n + 3"]>
}
func.func @main(%x: tensor<?x4xf32, ["n"]>, %y: tensor<3x4xf32>, %n: index {relay.symbol = "n"}) -> tensor<?x4xf32, ["n + 3"]> {
  %a = call @k(%x, %n) : (tensor<?x4xf32, ["n"]>, index) -> tensor<?x4xf32, ["n"]>
  %b = call @three(%y) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %c = call @join(%a, %b, %n) : (tensor<?x4xf32, ["n"]>, tensor<3x4xf32>, index) -> tensor<?x4xf32, ["n + 3"]>
  %d = call @use(%c, %n) : (tensor<?x4xf32, ["n + 3"]>, index) -> tensor<?x4xf32, ["n + 3"]>
  return %d : tensor<?x4xf32, ["n + 3"]>
}

// -----

// A part that is there before the size of the whole is known has no place in it yet.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = call @three(%arg0)
// CHECK: %[[COUNT:.*]] = arith.index_cast
// CHECK: %[[B:.*]] = call @rows(%[[COUNT]])
// CHECK: call @join(%[[B]], %[[A]], %[[COUNT]])
func.func private @three(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
func.func private @rows(%k: index {relay.symbol = "k"}) -> tensor<?xf32, ["k"]> {
  %0 = tensor.empty(%k) : tensor<?xf32, ["k"]>
  return %0 : tensor<?xf32, ["k"]>
}
func.func private @join(%x: tensor<?xf32, ["k"]>, %y: tensor<3xf32>, %k: index {relay.symbol = "k"}) -> tensor<?xf32, ["k + 3"]> {
  %0 = tensor.concat dim(0) %x, %y : (tensor<?xf32, ["k"]>, tensor<3xf32>) -> tensor<?xf32, ["k + 3"]>
  return %0 : tensor<?xf32, ["k + 3"]>
}
func.func private @use(%x: tensor<?xf32, ["k + 3"]>, %k: index {relay.symbol = "k"}) -> tensor<?xf32, ["k + 3"]> {
  return %x : tensor<?xf32, ["k + 3"]>
}
func.func @main(%x: tensor<3xf32>, %count: tensor<i64>) -> (tensor<?xf32, ["k + 3"]>, index) {
  %a = call @three(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %element = tensor.extract %count[] : tensor<i64>
  %k = arith.index_cast %element {relay.symbol = "k"} : i64 to index
  %b = call @rows(%k) : (index) -> tensor<?xf32, ["k"]>
  %c = call @join(%b, %a, %k) : (tensor<?xf32, ["k"]>, tensor<3xf32>, index) -> tensor<?xf32, ["k + 3"]>
  %d = call @use(%c, %k) : (tensor<?xf32, ["k + 3"]>, index) -> tensor<?xf32, ["k + 3"]>
  return %d, %k : tensor<?xf32, ["k + 3"]>, index
}
