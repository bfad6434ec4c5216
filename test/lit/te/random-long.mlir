// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te | filecheck %s

// Four words of a block of 64 bits; a lane makes the block of its element and keeps one word.
// CHECK: func.func private @fused_random_threefry_generate(
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<6xi64>)
// CHECK-COUNT-40: arith.shli
// CHECK-NOT: arith.shli
func.func @main(%key: tensor<8xui64>) -> tensor<2x3xui64> {
  %0 = "relay.random_threefry_generate"(%key) {out_shape = array<i64: 2, 3>, dtype = "uint64"} : (tensor<8xui64>) -> tensor<2x3xui64>
  return %0 : tensor<2x3xui64>
}
