// RUN: relayc-opt %s --passes fuse-ops,to-mixed-precision --config relay.ToMixedPrecision.precision=bf16 | filecheck %s

// Tensors between products are bf16, of symbolic sizes too, through reshapes of them.
// CHECK-LABEL: func.func @main
// CHECK: "relay.nn_dense"({{.*}}tensor<?x8xbf16, ["b*s"]>, tensor<8x8xbf16>) -> tensor<?x8xf32, ["b*s"]>
// CHECK: "relay.cast"({{.*}} -> tensor<?x8xbf16, ["b*s"]>
// CHECK: "relay.reshape"({{.*}}tensor<?x8xbf16, ["b*s"]>) -> tensor<?x?x8xbf16, ["b", "s"]>
// CHECK: "relay.nn_dense"({{.*}}tensor<?x?x8xbf16, ["b", "s"]>, tensor<8x8xbf16>) -> tensor<?x?x8xf32, ["b", "s"]>
func.func @main(%x: tensor<?x8xf32, ["b*s"]>, %y: tensor<?x?xf32, ["b", "s"]>) -> tensor<?x?x8xf32, ["b", "s"]> {
  %w = "relay.constant"() {value = dense<0.5> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x8xf32, ["b*s"]>, tensor<8x8xf32>) -> tensor<?x8xf32, ["b*s"]>
  %1 = "relay.nn_relu"(%0) : (tensor<?x8xf32, ["b*s"]>) -> tensor<?x8xf32, ["b*s"]>
  %2 = "relay.reshape"(%1) {newshape = ["b", "s", 8]} : (tensor<?x8xf32, ["b*s"]>) -> tensor<?x?x8xf32, ["b", "s"]>
  %3 = "relay.nn_dense"(%2, %w) : (tensor<?x?x8xf32, ["b", "s"]>, tensor<8x8xf32>) -> tensor<?x?x8xf32, ["b", "s"]>
  return %3 : tensor<?x?x8xf32, ["b", "s"]>
}
