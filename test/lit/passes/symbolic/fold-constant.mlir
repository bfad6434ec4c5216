// RUN: relayc-opt %s --passes fold-constant | filecheck %s

// Nothing that names a symbol is folded, though its operands are constants and its type is a number; shapes that are numbers are.
// CHECK-LABEL: func.func @main
// CHECK: "relay.strided_slice"(%{{.*}}) {{.*}}begin = ["n"], end = ["n + 2"]
// CHECK: "relay.arange"() {{.*}}start = "n"
// CHECK: "relay.shape_of"(%arg0)
// CHECK-NOT: "relay.shape_of"(%arg1)
module attributes {relay.symbols = {n = array<i64: 0, 2, 1>}} {
  func.func @main(%x: tensor<?x4xf32, ["n"]>, %y: tensor<2x4xf32>) -> (tensor<2xf32>, tensor<3xi64>, tensor<2xi64>) {
    %c = "relay.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
    %0 = "relay.strided_slice"(%c) {begin = ["n"], end = ["n + 2"], strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
    %1 = "relay.arange"() {start = "n", stop = "n + 3", dtype = "int64"} : () -> tensor<3xi64>
    %2 = "relay.shape_of"(%x) {dtype = "int64"} : (tensor<?x4xf32, ["n"]>) -> tensor<2xi64>
    return %0, %1, %2 : tensor<2xf32>, tensor<3xi64>, tensor<2xi64>
  }
}
