// RUN: relayc-opt %s --passes infer-type | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.random_threefry_generate"{{.*}} -> tensor<?x3xui64, ["n"]>
func.func @main(%key: tensor<2xui32>, %x: tensor<?xf32, ["n"]>) {
  %0 = "relay.random_threefry_generate"(%key) {out_shape = ["n", 3], dtype = "uint64"} : (tensor<2xui32>) -> tensor<?x?xui64>
  return
}
