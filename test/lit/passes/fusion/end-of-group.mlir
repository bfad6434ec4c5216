// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.end-of-group | filecheck %s --check-prefix OFF

// A concatenation takes what computes its parts; nothing joins behind it, nor behind a padding.
// CHECK-LABEL: func.func @main
// CHECK: "relay.negative"
// CHECK-NEXT: concat
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.nn_pad"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.abs"
// CHECK-NEXT: "relay.yield"
// OFF-COUNT-1: "relay.fused"
// OFF-NOT: "relay.fused"
func.func @main(%x: tensor<4xf32>) -> tensor<10xf32> {
  %c = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tensor.concat dim(0) %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = "relay.exp"(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = "relay.nn_pad"(%2, %c) {pad_width = array<i64: 1, 1>} : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %4 = "relay.abs"(%3) : (tensor<10xf32>) -> tensor<10xf32>
  return %4 : tensor<10xf32>
}
