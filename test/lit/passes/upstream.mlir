// RUN: relayc-opt %s --passes cse,canonicalize,symbol-dce | filecheck %s

// Upstream passes know which operations of the dialect are pure: equal ones become one, unused ones go; calls, and branches that hold one, stay.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[C:.*]] = "relay.constant"
// CHECK-NEXT: %[[E:.*]] = "relay.exp"(%arg1)
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%[[E]], %[[C]])
// CHECK-NEXT: call @used
// CHECK-NEXT: "relay.if"
// CHECK-NEXT: func.call @used
// CHECK-NOT: "relay.if"
// CHECK: return %[[A]]
// CHECK: func.func private @used
// CHECK-NOT: @unused
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %k = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relay.add"(%0, %k) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = "relay.add"(%1, %l) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = tensor.concat dim(0) %2, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %5 = func.call @used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %6 = "relay.if"(%c) ({
    %7 = func.call @used(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%7) : (tensor<4xf32>) -> ()
  }, {
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  %8 = "relay.if"(%c) ({
    "relay.yield"(%0) : (tensor<4xf32>) -> ()
  }, {
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
func.func private @used(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
