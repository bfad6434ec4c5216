// RUN: relayc-opt %s --passes concatenate-in-place --split-input-file | filecheck %s

// Each operand of the concatenation is written by a call and stands in no second place: the concatenation takes no kernel. The reshape
// between is a view.
// CHECK-NOT: @join(
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = call @k(%arg0)
// CHECK: %[[B:.*]] = call @k(%arg0)
// CHECK: %[[V:.*]] = tensor.expand_shape %[[B]]
// CHECK: %[[C:.*]] = tensor.concat dim(1) %{{.*}}, %[[V]]
// CHECK: call @use(%[[C]])
func.func private @k(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  return %x : tensor<2x4xf32>
}
func.func private @join(%x: tensor<1x2x4xf32>, %y: tensor<1x2x4xf32>) -> tensor<1x4x4xf32> {
  %0 = tensor.concat dim(1) %x, %y : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x4x4xf32>
  return %0 : tensor<1x4x4xf32>
}
func.func private @use(%x: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  return %x : tensor<1x4x4xf32>
}
func.func @main(%x: tensor<2x4xf32>) -> tensor<1x4x4xf32> {
  %a = call @k(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %b = call @k(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %u = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 2, 4] : tensor<2x4xf32> into tensor<1x2x4xf32>
  %v = tensor.expand_shape %b [[0, 1], [2]] output_shape [1, 2, 4] : tensor<2x4xf32> into tensor<1x2x4xf32>
  %c = call @join(%u, %v) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x4x4xf32>
  %d = call @use(%c) : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %d : tensor<1x4x4xf32>
}

// -----

// Not in place: the parts of an axis behind one of two rows are not contiguous; an input is not written by a call; one tensor cannot be in
// two places; what the function returns is placed by its caller. The kernels stay.
// CHECK: func.func private @columns(
// CHECK: func.func private @rows(
// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor.concat
func.func private @k(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  return %x : tensor<1x4xf32>
}
func.func private @columns(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %0 = tensor.concat dim(1) %x, %y : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
func.func private @rows(%x: tensor<1x4xf32>, %y: tensor<1x4xf32>) -> tensor<2x4xf32> {
  %0 = tensor.concat dim(0) %x, %y : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
func.func @main(%x: tensor<1x4xf32>) -> (tensor<2x8xf32>, tensor<2x4xf32>) {
  %a = call @k(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %b = call @k(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %c = call @rows(%a, %x) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %d = call @rows(%a, %a) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %e = call @columns(%c, %d) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %f = call @rows(%a, %b) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  return %e, %f : tensor<2x8xf32>, tensor<2x4xf32>
}

// -----

// A dense block: the smaller concatenation lies at the beginning of the larger one.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = tensor.concat dim(0) %[[A:.*]], %[[B:.*]] :
// CHECK: %[[C:.*]] = call @k2(%[[S]])
// CHECK: tensor.concat dim(0) %[[A]], %[[B]], %[[C]] :
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @k2(%x: tensor<8xf32>) -> tensor<4xf32> {
  %0 = tensor.extract_slice %x[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @two(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<8xf32> {
  %0 = tensor.concat dim(0) %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @three(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<12xf32> {
  %0 = tensor.concat dim(0) %x, %y, %z : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}
func.func private @use(%x: tensor<12xf32>) -> tensor<12xf32> {
  return %x : tensor<12xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<12xf32> {
  %a = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %s = call @two(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %c = call @k2(%s) : (tensor<8xf32>) -> tensor<4xf32>
  %t = call @three(%a, %b, %c) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<12xf32>
  %u = call @use(%t) : (tensor<12xf32>) -> tensor<12xf32>
  return %u : tensor<12xf32>
}
