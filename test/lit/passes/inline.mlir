// RUN: relayc-opt %s --passes inline --split-input-file | filecheck %s
// RUN: relayc-opt %s --passes inline --config relay.Inline.max_operations=1 --split-input-file | filecheck %s --check-prefix FEW

// Small functions are inlined, callees first, also into branches; private ones that nothing calls any more go.
// CHECK-NOT: private
// CHECK-LABEL: func.func @calls
// CHECK-NEXT: %[[E:.*]] = "relay.exp"(%arg1)
// CHECK-NEXT: "relay.if"(%arg0)
// CHECK-NEXT: %[[F:.*]] = "relay.exp"(%[[E]])
// CHECK-NEXT: "relay.yield"(%[[F]])
// A function that is called more than once and larger than the limit stays; a private one with one call does not.
// FEW: func.func private @twice
// FEW-NOT: func.func private @once
// FEW: call @twice
// FEW: func.call @twice
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @once(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}
func.func @calls(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = func.call @once(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1 = "relay.if"(%c) ({
    %2 = func.call @twice(%0#0) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%2) : (tensor<4xf32>) -> ()
  }, {
    "relay.yield"(%0#1) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Recursive functions stay, one by the other too.
// CHECK-LABEL: func.func private @even
// CHECK: call @odd
// CHECK: func.func private @odd
// CHECK: call @even
func.func private @even(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @odd(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @odd(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @even(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @even(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A field that is given twice to a function that only returns it, to a call that does not use it, goes, once.
// CHECK-LABEL: func.func @given_twice
// CHECK-NEXT: relay.split
// CHECK-NEXT: return %arg0
func.func private @third(%x: tensor<2xf32>, %y: tensor<2xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  return %z, %y : tensor<4xf32>, tensor<2xf32>
}
func.func @given_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.split"(%x) {indices_or_sections = 2 : i64} : (tensor<4xf32>) -> tuple<tensor<2xf32>, tensor<2xf32>>
  %1 = "relay.tuple_get_item"(%0) {index = 0 : i64} : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
  %2:2 = func.call @third(%1, %1, %x) : (tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>)
  return %2#0 : tensor<4xf32>
}
