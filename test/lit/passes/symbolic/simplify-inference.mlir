// RUN: relayc-opt %s --passes simplify-inference | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: batch_norm
// CHECK: "relay.multiply"(%arg0, %{{.*}} -> tensor<?x3x?xf32, ["n", "m"]>
// CHECK: %[[A:.*]] = "relay.add"
// CHECK-NOT: dropout
// CHECK: %[[M:.*]] = "relay.ones"() {{.*}}shape = ["n", 3, "m"]
// CHECK: return %[[A]], %[[M]]
func.func @main(%x: tensor<?x3x?xf32, ["n", "m"]>, %c: tensor<3xf32>) -> (tensor<?x3x?xf32, ["n", "m"]>, tensor<?x3x?xf32, ["n", "m"]>) {
  %0:3 = "relay.nn_batch_norm"(%x, %c, %c, %c, %c) : (tensor<?x3x?xf32, ["n", "m"]>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3x?xf32, ["n", "m"]>, tensor<3xf32>, tensor<3xf32>)
  %1:2 = "relay.nn_dropout"(%0#0) : (tensor<?x3x?xf32, ["n", "m"]>) -> (tensor<?x3x?xf32, ["n", "m"]>, tensor<?x3x?xf32, ["n", "m"]>)
  return %1#0, %1#1 : tensor<?x3x?xf32, ["n", "m"]>, tensor<?x3x?xf32, ["n", "m"]>
}
