// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// Narrow types are bytes; conversions are arithmetic on integers, of which floats are rounded once.
// CHECK-LABEL: func.func private @fused_cast(%arg0: tensor<3xi8>
// CHECK: arith.extui %in : i8 to i32
// CHECK-NOT: f8E5M2
// CHECK: arith.bitcast %{{.*}} : i32 to f32
func.func @main(%x: tensor<3xf8E5M2>) -> tensor<3xf32> {
  %0 = "relay.cast"(%x) {dtype = "float32"} : (tensor<3xf8E5M2>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func private @fused_cast(
// CHECK-SAME: -> tensor<3xi8>
// CHECK: %[[NEAR:.*]] = arith.truncf %in : f64 to f32
// CHECK: arith.bitcast %[[NEAR]] : f32 to i32
// CHECK: %[[CODE:.*]] = arith.ori
// CHECK: arith.trunci %{{.*}} : i32 to i8
func.func @main(%x: tensor<3xf64>) -> tensor<3xf8E4M3FN> {
  %0 = "relay.cast"(%x) {dtype = "float8_e4m3fn", saturate = false} : (tensor<3xf64>) -> tensor<3xf8E4M3FN>
  return %0 : tensor<3xf8E4M3FN>
}

// -----

// The sign of an int4 is its fourth bit; a byte holds no other.
// CHECK-LABEL: func.func private @fused_cast(%arg0: tensor<3xi8>
// CHECK: %[[HIGH:.*]] = arith.shli %in, %{{.*}} : i8
// CHECK: %[[WIDE:.*]] = arith.shrsi %[[HIGH]], %{{.*}} : i8
// CHECK: arith.andi %[[WIDE]], %{{.*}} : i8
func.func @main(%x: tensor<3xi4>) -> tensor<3xui2> {
  %0 = "relay.cast"(%x) {dtype = "uint2"} : (tensor<3xi4>) -> tensor<3xui2>
  return %0 : tensor<3xui2>
}
