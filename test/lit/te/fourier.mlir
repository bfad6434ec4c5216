// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// A length that is a number has code for its factors only; lines are blocks of as many as a vector has lanes.
// CHECK: func.func private @fused_fft(
// CHECK: tensor.empty() : tensor<31040xf32>
// CHECK: scf.while
// CHECK: %[[IS_8:.*]] = arith.cmpi eq, %{{.*}}, %c8
// CHECK: scf.if %[[IS_8]]
// CHECK: {relay.distinct}
// CHECK: arith.cmpi eq, %{{.*}}, %c4
// CHECK: arith.cmpi eq, %{{.*}}, %c3
// CHECK-NOT: arith.cmpi eq, %{{.*}}, %c5
// CHECK: {relay.distinct, relay.threads = 30720 : i64}
func.func @main(%x: tensor<40x480x2xf32>, %roots: tensor<2x480xf32>, %plan: tensor<64xi64>) -> tensor<40x480x2xf32> {
  %0 = "relay.fft"(%x, %roots, %plan) {length = 480, frequencies = 480}
      : (tensor<40x480x2xf32>, tensor<2x480xf32>, tensor<64xi64>) -> tensor<40x480x2xf32>
  return %0 : tensor<40x480x2xf32>
}

// -----

// The roots of a length that the program knows are elements by themselves.
// CHECK: func.func private @fused_fft_roots(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: math.roundeven
// CHECK-COUNT-10: math.fma
func.func @main(%at: tensor<?xi64, ["n"]>, %n: tensor<i64>) -> tensor<2x?xf64, ["n"]> {
  %0 = "relay.fft_roots"(%at, %n) : (tensor<?xi64, ["n"]>, tensor<i64>) -> tensor<2x?xf64, ["n"]>
  return %0 : tensor<2x?xf64, ["n"]>
}
