// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te | filecheck %s

// Twenty rounds of each position: a sum, a rotation and a difference of bits.
// CHECK: func.func private @fused_random_threefry_generate(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} {{.*}} outs({{.*}} : tensor<6xi32>)
// CHECK: linalg.index 0
// CHECK-COUNT-20: arith.shli
// CHECK-NOT: arith.shli
// CHECK: tensor.expand_shape {{.*}} into tensor<2x3xi32>
func.func @main(%key: tensor<2xui32>) -> tensor<2x3xui32> {
  %0 = "relay.random_threefry_generate"(%key) {out_shape = array<i64: 2, 3>} : (tensor<2xui32>) -> tensor<2x3xui32>
  return %0 : tensor<2x3xui32>
}
