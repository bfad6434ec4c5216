// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.concatenation-in-place | filecheck %s --check-prefix OFF

// A concatenation of channels of one image stays alone where operators give its operands: their kernels write straight into its result.
// CHECK-LABEL: func.func @channels
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.tanh"
// CHECK-NEXT: "relay.yield"
// CHECK: concat
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @channels
// OFF: "relay.exp"
// OFF-NEXT: "relay.tanh"
// OFF-NEXT: concat
func.func @channels(%x: tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = "relay.exp"(%x) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %1 = "relay.tanh"(%x) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %2 : tensor<1x4x4x4xf32>
}

// One whose operands alternate in memory takes them, and so does one of an argument of the function.
// CHECK-LABEL: func.func @others
// CHECK: "relay.exp"
// CHECK-NEXT: concat
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.exp"
// CHECK-NEXT: concat
// CHECK-NEXT: "relay.yield"
func.func @others(%x: tensor<2x2xf32>, %y: tensor<1x2xf32>) -> (tensor<2x4xf32>, tensor<1x4xf32>) {
  %0 = "relay.exp"(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = tensor.concat dim(1) %0, %0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %2 = "relay.exp"(%y) : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %3 = tensor.concat dim(1) %2, %y : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x4xf32>
  return %1, %3 : tensor<2x4xf32>, tensor<1x4xf32>
}
