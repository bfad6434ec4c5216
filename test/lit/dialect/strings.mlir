// RUN: relayc-opt %s --passes infer-type | filecheck %s
// RUN: relayc-opt %s --passes infer-type | relayc-opt - --passes infer-type | filecheck %s

// Elements are the numbers of strings; the program's own stand in the module, the empty one first. Operators move and compare them.
// CHECK: module attributes {relay.strings = ["", "a", "b \22\C3\BC\22"]}
// CHECK: %[[C:.*]] = "relay.constant"() {value = dense<[1, 2]> : tensor<2xindex>} : () -> tensor<2xindex>
// CHECK: %[[E:.*]] = "relay.equal"(%arg0, %[[C]]) : (tensor<?x2xindex, ["n"]>, tensor<2xindex>) -> tensor<?x2xi1, ["n"]>
// CHECK: "relay.where"(%[[E]], %arg0, %[[C]]) : (tensor<?x2xi1, ["n"]>, tensor<?x2xindex, ["n"]>, tensor<2xindex>) -> tensor<?x2xindex, ["n"]>
module attributes {relay.strings = ["", "a", "b \22\C3\BC\22"]} {
  func.func @main(%x: tensor<?x2xindex, ["n"]>) -> tensor<?x2xindex, ["n"]> {
    %c = "relay.constant"() {value = dense<[1, 2]> : tensor<2xindex>} : () -> tensor<2xindex>
    %e = "relay.equal"(%x, %c) : (tensor<?x2xindex, ["n"]>, tensor<2xindex>) -> tensor<?x2xi1, ["n"]>
    %y = "relay.where"(%e, %x, %c) : (tensor<?x2xi1, ["n"]>, tensor<?x2xindex, ["n"]>, tensor<2xindex>) -> tensor<?x2xindex, ["n"]>
    return %y : tensor<?x2xindex, ["n"]>
  }
}
