// RUN: relayc-opt %s --passes fuse-ops | filecheck %s

// A diamond closes by itself: by the time that the first operator is looked at, all its users are in one group.
// CHECK-LABEL: func.func @diamond
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.exp"
// CHECK-NEXT: "relay.sigmoid"
// CHECK-NEXT: "relay.tanh"
// CHECK-NEXT: "relay.multiply"
// CHECK-NEXT: "relay.yield"
// CHECK-NOT: relay.fused
func.func @diamond(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.sigmoid"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relay.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "relay.multiply"(%1, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// A result that is used outside ends its group, be it by another group, a view or as a result of the function.
// CHECK-LABEL: func.func @escapes
// CHECK: %[[D:.*]] = "relay.fused"
// CHECK-NEXT: "relay.nn_dense"
// CHECK-NEXT: "relay.yield"
// CHECK: %[[E:.*]] = "relay.fused"
// CHECK-NEXT: "relay.exp"(%[[D]])
// CHECK-NEXT: "relay.yield"
// CHECK: %[[V:.*]] = "relay.reshape"(%[[E]])
// CHECK: %[[A:.*]] = "relay.fused"
// CHECK-NEXT: "relay.abs"(%[[E]])
// CHECK: return %[[D]], %[[V]], %[[A]]
func.func @escapes(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<16xf32>, tensor<4x4xf32>) {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.exp"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relay.reshape"(%1) {newshape = array<i64: 16>} : (tensor<4x4xf32>) -> tensor<16xf32>
  %3 = "relay.abs"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %2, %3 : tensor<4x4xf32>, tensor<16xf32>, tensor<4x4xf32>
}

// Inside a branch; what the branch uses from around it is a use.
// CHECK-LABEL: func.func @branch
// CHECK: %[[E:.*]] = "relay.fused"
// CHECK-NEXT: "relay.exp"(%arg1)
// CHECK: "relay.if"
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.negative"(%[[E]])
// CHECK-NEXT: "relay.exp"
// CHECK-NEXT: "relay.yield"
func.func @branch(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.if"(%c) ({
    %2 = "relay.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "relay.exp"(%2) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%3) : (tensor<4xf32>) -> ()
  }, {
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
