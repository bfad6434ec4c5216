// RUN: relayc-opt %s --passes infer-type | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.det"{{.*}} -> tensor<2x?xf32, ["n"]>
func.func @main(%x: tensor<2x?x?x?xf32, ["n", "m", "m"]>) {
  %0 = "relay.det"(%x) : (tensor<2x?x?x?xf32, ["n", "m", "m"]>) -> tensor<?x?xf32>
  return
}
