// RUN: relayc-opt %s --split-input-file | relayc-opt - | filecheck %s

// What is printed parses again to the same text.
// CHECK-LABEL: func.func private @double
// CHECK: "relay.add"
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[C:.*]] = "relay.constant"() {value = dense<[1, 2, 3]> : tensor<3xui8>} : () -> tensor<3xui8>
// CHECK-NEXT: %{{.*}} = "relay.constant"() {dtype = "float32", shape = array<i64: 4>, value = "weight"} : () -> tensor<4xf32>
// CHECK-NEXT: %[[T:.*]]:2 = "relay.tuple"(%arg1, %[[C]]) : (tensor<4xf32>, tensor<3xui8>) -> (tensor<4xf32>, tensor<3xui8>)
// CHECK-NEXT: %[[X:.*]] = "relay.tuple_get_item"(%[[T]]#0, %[[T]]#1) {index = 0 : i64} : (tensor<4xf32>, tensor<3xui8>) -> tensor<4xf32>
// CHECK-NEXT: %[[Y:.*]] = "relay.call"(%[[X]]) {callee = "double"} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[Z:.*]] = "relay.if"(%arg0) ({
// CHECK-NEXT:   "relay.yield"(%[[X]]) : (tensor<4xf32>) -> ()
// CHECK-NEXT: }, {
// CHECK-NEXT:   %[[N:.*]] = "relay.negative"(%[[Y]])
// CHECK-NEXT:   "relay.yield"(%[[N]]) : (tensor<4xf32>) -> ()
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<4xf32>
// CHECK-NEXT: %[[F:.*]] = "relay.fused"() ({
// CHECK-NEXT:   %[[E:.*]]:2 = "relay.topk"(%[[Z]]) {k = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
// CHECK-NEXT:   %[[P:.*]] = builtin.unrealized_conversion_cast %[[E]]#0, %[[E]]#1 : tensor<2xf32>, tensor<2xi32> to tuple<tensor<2xf32>, tensor<2xi32>>
// CHECK-NEXT:   "relay.yield"(%[[P]]) : (tuple<tensor<2xf32>, tensor<2xi32>>) -> ()
// CHECK-NEXT: }) : () -> tuple<tensor<2xf32>, tensor<2xi32>>
// CHECK-NEXT: %[[I:.*]] = "relay.tuple_get_item"(%[[F]]) {index = 1 : i64} : (tuple<tensor<2xf32>, tensor<2xi32>>) -> tensor<2xi32>
// CHECK-NEXT: return %[[Z]], %[[I]] : tensor<4xf32>, tensor<2xi32>
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xi32>) {
  %0 = "relay.constant"() {value = dense<[1, 2, 3]> : tensor<3xui8>} : () -> tensor<3xui8>
  %1 = "relay.constant"() {value = "weight", shape = array<i64: 4>, dtype = "float32"} : () -> tensor<4xf32>
  %2:2 = "relay.tuple"(%x, %0) : (tensor<4xf32>, tensor<3xui8>) -> (tensor<4xf32>, tensor<3xui8>)
  %3 = "relay.tuple_get_item"(%2#0, %2#1) {index = 0} : (tensor<4xf32>, tensor<3xui8>) -> tensor<4xf32>
  %4 = "relay.call"(%3) {callee = "double"} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "relay.if"(%c) ({
    "relay.yield"(%3) : (tensor<4xf32>) -> ()
  }, {
    %7 = "relay.negative"(%4) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%7) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  %6 = "relay.fused"() ({
    %7:2 = "relay.topk"(%5) {k = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
    %8 = builtin.unrealized_conversion_cast %7#0, %7#1 : tensor<2xf32>, tensor<2xi32> to tuple<tensor<2xf32>, tensor<2xi32>>
    "relay.yield"(%8) : (tuple<tensor<2xf32>, tensor<2xi32>>) -> ()
  }) : () -> tuple<tensor<2xf32>, tensor<2xi32>>
  %9 = "relay.tuple_get_item"(%6) {index = 1} : (tuple<tensor<2xf32>, tensor<2xi32>>) -> tensor<2xi32>
  return %5, %9 : tensor<4xf32>, tensor<2xi32>
}
