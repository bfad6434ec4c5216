// RUN: relayc-opt %s --passes fuse-ops | filecheck %s

// Two unknown dimensions may differ: what is added may broadcast the exponentials, which would be computed again for each row.
// CHECK-LABEL: func.func @may_differ
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.add"
// CHECK-NEXT: "relay.yield"
func.func @may_differ(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = "relay.exp"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "relay.add"(%0, %y) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// A product is not the anchor of an addition that may be larger.
// CHECK-LABEL: func.func @anchor
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.add"
// CHECK-NEXT: "relay.yield"
func.func @anchor(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %1 = "relay.add"(%0, %y) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// They are the same where both lead back to one value.
// CHECK-LABEL: func.func @same
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.multiply"
// CHECK-NEXT: "relay.tanh"
// CHECK-NEXT: "relay.yield"
func.func @same(%x: tensor<?x8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = "relay.exp"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "relay.add"(%0, %b) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %2 = "relay.multiply"(%x, %1) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = "relay.tanh"(%2) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

// A dimension of 1 broadcasts, whatever the other one is.
// CHECK-LABEL: func.func @broadcast_of_1
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.multiply"
// CHECK-NEXT: "relay.yield"
func.func @broadcast_of_1(%x: tensor<?x8xf32>, %b: tensor<1x8xf32>) -> tensor<?x8xf32> {
  %0 = "relay.exp"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "relay.add"(%0, %b) : (tensor<?x8xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
  %2 = "relay.multiply"(%x, %1) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
