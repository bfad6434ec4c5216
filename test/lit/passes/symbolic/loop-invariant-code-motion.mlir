// RUN: relayc-opt %s --passes loop-invariant-code-motion | filecheck %s

// What names a size that only the loop knows stays, though what it reads is known before: in a type, an attribute, or an inner region.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[E:.*]] = "relay.exp"(%arg2)
// CHECK-NEXT: "relay.strided_slice"(%[[E]]) {{.*}}end = ["m"]
// CHECK-NEXT: "relay.while"
// CHECK: }, {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: "relay.strided_slice"(%arg2) {{.*}}end = ["k"]
// CHECK-NEXT: "relay.if"(%arg0)
func.func @main(%c: tensor<i1>, %x: tensor<?xf32, ["n"]>, %y: tensor<16xf32>, %z: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["last"]> {
  %0 = "relay.while"(%x) ({
  ^bb0(%a: tensor<?xf32, ["k"]>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<?xf32, ["k"]>):
    %1 = "relay.exp"(%y) : (tensor<16xf32>) -> tensor<16xf32>
    %2 = "relay.strided_slice"(%1) {begin = array<i64: 0>, end = ["m"], strides = array<i64: 1>} : (tensor<16xf32>) -> tensor<?xf32, ["min(16, m)"]>
    %3 = "relay.strided_slice"(%y) {begin = array<i64: 0>, end = ["k"], strides = array<i64: 1>} : (tensor<16xf32>) -> tensor<?xf32, ["min(16, k)"]>
    %4 = "relay.if"(%c) ({
      %6 = "relay.strided_slice"(%y) {begin = ["min(16, k)"], end = array<i64: 16>, strides = array<i64: 1>} : (tensor<16xf32>) -> tensor<?xf32, ["-min(16, k) + 16"]>
      %7 = "relay.sum"(%6) {axis = array<i64: 0>, exclude = false, keepdims = true} : (tensor<?xf32, ["-min(16, k) + 16"]>) -> tensor<1xf32>
      "relay.yield"(%7) : (tensor<1xf32>) -> ()
    }, {
      %6 = "relay.constant"() {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
      "relay.yield"(%6) : (tensor<1xf32>) -> ()
    }) : (tensor<i1>) -> tensor<1xf32>
    %5 = tensor.concat dim(0) %a, %2, %3, %4 : (tensor<?xf32, ["k"]>, tensor<?xf32, ["min(16, m)"]>, tensor<?xf32, ["min(16, k)"]>, tensor<1xf32>) -> tensor<?xf32, ["k + min(16, k) + min(16, m) + 1"]>
    "relay.yield"(%5) : (tensor<?xf32, ["k + min(16, k) + min(16, m) + 1"]>) -> ()
  }) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["last"]>
  return %0 : tensor<?xf32, ["last"]>
}
