// RUN: relayc-opt %s --passes outline-groups,relay-to-te,te-to-tir | filecheck %s

// Both operands are written where they belong in the concatenation, which takes no kernel: the second starts 32 * 4 bytes after the first.
// CHECK-NOT: @fused_concatenate
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = memref.view %arg2[%c0{{.*}}] {{.*}} to memref<1x2x4x4xf32>
// CHECK: call @fused_exp(%arg0, %[[P]])
// CHECK: %[[AT:.*]] = arith.constant 128 : index
// CHECK: %[[Q:.*]] = memref.view %arg2[%[[AT]]]
// CHECK: call @fused_tanh(%arg0, %[[Q]])
// CHECK: %[[W:.*]] = memref.view %arg2[%c0{{.*}}] {{.*}} to memref<1x4x4x4xf32>
// CHECK: call @fused_relu(%[[W]], %arg1)
func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = "relay.fused"() ({
    %r = "relay.exp"(%x) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    "relay.yield"(%r) : (tensor<1x2x4x4xf32>) -> ()
  }) : () -> tensor<1x2x4x4xf32>
  %1 = "relay.fused"() ({
    %r = "relay.tanh"(%x) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    "relay.yield"(%r) : (tensor<1x2x4x4xf32>) -> ()
  }) : () -> tensor<1x2x4x4xf32>
  %2 = "relay.fused"() ({
    %r = tensor.concat dim(1) %0, %1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>
    "relay.yield"(%r) : (tensor<1x4x4x4xf32>) -> ()
  }) : () -> tensor<1x4x4x4xf32>
  %3 = "relay.fused"() ({
    %r = "relay.nn_relu"(%2) : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
    "relay.yield"(%r) : (tensor<1x4x4x4xf32>) -> ()
  }) : () -> tensor<1x4x4x4xf32>
  return %3 : tensor<1x4x4x4xf32>
}
