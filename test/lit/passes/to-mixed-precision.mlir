// RUN: relayc-opt %s --passes fuse-ops,to-mixed-precision --config relay.ToMixedPrecision.precision=bf16 --split-input-file | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops,to-mixed-precision --split-input-file | filecheck %s --check-prefix=PLAIN

// Between convolutions tensors are bf16; what is added comes from memory as bf16 and is added in f32; weights are converted here, the input
// by a kernel; the result is f32.
// PLAIN-NOT: bf16
// CHECK-LABEL: func.func @residual
// CHECK-DAG: %[[W:.*]] = "relay.constant"() {{.*}} tensor<16x16x1x1xbf16>
// CHECK: %[[X:.*]] = "relay.fused"()
// CHECK: "relay.cast"(%arg0)
// CHECK: -> tensor<1x16x8x8xbf16>
// CHECK: %[[A:.*]] = "relay.fused"()
// CHECK: "relay.nn_conv2d"(%[[X]], %[[W]]) {out_dtype = "float32"} : (tensor<1x16x8x8xbf16>, tensor<16x16x1x1xbf16>) -> tensor<1x16x8x8xf32>
// CHECK-NEXT: "relay.nn_relu"({{.*}}) : (tensor<1x16x8x8xf32>)
// CHECK-NEXT: "relay.cast"({{.*}}) {dtype = "bfloat16"}
// CHECK: %[[B:.*]] = "relay.fused"()
// CHECK: %[[C:.*]] = "relay.nn_conv2d"(%[[A]], %[[W]])
// CHECK-NEXT: %[[R:.*]] = "relay.cast"({{.*}}) {dtype = "float32"}
// CHECK-NEXT: "relay.add"(%[[C]], %[[R]]) : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>)
// CHECK: -> tensor<1x16x8x8xbf16>
// CHECK: %[[D:.*]] = "relay.fused"()
// CHECK: "relay.nn_conv2d"(%[[B]], %[[W]])
// CHECK-NEXT: "relay.yield"
// CHECK: -> tensor<1x16x8x8xf32>
// CHECK: return %[[D]]
func.func @residual(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = "relay.constant"() {value = dense<1.5> : tensor<16x16x1x1xf32>} : () -> tensor<16x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.nn_relu"(%0) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relay.nn_conv2d"(%1, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %3 = "relay.add"(%2, %1) : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %4 = "relay.nn_conv2d"(%3, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  return %4 : tensor<1x16x8x8xf32>
}

// -----

// Softmax reads and computes f32, and writes what the product behind it reads.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[S:.*]] = "relay.fused"()
// CHECK: "relay.nn_batch_matmul"({{.*}}) {out_dtype = "float32"
// CHECK-NEXT: "relay.yield"
// CHECK: -> tensor<2x8x8xf32>
// CHECK: %[[P:.*]] = "relay.fused"()
// CHECK: "relay.nn_softmax"({{.*}}) : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
// CHECK-NEXT: "relay.cast"
// CHECK: -> tensor<2x8x8xbf16>
// CHECK: "relay.fused"()
// CHECK: "relay.nn_batch_matmul"({{.*}}) {out_dtype = "float32"} : (tensor<2x8x8xbf16>, tensor<2x4x8xbf16>) -> tensor<2x8x4xf32>
func.func @softmax(%q: tensor<2x8x4xf32>, %k: tensor<2x8x4xf32>, %v: tensor<2x4x8xf32>) -> tensor<2x8x4xf32> {
  %0 = "relay.nn_batch_matmul"(%q, %k) : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
  %1 = "relay.nn_softmax"(%0) : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %2 = "relay.nn_batch_matmul"(%1, %v) : (tensor<2x8x8xf32>, tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
  return %2 : tensor<2x8x4xf32>
}

// -----

// Operators that only move elements work on bf16, behind views too; what reads their result decides how their operand is stored.
// CHECK-LABEL: func.func @moves
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.cast"
// CHECK: %[[D:.*]] = {{.*}}-> tensor<8x4xbf16>
// CHECK: %[[V:.*]] = "relay.reshape"({{.*}}) {{.*}} -> tensor<4x2x4xbf16>
// CHECK: "relay.fused"()
// CHECK: "relay.transpose"(%[[V]]) {{.*}} : (tensor<4x2x4xbf16>) -> tensor<2x4x4xbf16>
// CHECK-NEXT: "relay.yield"
func.func @moves(%x: tensor<8x4xf32>) -> tensor<2x4x4xf32> {
  %w = "relay.constant"() {value = dense<1.5> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 4, 2, 4>} : (tensor<8x4xf32>) -> tensor<4x2x4xf32>
  %2 = "relay.transpose"(%1) {axes = array<i64: 1, 0, 2>} : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
  %3 = "relay.nn_batch_matmul"(%2, %2) : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %3 : tensor<2x4x4xf32>
}

// -----

// A tensor that a normalisation and an addition read stays f32, and so do products of other types than f32.
// CHECK-LABEL: func.func @stream
// CHECK: "relay.nn_dense"({{.*}}) {out_dtype = "float32"}
// CHECK-NEXT: %[[S:.*]] = "relay.add"
// CHECK-NEXT: "relay.yield"(%[[S]]) : (tensor<8x4xf32>)
// CHECK: "relay.nn_layer_norm"
// CHECK-NEXT: "relay.cast"
// CHECK: "relay.nn_dense"({{.*}}) : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
func.func @stream(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %g: tensor<4xf32>, %w: tensor<4x4xf32>, %d: tensor<8x4xf64>, %e: tensor<4x4xf64>) -> (tensor<8x4xf32>, tensor<8x4xf64>) {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = "relay.add"(%0, %y) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "relay.nn_layer_norm"(%1, %g, %g) : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %3 = "relay.nn_dense"(%2, %w) : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %4 = "relay.add"(%3, %1) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = "relay.nn_dense"(%d, %e) : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  return %4, %5 : tensor<8x4xf32>, tensor<8x4xf64>
}

// -----

// Attention reads and gives bf16, but its mask stays as it is: the least finite f32 must not become an infinity.
// CHECK-LABEL: func.func @attention
// CHECK: %[[A:.*]] = "relay.nn_attention"({{.*}}) {{.*}} : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x1x4x4xf32>) -> tensor<1x2x4x8xbf16>
// CHECK: "relay.cast"(%[[A]]) {dtype = "float32"}
func.func @attention(%x: tensor<1x2x4x8xf32>, %m: tensor<1x1x4x4xf32>) -> tensor<1x2x4x8xf32> {
  %0 = "relay.nn_attention"(%x, %x, %x, %m) {scale = 0.25} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xf32>) -> tensor<1x2x4x8xf32>
  return %0 : tensor<1x2x4x8xf32>
}

// -----

// What becomes an integer must not be rounded before, be it moved on the way.
// CHECK-LABEL: func.func @integers
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.yield"
// CHECK: -> tensor<4x4xf32>
// CHECK: "relay.transpose"({{.*}}) {{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
func.func @integers(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xi32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.transpose"(%0) {axes = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relay.cast"(%1) {dtype = "int32"} : (tensor<4x4xf32>) -> tensor<4x4xi32>
  return %2 : tensor<4x4xi32>
}

// -----

// A concatenation stays the last operator of its group, which writes each part where it belongs: the parts are cast, not the whole.
// CHECK-LABEL: func.func @parts
// CHECK: %[[R:.*]] = "relay.image_resize2d"
// CHECK-NEXT: %[[N:.*]] = "relay.cast"(%[[R]]) {dtype = "bfloat16"}
// CHECK-NEXT: %[[C:.*]] = tensor.concat dim(3) %[[N]], %{{.*}} : (tensor<1x4x4x8xbf16>, tensor<1x4x4x8xbf16>) -> tensor<1x4x4x16xbf16>
// CHECK-NEXT: "relay.yield"(%[[C]])
func.func @parts(%x: tensor<4x8xf32>, %y: tensor<16x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x16xf32>) -> tensor<16x8xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = "relay.nn_dense"(%y, %w) : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %2 = "relay.reshape"(%0) {newshape = array<i64: 1, 2, 2, 8>} : (tensor<4x8xf32>) -> tensor<1x2x2x8xf32>
  %3 = "relay.reshape"(%1) {newshape = array<i64: 1, 4, 4, 8>} : (tensor<16x8xf32>) -> tensor<1x4x4x8xf32>
  %4 = "relay.image_resize2d"(%2) {size = array<i64: 4, 4>, layout = "NHWC"} : (tensor<1x2x2x8xf32>) -> tensor<1x4x4x8xf32>
  %5 = tensor.concat dim(3) %4, %3 : (tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>) -> tensor<1x4x4x16xf32>
  %6 = "relay.reshape"(%5) {newshape = array<i64: 16, 16>} : (tensor<1x4x4x16xf32>) -> tensor<16x16xf32>
  %7 = "relay.nn_dense"(%6, %v) : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<16x8xf32>
  return %7 : tensor<16x8xf32>
}
