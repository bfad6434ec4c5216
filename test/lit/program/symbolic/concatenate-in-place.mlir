// RUN: relayc-opt %s --passes concatenate-in-place | filecheck %s

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
