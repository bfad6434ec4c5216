// RUN: relayc-opt %s --passes loop-invariant-code-motion | filecheck %s

// What depends on nothing that the loops change goes before them, through both of two; what a call or a repetition gives stays.
// CHECK-LABEL: func.func @main
// CHECK: %[[K:.*]] = "relay.constant"
// CHECK-NEXT: %[[E:.*]] = "relay.exp"(%arg1)
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%[[E]], %[[K]])
// CHECK-NEXT: "relay.while"(%arg1)
// CHECK: "relay.yield"(%arg0)
// CHECK-NEXT: }, {
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[S:.*]] = "relay.multiply"(%[[X]], %[[A]])
// CHECK-NEXT: "relay.while"(%[[X]])
// CHECK: "relay.yield"(%arg0)
// CHECK-NEXT: }, {
// CHECK-NEXT: ^bb0(%[[Y:.*]]: tensor<4xf32>):
// CHECK-NEXT: func.call @effect
// CHECK-NEXT: "relay.broadcast_to"
// CHECK-NEXT: "relay.add"(%[[Y]], %[[S]])
func.func private @effect(%x: tensor<4xf32>) {
  return
}
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  %0 = "relay.while"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<4xf32>):
    %1 = "relay.while"(%a) ({
    ^bb0(%b: tensor<4xf32>):
      "relay.yield"(%c) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b: tensor<4xf32>):
      %k = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
      %2 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = "relay.add"(%2, %k) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      %4 = "relay.multiply"(%a, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.call @effect(%x) : (tensor<4xf32>) -> ()
      %5 = "relay.broadcast_to"(%s) {shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
      %6 = "relay.add"(%b, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %7 = "relay.add"(%6, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "relay.yield"(%7) : (tensor<4xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%1) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
