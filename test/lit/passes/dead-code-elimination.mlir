// RUN: relayc-opt %s --passes dead-code-elimination | filecheck %s

// What only dead operations use is dead too; functions that nothing calls go.
// CHECK-NOT: @unused
// CHECK: func.func private @used
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[C:.*]] = call @used(%arg0)
// CHECK-NEXT: return %[[C]]
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @used(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.add"(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = func.call @used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
