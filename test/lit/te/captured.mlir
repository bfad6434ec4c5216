// RUN: relayc-opt %s --passes outline-groups,relay-to-te | filecheck %s

// What groups use from around them: constants of one element are literals of the kernel, the rest its arguments, in the order of first use.
// Groups that differ in no more than the values they are called with share a kernel; other literals make another one. A literal that nothing
// else uses is no parameter of the program. Of a tuple the fields are results.
// CHECK-LABEL: func.func private @fused_topk(
// CHECK-SAME: -> (tensor<2xf32>, tensor<2xi32>)
// CHECK-LABEL: func.func private @fused_multiply_add_1(
// CHECK: arith.constant 3.0
// CHECK-LABEL: func.func private @fused_multiply_add(
// CHECK-SAME: %arg0: tensor<4xf32>, %arg1: tensor<4xf32>)
// CHECK: arith.constant 2.0
// CHECK-LABEL: func.func @main
// CHECK-NOT: relay.constant
// CHECK: %[[A:.*]] = call @fused_multiply_add(%arg1, %arg0)
// CHECK: %[[B:.*]] = call @fused_multiply_add(%[[A]], %arg1)
// CHECK: %[[C:.*]] = call @fused_multiply_add_1(%[[A]], %[[B]])
// CHECK: %[[T:.*]]:2 = call @fused_topk(%[[C]])
// CHECK: return %[[T]]#1
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<2xi32> {
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %three = "relay.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.fused"() ({
    %1 = "relay.multiply"(%y, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = "relay.add"(%x, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%2) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  %3 = "relay.fused"() ({
    %1 = "relay.multiply"(%0, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = "relay.add"(%y, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%2) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  %4 = "relay.fused"() ({
    %1 = "relay.multiply"(%0, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = "relay.add"(%3, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%2) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  %5 = "relay.fused"() ({
    %6:2 = "relay.topk"(%4) {k = 2} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
    %7 = builtin.unrealized_conversion_cast %6#0, %6#1 : tensor<2xf32>, tensor<2xi32> to tuple<tensor<2xf32>, tensor<2xi32>>
    "relay.yield"(%7) : (tuple<tensor<2xf32>, tensor<2xi32>>) -> ()
  }) : () -> tuple<tensor<2xf32>, tensor<2xi32>>
  %8 = "relay.tuple_get_item"(%5) {index = 1} : (tuple<tensor<2xf32>, tensor<2xi32>>) -> tensor<2xi32>
  return %8 : tensor<2xi32>
}
