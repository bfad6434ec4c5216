// RUN: relayc-opt %s --passes infer-type | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.fft_plan"{{.*}} -> tensor<64xi64>
// CHECK-NEXT: "relay.fft_roots"{{.*}} -> tensor<2x?xf32, ["n"]>
// CHECK-NEXT: "relay.fft"{{.*}} -> tensor<3x?x2xf32, ["n//2 + 1"]>
// CHECK-NEXT: "relay.fft"{{.*}} -> tensor<3x?x1xf32, ["n"]>
func.func @main(%x: tensor<3x?x1xf32, ["n"]>, %at: tensor<?xi64, ["n"]>, %n: tensor<i64>) {
  %plan = "relay.fft_plan"(%n) : (tensor<i64>) -> tensor<?xi64>
  %roots = "relay.fft_roots"(%at, %n) {dtype = "float32"} : (tensor<?xi64, ["n"]>, tensor<i64>) -> tensor<?x?xf32>
  %y = "relay.fft"(%x, %roots, %plan) {length = "n", frequencies = "n // 2 + 1"}
      : (tensor<3x?x1xf32, ["n"]>, tensor<?x?xf32>, tensor<?xi64>) -> tensor<?x?x?xf32>
  %z = "relay.fft"(%y, %roots, %plan) {length = "n", frequencies = "n", inverse = true, to_real = true}
      : (tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?xi64>) -> tensor<?x?x?xf32>
  return
}
