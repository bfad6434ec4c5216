// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// Known dimensions reach the results, and the signature.
// CHECK-LABEL: func.func @signature
// CHECK-SAME: (%arg0: tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK: "relay.exp"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK: "relay.transpose"{{.*}} -> tensor<3x2xf32>
// CHECK: return {{.*}} : tensor<3x2xf32>
func.func @signature(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  %0 = "relay.exp"(%x) : (tensor<2x3xf32>) -> tensor<?x3xf32>
  %1 = "relay.transpose"(%0) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// What the program says beyond the type relation stays.
// CHECK-LABEL: func.func @refined
// CHECK: "relay.exp"(%arg0) : (tensor<?x3xf32>) -> tensor<2x3xf32>
func.func @refined(%x: tensor<?x3xf32>) -> tensor<2x3xf32> {
  %0 = "relay.exp"(%x) : (tensor<?x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Fusion groups take the types of what they use.
// CHECK-LABEL: func.func @group
// CHECK: "relay.exp"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: "relay.yield"(%{{.*}}) : (tensor<4xf32>) -> ()
func.func @group(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.fused"() ({
    %1 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<?xf32>
    "relay.yield"(%1) : (tensor<?xf32>) -> ()
  }) : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
