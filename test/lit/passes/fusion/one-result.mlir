// RUN: relayc-opt %s --passes fuse-ops | filecheck %s

// An operator of several results is a group of its own, whose result is a tuple; views stay outside.
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = "relay.fused"
// CHECK-NEXT: "relay.exp"(%arg0)
// CHECK: %[[V:.*]] = "relay.reshape"(%[[E]])
// CHECK: %[[T:.*]] = "relay.fused"() ({
// CHECK-NEXT: %[[R:.*]]:2 = "relay.topk"(%[[V]])
// CHECK-NEXT: %[[P:.*]] = builtin.unrealized_conversion_cast %[[R]]#0, %[[R]]#1 : tensor<2xf32>, tensor<2xi32> to tuple<tensor<2xf32>, tensor<2xi32>>
// CHECK-NEXT: "relay.yield"(%[[P]])
// CHECK-NEXT: }) : () -> tuple<tensor<2xf32>, tensor<2xi32>>
// CHECK-DAG: %[[A:.*]] = "relay.tuple_get_item"(%[[T]]) {index = 0 : i64} : (tuple<tensor<2xf32>, tensor<2xi32>>) -> tensor<2xf32>
// CHECK-DAG: %[[B:.*]] = "relay.tuple_get_item"(%[[T]]) {index = 1 : i64}
// CHECK: %[[N:.*]] = "relay.fused"
// CHECK-NEXT: "relay.negative"(%[[A]])
// CHECK: return %[[N]], %[[B]]
func.func @main(%x: tensor<2x4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %0 = "relay.exp"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 8>} : (tensor<2x4xf32>) -> tensor<8xf32>
  %2:2 = "relay.topk"(%1) {k = 2} : (tensor<8xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  %3 = "relay.negative"(%2#0) : (tensor<2xf32>) -> tensor<2xf32>
  return %3, %2#1 : tensor<2xf32>, tensor<2xi32>
}
