// RUN: relayc-opt %s --passes merge-similar-kernels --split-input-file | filecheck %s
// RUN: relayc-opt %s --passes merge-similar-kernels,relay-to-te --split-input-file | filecheck %s --check-prefix=TE

// Equal kernels of other sizes are one. Its sizes are symbols, of which others are multiples and quotients: blocks of channels, height and
// width. Calls say what they are, as the types of the arguments need not.
// CHECK: d0 = array<i64: 2, 4, 4>
// CHECK-SAME: d1 = array<i64: 1, 300, 64>
// CHECK-SAME: d2 = array<i64: 1, 250, 16>
// CHECK: func.func private @first(%arg0: tensor<1x?x?x?x16xf32, ["36*d0", "(d1 + 3)//4", "(d2 + 3)//4"]>, %arg1: tensor<1x?x1x1x16xf32, ["d0"]> {relay.param}) -> tensor<1x?x?x?x16xf32, ["d0", "d1", "d2"]>
// CHECK: "relay.nn_winograd_output_transform"(%arg0) {height = "d1", layout = "NCHW16c", width = "d2"}
// CHECK-NOT: func.func private
// CHECK: func.func @main
// CHECK: %[[A:.*]] = "relay.cast_shape"(%arg0) {shape = [1, "36*d0", "(d1 + 3)//4", "(d2 + 3)//4", 16]}
// CHECK: %[[R:.*]] = call @first(%[[A]], %{{.*}}) {relay.bindings = {d0 = 4 : i64, d1 = "h", d2 = "(w + 1)//2"}}
// CHECK: "relay.cast_shape"(%[[R]]) {shape = [1, 4, "h", "(w + 1)//2", 16]}
// CHECK: call @first(%{{.*}}, %{{.*}}) {relay.bindings = {d0 = 2 : i64, d1 = "(h + 1)//2", d2 = "(w + 3)//4"}}
// TE: func.func @main(%{{.*}}, %[[H:[a-z0-9]+]]: index {relay.symbol = "h"}, %[[W:[a-z0-9]+]]: index {relay.symbol = "w"})
// TE: %[[ODD:.*]] = arith.addi %[[W]], %
// TE: %[[HALF:.*]] = arith.divui %[[ODD]], %
// TE: tensor.cast %arg0
// TE: %[[C:.*]] = arith.constant 4 : index
// TE-NEXT: call @first(%{{.*}}, %{{.*}}, %[[C]], %[[H]], %[[HALF]])
module attributes {relay.symbols = {h = array<i64: 1, 300, 64>, w = array<i64: 1, 500, 32>}} {
  func.func private @second(%x: tensor<1x72x?x?x16xf32, ["(h + 7)//8", "(w + 15)//16"]>, %b: tensor<1x2x1x1x16xf32> {relay.param}) -> tensor<1x2x?x?x16xf32, ["(h + 1)//2", "(w + 3)//4"]> attributes {relay.primitive} {
    %0 = "relay.nn_winograd_output_transform"(%x) {height = "(h + 1)//2", width = "(w + 3)//4", layout = "NCHW16c"} : (tensor<1x72x?x?x16xf32, ["(h + 7)//8", "(w + 15)//16"]>) -> tensor<1x2x?x?x16xf32, ["(h + 1)//2", "(w + 3)//4"]>
    %1 = "relay.add"(%0, %b) : (tensor<1x2x?x?x16xf32, ["(h + 1)//2", "(w + 3)//4"]>, tensor<1x2x1x1x16xf32>) -> tensor<1x2x?x?x16xf32, ["(h + 1)//2", "(w + 3)//4"]>
    return %1 : tensor<1x2x?x?x16xf32, ["(h + 1)//2", "(w + 3)//4"]>
  }
  func.func private @first(%x: tensor<1x144x?x?x16xf32, ["(h + 3)//4", "(w + 7)//8"]>, %b: tensor<1x4x1x1x16xf32> {relay.param}) -> tensor<1x4x?x?x16xf32, ["h", "(w + 1)//2"]> attributes {relay.primitive} {
    %0 = "relay.nn_winograd_output_transform"(%x) {height = "h", width = "(w + 1)//2", layout = "NCHW16c"} : (tensor<1x144x?x?x16xf32, ["(h + 3)//4", "(w + 7)//8"]>) -> tensor<1x4x?x?x16xf32, ["h", "(w + 1)//2"]>
    %1 = "relay.add"(%0, %b) : (tensor<1x4x?x?x16xf32, ["h", "(w + 1)//2"]>, tensor<1x4x1x1x16xf32>) -> tensor<1x4x?x?x16xf32, ["h", "(w + 1)//2"]>
    return %1 : tensor<1x4x?x?x16xf32, ["h", "(w + 1)//2"]>
  }
  func.func @main(%x: tensor<1x144x?x?x16xf32, ["(h + 3)//4", "(w + 7)//8"]>, %y: tensor<1x72x?x?x16xf32, ["(h + 7)//8", "(w + 15)//16"]>, %shape: tensor<?x?xf32, ["h", "w"]>) -> (tensor<1x4x?x?x16xf32, ["h", "(w + 1)//2"]>, tensor<1x2x?x?x16xf32, ["(h + 1)//2", "(w + 3)//4"]>) {
    %a = "relay.constant"() {value = "a", shape = array<i64: 1, 4, 1, 1, 16>, dtype = "float32"} : () -> tensor<1x4x1x1x16xf32>
    %b = "relay.constant"() {value = "b", shape = array<i64: 1, 2, 1, 1, 16>, dtype = "float32"} : () -> tensor<1x2x1x1x16xf32>
    %0 = call @first(%x, %a) : (tensor<1x144x?x?x16xf32, ["(h + 3)//4", "(w + 7)//8"]>, tensor<1x4x1x1x16xf32>) -> tensor<1x4x?x?x16xf32, ["h", "(w + 1)//2"]>
    %1 = call @second(%y, %b) : (tensor<1x72x?x?x16xf32, ["(h + 7)//8", "(w + 15)//16"]>, tensor<1x2x1x1x16xf32>) -> tensor<1x2x?x?x16xf32, ["(h + 1)//2", "(w + 3)//4"]>
    return %0, %1 : tensor<1x4x?x?x16xf32, ["h", "(w + 1)//2"]>, tensor<1x2x?x?x16xf32, ["(h + 1)//2", "(w + 3)//4"]>
  }
}

