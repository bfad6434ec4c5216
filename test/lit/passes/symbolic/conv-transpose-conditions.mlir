// RUN: relayc-opt %s --passes conv-transpose-to-conv | filecheck %s

// The program checks that elements are left of a result that is cropped, of which the plain convolution takes fewer too.
// CHECK-LABEL: func.func @cropped
// CHECK: "relay.check_sizes"() {expected = 0 : i64, found = "n - 2", message = "{{.*}}padding along axis W: expected less than the result, found (2, 1){{.*}}predicate = "ge"}
// CHECK: "relay.nn_conv1d"
// CHECK: "relay.strided_slice"{{.*}} -> tensor<1x3x?xf32, ["n - 1"]>
module attributes {relay.symbols = {n = array<i64: 1, 100, 10>}} {
  func.func @cropped(%x: tensor<1x2x?xf32, ["n"]>) -> tensor<1x3x?xf32, ["n - 1"]> {
    %w = "relay.constant"() {value = dense<1.0> : tensor<2x3x3xf32>} : () -> tensor<2x3x3xf32>
    %0 = "relay.nn_conv1d_transpose"(%x, %w) {padding = array<i64: 2, 1>}
      : (tensor<1x2x?xf32, ["n"]>, tensor<2x3x3xf32>) -> tensor<1x3x?xf32, ["n - 1"]>
    return %0 : tensor<1x3x?xf32, ["n - 1"]>
  }
}
