// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.prologue | filecheck %s --check-prefix OFF

// A row operator takes elementwise producers of its data.
// CHECK-LABEL: func.func @data
// CHECK: "relay.fused"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.nn_softmax"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @data
// OFF: "relay.add"
// OFF-NEXT: "relay.yield"
func.func @data(%x: tensor<8x8xf32>, %g: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = "relay.add"(%x, %g) : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %1 = "relay.nn_softmax"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Not transposes of it, not what computes its other operands, not what is data and operand in one; a product takes nothing.
// CHECK-LABEL: func.func @others
// CHECK: "relay.transpose"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_softmax"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_rms_norm"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.tanh"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_rms_norm"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.abs"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.yield"
func.func @others(%x: tensor<8x8xf32>, %g: tensor<8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<8x8xf32>) {
  %0 = "relay.transpose"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "relay.nn_softmax"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "relay.exp"(%g) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = "relay.nn_rms_norm"(%x, %2) : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %4 = "relay.tanh"(%g) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = "relay.nn_rms_norm"(%4, %4) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = "relay.abs"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %7 = "relay.nn_dense"(%6, %x) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %3, %5, %7 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<8x8xf32>
}

// What is data and other operand at once, by way of another producer, stays outside.
// CHECK-LABEL: func.func @of_both
// CHECK: "relay.nn_relu"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.multiply"
// CHECK-NEXT: "relay.nn_layer_norm"
// CHECK-NEXT: "relay.yield"
func.func @of_both(%x: tensor<8xf32>, %g: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "relay.nn_relu"(%g) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "relay.multiply"(%x, %0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = "relay.nn_layer_norm"(%1, %0, %g) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
