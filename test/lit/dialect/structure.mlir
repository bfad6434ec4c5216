// RUN: relayc-opt %s --split-input-file | relayc-opt - | filecheck %s

// What is printed parses again to the same text.
// CHECK-LABEL: func.func private @double
// CHECK: "relay.add"
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[C:.*]] = "relay.constant"() {value = dense<[1, 2, 3]> : tensor<3xui8>} : () -> tensor<3xui8>
// CHECK-NEXT: %{{.*}} = "relay.constant"() {dtype = "float32", shape = array<i64: 4>, value = "weight"} : () -> tensor<4xf32>
// CHECK-NEXT: %[[T:.*]] = builtin.unrealized_conversion_cast %arg1, %[[C]] : tensor<4xf32>, tensor<3xui8> to tuple<tensor<4xf32>, tensor<3xui8>>
// CHECK-NEXT: %[[X:.*]] = "relay.tuple_get_item"(%[[T]]) {index = 0 : i64} : (tuple<tensor<4xf32>, tensor<3xui8>>) -> tensor<4xf32>
// CHECK-NEXT: %[[Y:.*]] = call @double(%[[X]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[Z:.*]] = "relay.if"(%arg0) ({
// CHECK-NEXT:   "relay.yield"(%[[X]]) : (tensor<4xf32>) -> ()
// CHECK-NEXT: }, {
// CHECK-NEXT:   %[[N:.*]] = "relay.negative"(%[[Y]])
// CHECK-NEXT:   "relay.yield"(%[[N]]) : (tensor<4xf32>) -> ()
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<4xf32>
// CHECK-NEXT: %{{.*}} = "relay.while"(%[[T]]) ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: tuple<tensor<4xf32>, tensor<3xui8>>):
// CHECK-NEXT:   "relay.yield"(%arg0) : (tensor<i1>) -> ()
// CHECK-NEXT: }, {
// CHECK-NEXT: ^bb0(%[[B:.*]]: tuple<tensor<4xf32>, tensor<3xui8>>):
// CHECK-NEXT:   "relay.yield"(%[[B]]) : (tuple<tensor<4xf32>, tensor<3xui8>>) -> ()
// CHECK-NEXT: }) : (tuple<tensor<4xf32>, tensor<3xui8>>) -> tuple<tensor<4xf32>, tensor<3xui8>>
// CHECK-NEXT: %[[F:.*]] = "relay.fused"() ({
// CHECK-NEXT:   %[[E:.*]] = "relay.exp"(%[[Z]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   "relay.yield"(%[[E]]) : (tensor<4xf32>) -> ()
// CHECK-NEXT: }) : () -> tensor<4xf32>
// CHECK-NEXT: tensor.concat dim(0) %[[F]], %arg1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "relay.constant"() {value = dense<[1, 2, 3]> : tensor<3xui8>} : () -> tensor<3xui8>
  %1 = "relay.constant"() {value = "weight", shape = array<i64: 4>, dtype = "float32"} : () -> tensor<4xf32>
  %2 = builtin.unrealized_conversion_cast %x, %0 : tensor<4xf32>, tensor<3xui8> to tuple<tensor<4xf32>, tensor<3xui8>>
  %3 = "relay.tuple_get_item"(%2) {index = 0} : (tuple<tensor<4xf32>, tensor<3xui8>>) -> tensor<4xf32>
  %4 = call @double(%3) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "relay.if"(%c) ({
    "relay.yield"(%3) : (tensor<4xf32>) -> ()
  }, {
    %7 = "relay.negative"(%4) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%7) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  %6 = "relay.while"(%2) ({
  ^bb0(%s: tuple<tensor<4xf32>, tensor<3xui8>>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%s: tuple<tensor<4xf32>, tensor<3xui8>>):
    "relay.yield"(%s) : (tuple<tensor<4xf32>, tensor<3xui8>>) -> ()
  }) : (tuple<tensor<4xf32>, tensor<3xui8>>) -> tuple<tensor<4xf32>, tensor<3xui8>>
  %8 = "relay.fused"() ({
    %7 = "relay.exp"(%5) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%7) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  %9 = tensor.concat dim(0) %8, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %9 : tensor<8xf32>
}
