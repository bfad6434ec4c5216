// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --config relay.FuseOps.disabled_rules=injective-into-injective | filecheck %s --check-prefix OFF

// Injective operators fuse with each other, with those that broadcast and with elementwise ones; a gather too.
// CHECK-LABEL: func.func @moves
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.transpose"
// CHECK-NEXT: "relay.exp"
// CHECK-NEXT: "relay.strided_slice"
// CHECK-NEXT: "relay.take"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.yield"
// CHECK-NOT: relay.fused
// OFF-LABEL: func.func @moves
// OFF-COUNT-5: "relay.fused"
func.func @moves(%x: tensor<4x8xf32>, %y: tensor<9x4xf32>, %i: tensor<2xi64>) -> tensor<2x4xf32> {
  %0 = "relay.transpose"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "relay.exp"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "relay.strided_slice"(%1) {begin = array<i64: 2>, end = array<i64: 4>} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %3 = "relay.take"(%y, %i) {axis = 0} : (tensor<9x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %4 = "relay.add"(%2, %3) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// Not into an operator of no pattern.
// CHECK-LABEL: func.func @opaque
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.cumsum"
// CHECK-NEXT: "relay.yield"
func.func @opaque(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "relay.exp"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "relay.cumsum"(%0) {axis = 0} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