// -----

// Kernels stay that lanes run along what differs of (@scale), that are of numbers alone (@norm), or whose products have other weights
// (@product and @wide); products of other rows are one.
// CHECK-LABEL: func.func private @scale
// CHECK-LABEL: func.func private @scale_1
// CHECK-LABEL: func.func private @norm
// CHECK-LABEL: func.func private @norm_1
// CHECK-NOT: func.func private @product(
// CHECK-LABEL: func.func private @product_1(%arg0: tensor<?x4xf32, ["d0"]>, %arg1: tensor<8x4xf32>)
// CHECK-LABEL: func.func private @wide
// CHECK: call @product_1(%{{.*}}) {relay.bindings = {d0 = "n"}}
// CHECK: call @product_1(%{{.*}}) {relay.bindings = {d0 = "2*n"}}
func.func private @scale(%x: tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> attributes {relay.primitive} {
  %0 = "relay.exp"(%x) : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  return %0 : tensor<?x4xf32, ["n"]>
}
func.func private @scale_1(%x: tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]> attributes {relay.primitive} {
  %0 = "relay.exp"(%x) : (tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]>
  return %0 : tensor<?x8xf32, ["n"]>
}
func.func private @norm(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {relay.primitive} {
  %0 = "relay.tanh"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
func.func private @norm_1(%x: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {relay.primitive} {
  %0 = "relay.tanh"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
func.func private @product(%x: tensor<?x4xf32, ["n"]>, %w: tensor<8x4xf32>) -> tensor<?x8xf32, ["n"]> attributes {relay.primitive} {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x4xf32, ["n"]>, tensor<8x4xf32>) -> tensor<?x8xf32, ["n"]>
  return %0 : tensor<?x8xf32, ["n"]>
}
func.func private @product_1(%x: tensor<?x4xf32, ["2*n"]>, %w: tensor<8x4xf32>) -> tensor<?x8xf32, ["2*n"]> attributes {relay.primitive} {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x4xf32, ["2*n"]>, tensor<8x4xf32>) -> tensor<?x8xf32, ["2*n"]>
  return %0 : tensor<?x8xf32, ["2*n"]>
}
func.func private @wide(%x: tensor<?x4xf32, ["n"]>, %w: tensor<16x4xf32>) -> tensor<?x16xf32, ["n"]> attributes {relay.primitive} {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x4xf32, ["n"]>, tensor<16x4xf32>) -> tensor<?x16xf32, ["n"]>
  return %0 : tensor<?x16xf32, ["n"]>
}
func.func @main(%x: tensor<?x4xf32, ["n"]>, %y: tensor<?x8xf32, ["n"]>, %a: tensor<2x4xf32>, %b: tensor<3x4xf32>, %w: tensor<8x4xf32>, %v: tensor<16x4xf32>, %z: tensor<?x4xf32, ["2*n"]>) -> (tensor<?x4xf32, ["n"]>, tensor<?x8xf32, ["n"]>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<?x8xf32, ["n"]>, tensor<?x8xf32, ["2*n"]>, tensor<?x16xf32, ["n"]>) {
  %0 = call @scale(%x) : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  %1 = call @scale_1(%y) : (tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["n"]>
  %2 = call @norm(%a) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = call @norm_1(%b) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = call @product(%x, %w) : (tensor<?x4xf32, ["n"]>, tensor<8x4xf32>) -> tensor<?x8xf32, ["n"]>
  %5 = call @product_1(%z, %w) : (tensor<?x4xf32, ["2*n"]>, tensor<8x4xf32>) -> tensor<?x8xf32, ["2*n"]>
  %6 = call @wide(%x, %v) : (tensor<?x4xf32, ["n"]>, tensor<16x4xf32>) -> tensor<?x16xf32, ["n"]>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<?x4xf32, ["n"]>, tensor<?x8xf32, ["n"]>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<?x8xf32, ["n"]>, tensor<?x8xf32, ["2*n"]>, tensor<?x16xf32, ["n"]>
}

// -----

// Blocks of channels stay where they are in a transpose (@turn), parts of other sizes begin elsewhere (@part), and where the axis that stays
// is another one (@flip), kernels are two.
// CHECK: func.func private @turn_1(%arg0: tensor<?x?x16x?xf32, ["n", "d0", "d1"]>) -> tensor<?x?x?x16xf32, ["n", "d0", "d1"]>
// CHECK: func.func private @part_1(%arg0: tensor<?x?x4xf32, ["n", "2*[[P:d[0-9_]+]]"]>)
// CHECK: "relay.strided_slice"(%arg0) {axes = array<i64: 1>, begin = ["[[B:d[0-9_]+]]"], end = ["[[E:d[0-9_]+]]"]
// CHECK: func.func private @flip(
// CHECK: func.func private @flip_1(
// CHECK: call @turn_1(%{{.*}}) {relay.bindings = {d0 = 2 : i64, d1 = "m"}}
// CHECK: call @turn_1(%{{.*}}) {relay.bindings = {d0 = 3 : i64, d1 = "2*m"}}
// CHECK: call @part_1(%{{.*}}) {relay.bindings = {{{.*}}[[B]] = 0 : i64, {{.*}}[[E]] = 8 : i64
// CHECK: call @part_1(%{{.*}}) {relay.bindings = {{{.*}}[[B]] = 16 : i64, {{.*}}[[E]] = 32 : i64
func.func private @turn(%x: tensor<?x3x16x?xf32, ["n", "2*m"]>) -> tensor<?x3x?x16xf32, ["n", "2*m"]> attributes {relay.primitive} {
  %0 = "relay.transpose"(%x) {axes = array<i64: 0, 1, 3, 2>} : (tensor<?x3x16x?xf32, ["n", "2*m"]>) -> tensor<?x3x?x16xf32, ["n", "2*m"]>
  return %0 : tensor<?x3x?x16xf32, ["n", "2*m"]>
}
func.func private @turn_1(%x: tensor<?x2x16x?xf32, ["n", "m"]>) -> tensor<?x2x?x16xf32, ["n", "m"]> attributes {relay.primitive} {
  %0 = "relay.transpose"(%x) {axes = array<i64: 0, 1, 3, 2>} : (tensor<?x2x16x?xf32, ["n", "m"]>) -> tensor<?x2x?x16xf32, ["n", "m"]>
  return %0 : tensor<?x2x?x16xf32, ["n", "m"]>
}
func.func private @part(%x: tensor<?x32x4xf32, ["n"]>) -> tensor<?x16x4xf32, ["n"]> attributes {relay.primitive} {
  %0 = "relay.strided_slice"(%x) {axes = array<i64: 1>, begin = [16], end = [32], strides = array<i64: 1>, slice_mode = "end"} : (tensor<?x32x4xf32, ["n"]>) -> tensor<?x16x4xf32, ["n"]>
  return %0 : tensor<?x16x4xf32, ["n"]>
}
func.func private @part_1(%x: tensor<?x16x4xf32, ["n"]>) -> tensor<?x8x4xf32, ["n"]> attributes {relay.primitive} {
  %0 = "relay.strided_slice"(%x) {axes = array<i64: 1>, begin = [0], end = [8], strides = array<i64: 1>, slice_mode = "end"} : (tensor<?x16x4xf32, ["n"]>) -> tensor<?x8x4xf32, ["n"]>
  return %0 : tensor<?x8x4xf32, ["n"]>
}
func.func private @flip(%x: tensor<?x3x16xf32, ["n"]>) -> tensor<3x?x16xf32, ["n"]> attributes {relay.primitive} {
  %0 = "relay.transpose"(%x) {axes = array<i64: 1, 0, 2>} : (tensor<?x3x16xf32, ["n"]>) -> tensor<3x?x16xf32, ["n"]>
  return %0 : tensor<3x?x16xf32, ["n"]>
}
func.func private @flip_1(%x: tensor<?x2x16xf32, ["n"]>) -> tensor<2x?x16xf32, ["n"]> attributes {relay.primitive} {
  %0 = "relay.transpose"(%x) {axes = array<i64: 1, 0, 2>} : (tensor<?x2x16xf32, ["n"]>) -> tensor<2x?x16xf32, ["n"]>
  return %0 : tensor<2x?x16xf32, ["n"]>
}
func.func @main(%a: tensor<?x2x16x?xf32, ["n", "m"]>, %b: tensor<?x3x16x?xf32, ["n", "2*m"]>, %c: tensor<?x16x4xf32, ["n"]>, %d: tensor<?x32x4xf32, ["n"]>, %e: tensor<?x3x16xf32, ["n"]>, %f: tensor<?x2x16xf32, ["n"]>) -> (tensor<?x2x?x16xf32, ["n", "m"]>, tensor<?x3x?x16xf32, ["n", "2*m"]>, tensor<?x8x4xf32, ["n"]>, tensor<?x16x4xf32, ["n"]>, tensor<3x?x16xf32, ["n"]>, tensor<2x?x16xf32, ["n"]>) {
  %0 = call @turn_1(%a) : (tensor<?x2x16x?xf32, ["n", "m"]>) -> tensor<?x2x?x16xf32, ["n", "m"]>
  %1 = call @turn(%b) : (tensor<?x3x16x?xf32, ["n", "2*m"]>) -> tensor<?x3x?x16xf32, ["n", "2*m"]>
  %2 = call @part_1(%c) : (tensor<?x16x4xf32, ["n"]>) -> tensor<?x8x4xf32, ["n"]>
  %3 = call @part(%d) : (tensor<?x32x4xf32, ["n"]>) -> tensor<?x16x4xf32, ["n"]>
  %4 = call @flip(%e) : (tensor<?x3x16xf32, ["n"]>) -> tensor<3x?x16xf32, ["n"]>
  %5 = call @flip_1(%f) : (tensor<?x2x16xf32, ["n"]>) -> tensor<2x?x16xf32, ["n"]>
  return %0, %1, %2, %3, %4, %5 : tensor<?x2x?x16xf32, ["n", "m"]>, tensor<?x3x?x16xf32, ["n", "2*m"]>, tensor<?x8x4xf32, ["n"]>, tensor<?x16x4xf32, ["n"]>, tensor<3x?x16xf32, ["n"]>, tensor<2x?x16xf32, ["n"]>
}
