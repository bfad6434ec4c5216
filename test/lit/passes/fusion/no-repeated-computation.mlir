// RUN: relayc-opt %s --passes fuse-ops | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops --disable fuse-ops.no-repeated-computation | filecheck %s --check-prefix OFF

// Nothing is computed more often than it has elements: the gate of an image stays apart.
// CHECK-LABEL: func.func @gate
// CHECK: "relay.sigmoid"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.multiply"
// CHECK-NEXT: "relay.yield"
// OFF-LABEL: func.func @gate
// OFF: "relay.sigmoid"
// OFF-NEXT: "relay.multiply"
func.func @gate(%x: tensor<1x8x4x4xf32>, %g: tensor<1x8x1x1xf32>) -> tensor<1x8x4x4xf32> {
  %0 = "relay.sigmoid"(%g) : (tensor<1x8x1x1xf32>) -> tensor<1x8x1x1xf32>
  %1 = "relay.multiply"(%x, %0) : (tensor<1x8x4x4xf32>, tensor<1x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  return %1 : tensor<1x8x4x4xf32>
}

// A cast of it need not, and what joins several small tensors or reduces a large one reads each element once.
// CHECK-LABEL: func.func @others
// CHECK: "relay.cast"
// CHECK-NEXT: "relay.multiply"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.exp"
// CHECK-NEXT: concat
// CHECK-NEXT: "relay.yield"
func.func @others(%x: tensor<8x4xf32>, %h: tensor<8x1xf16>, %y: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %0 = "relay.cast"(%h) {dtype = "float32"} : (tensor<8x1xf16>) -> tensor<8x1xf32>
  %1 = "relay.multiply"(%x, %0) : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %2 = "relay.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = tensor.concat dim(0) %2, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8xf32>
}
