// RUN: relayc-opt %s --passes canonicalize-ops --split-input-file | filecheck %s

// Of unknown sizes nothing is rewritten.
// CHECK-LABEL: func.func @unknown_sizes
// CHECK-NEXT: relay.stack
// CHECK-NEXT: relay.layout_transform
// CHECK-NEXT: return
func.func @unknown_sizes(%x: tensor<?x3xf32>, %y: tensor<1x?x4x4xf32>) -> (tensor<?x2x3xf32>, tensor<1x4x4x?xf32>) {
  %0 = "relay.stack"(%x, %x) {axis = 1 : i64} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x2x3xf32>
  %1 = "relay.layout_transform"(%y) {src_layout = "NCHW", dst_layout = "NHWC"} : (tensor<1x?x4x4xf32>) -> tensor<1x4x4x?xf32>
  return %0, %1 : tensor<?x2x3xf32>, tensor<1x4x4x?xf32>
}

// -----

// CHECK-LABEL: func.func @reshapes
// CHECK: "relay.reshape"(%arg0) {allowzero = false, newshape = array<i64: 2, 1, 3, 4>}
// CHECK: "relay.reshape"(%{{.*}}) {allowzero = false, newshape = array<i64: 2, 3, 4>}
// CHECK: "relay.reshape"(%{{.*}}) {allowzero = false, newshape = array<i64: 2, 12>}
// CHECK: "relay.reshape"(%{{.*}}) {allowzero = false, newshape = array<i64: 24>}
// CHECK-NEXT: return
func.func @reshapes(%x: tensor<2x3x4xf32>) -> tensor<24xf32> {
  %0 = "relay.expand_dims"(%x) {axis = 1} : (tensor<2x3x4xf32>) -> tensor<2x1x3x4xf32>
  %1 = "relay.squeeze"(%0) : (tensor<2x1x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = "relay.nn_batch_flatten"(%1) : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %3 = "relay.reshape"(%2) {newshape = array<i64: -1>} : (tensor<2x12xf32>) -> tensor<24xf32>
  return %3 : tensor<24xf32>
}

// -----

// CHECK-LABEL: func.func @bias_add
// CHECK: %[[B:.*]] = "relay.reshape"(%arg1) {{.*}} -> tensor<3x1x1xf32>
// CHECK: "relay.add"(%arg0, %[[B]])
func.func @bias_add(%x: tensor<2x3x4x4xf32>, %b: tensor<3xf32>) -> tensor<2x3x4x4xf32> {
  %0 = "relay.nn_bias_add"(%x, %b) : (tensor<2x3x4x4xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32>
  return %0 : tensor<2x3x4x4xf32>
}

// -----

// CHECK-LABEL: func.func @split
// CHECK: "relay.strided_slice"(%arg0) {axes = array<i64: 1>, begin = array<i64: 0>, end = array<i64: 2>
// CHECK: "relay.strided_slice"(%arg0) {axes = array<i64: 1>, begin = array<i64: 2>, end = array<i64: 6>
func.func @split(%x: tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x4xf32>) {
  %0 = "relay.split"(%x) {indices_or_sections = array<i64: 2>, axis = -1} : (tensor<4x6xf32>) -> tuple<tensor<4x2xf32>, tensor<4x4xf32>>
  %1 = "relay.tuple_get_item"(%0) {index = 0} : (tuple<tensor<4x2xf32>, tensor<4x4xf32>>) -> tensor<4x2xf32>
  %2 = "relay.tuple_get_item"(%0) {index = 1} : (tuple<tensor<4x2xf32>, tensor<4x4xf32>>) -> tensor<4x4xf32>
  return %1, %2 : tensor<4x2xf32>, tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @slices
// CHECK-NOT: newshape
// CHECK: %[[R:.*]] = "relay.strided_slice"(%arg0) {{.*}} strides = array<i64: -1>
// CHECK: return %arg0, %[[R]]
func.func @slices(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 0, 0>, end = array<i64: 9, 6>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "relay.strided_slice"(%x) {begin = array<i64: 3>, end = array<i64: -9>, strides = array<i64: -1>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func.func @stack
// CHECK: %[[A:.*]] = "relay.reshape"(%arg0) {{.*}} -> tensor<2x1x3xf32>
// CHECK: %[[B:.*]] = "relay.reshape"(%arg1) {{.*}} -> tensor<2x1x3xf32>
// CHECK: tensor.concat dim(1) %[[A]], %[[B]]
func.func @stack(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x2x3xf32> {
  %0 = "relay.stack"(%x, %y) {axis = 1} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2x3xf32>
  return %0 : tensor<2x2x3xf32>
}

// -----

// CHECK-LABEL: func.func @concatenate
// CHECK: return %arg0
func.func @concatenate(%x: tensor<2x3xf32>, %e: tensor<0x3xf32>) -> tensor<2x3xf32> {
  %0 = tensor.concat dim(0) %x, %e : (tensor<2x3xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @depth_to_space
// CHECK: "relay.reshape"(%arg0) {{.*}} -> tensor<1x2x2x3x4x5xf32>
// CHECK: "relay.transpose"(%{{.*}}) {axes = array<i64: 0, 3, 4, 1, 5, 2>}
// CHECK: "relay.reshape"(%{{.*}}) {{.*}} -> tensor<1x3x8x10xf32>
// CHECK: "relay.reshape"(%{{.*}}) {{.*}} -> tensor<1x3x4x2x5x2xf32>
// CHECK: "relay.transpose"(%{{.*}}) {axes = array<i64: 0, 3, 5, 1, 2, 4>}
func.func @depth_to_space(%x: tensor<1x12x4x5xf32>) -> tensor<1x12x4x5xf32> {
  %0 = "relay.nn_depth_to_space"(%x) {block_size = 2} : (tensor<1x12x4x5xf32>) -> tensor<1x3x8x10xf32>
  %1 = "relay.nn_space_to_depth"(%0) {block_size = 2} : (tensor<1x3x8x10xf32>) -> tensor<1x12x4x5xf32>
  return %1 : tensor<1x12x4x5xf32>
}

// -----

// CHECK-LABEL: func.func @layout_transform
// CHECK: "relay.reshape"(%arg0) {{.*}} -> tensor<1x4x8x5x6xf32>
// CHECK: "relay.transpose"(%{{.*}}) {axes = array<i64: 0, 1, 3, 4, 2>} {{.*}} -> tensor<1x4x5x6x8xf32>
// CHECK: "relay.transpose"(%{{.*}}) {axes = array<i64: 0, 2, 3, 1, 4>}
// CHECK: "relay.reshape"(%{{.*}}) {{.*}} -> tensor<1x5x6x32xf32>
func.func @layout_transform(%x: tensor<1x32x5x6xf32>) -> tensor<1x5x6x32xf32> {
  %0 = "relay.layout_transform"(%x) {src_layout = "NCHW", dst_layout = "NCHW8c"} : (tensor<1x32x5x6xf32>) -> tensor<1x4x5x6x8xf32>
  %1 = "relay.layout_transform"(%0) {src_layout = "NCHW8c", dst_layout = "NHWC"} : (tensor<1x4x5x6x8xf32>) -> tensor<1x5x6x32xf32>
  return %1 : tensor<1x5x6x32xf32>
}

// -----

// CHECK-LABEL: func.func @matmul
// CHECK: "relay.nn_dense"(%arg0, %arg1)
// CHECK: "relay.nn_matmul"(%arg0, %arg1)
func.func @matmul(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = "relay.nn_matmul"(%x, %w) {transpose_b = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.nn_matmul"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A pooling of whole images is a reduction; one that leaves more than one element is not.
// CHECK-LABEL: func.func @pools
// CHECK: "relay.mean"(%arg0) {axis = array<i64: 2, 3>, {{.*}}keepdims = true}
// CHECK: "relay.max"(%arg0) {axis = array<i64: 2, 3>, {{.*}}keepdims = true}
// CHECK: "relay.nn_adaptive_avg_pool2d"(%arg0)
func.func @pools(%x: tensor<1x3x4x4xf32>) -> (tensor<1x3x1x1xf32>, tensor<1x3x1x1xf32>, tensor<1x3x2x2xf32>) {
  %0 = "relay.nn_global_avg_pool2d"(%x) : (tensor<1x3x4x4xf32>) -> tensor<1x3x1x1xf32>
  %1 = "relay.nn_adaptive_max_pool2d"(%x) {output_size = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x1x1xf32>
  %2 = "relay.nn_adaptive_avg_pool2d"(%x) {output_size = array<i64: 2, 2>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x2x2xf32>
  return %0, %1, %2 : tensor<1x3x1x1xf32>, tensor<1x3x1x1xf32>, tensor<1x3x2x2xf32>
}

// -----

// A pad with zeros goes into the convolution and into an average; padding of channels, or with something else, does not.
// CHECK-LABEL: func.func @pads
// CHECK: "relay.nn_conv2d"(%arg0, %arg1) {{.*}}padding = array<i64: 1, 2, 2, 1>
// CHECK: "relay.nn_avg_pool2d"(%arg0) {{.*}}count_include_pad = true{{.*}}padding = array<i64: 0, 1, 1, 0>
// CHECK: %[[P:.*]] = "relay.nn_pad"(%arg0
// CHECK: "relay.nn_conv2d"(%[[P]], %arg1)
func.func @pads(%x: tensor<1x3x4x4xf32>, %w: tensor<2x3x3x3xf32>) -> (tensor<1x2x5x5xf32>, tensor<1x3x4x4xf32>, tensor<1x2x3x3xf32>) {
  %zero = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.nn_pad"(%x, %zero) {pad_width = array<i64: 0, 0, 0, 0, 0, 1, 1, 0>} : (tensor<1x3x4x4xf32>, tensor<f32>) -> tensor<1x3x5x5xf32>
  %1 = "relay.nn_conv2d"(%0, %w) {padding = array<i64: 1, 1>} : (tensor<1x3x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x5x5xf32>
  %2 = "relay.nn_avg_pool2d"(%0) {pool_size = array<i64: 2, 2>} : (tensor<1x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  %3 = "relay.nn_pad"(%x, %one) {pad_width = array<i64: 0, 0, 0, 0, 0, 1, 1, 0>} : (tensor<1x3x4x4xf32>, tensor<f32>) -> tensor<1x3x5x5xf32>
  %4 = "relay.nn_conv2d"(%3, %w) : (tensor<1x3x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x3x3xf32>
  return %1, %2, %4 : tensor<1x2x5x5xf32>, tensor<1x3x4x4xf32>, tensor<1x2x3x3xf32>
}

// -----

// Tuples made and taken apart in one place go.
// CHECK-LABEL: func.func @tuples
// CHECK-NEXT: %[[E:.*]] = "relay.exp"(%arg0)
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%[[E]], %arg1)
// CHECK-NEXT: return %[[A]]
func.func @tuples(%x: tensor<4xf32>, %y: tensor<1xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = builtin.unrealized_conversion_cast %0, %y : tensor<4xf32>, tensor<1xf32> to tuple<tensor<4xf32>, tensor<1xf32>>
  %2 = "relay.tuple_get_item"(%1) {index = 0} : (tuple<tensor<4xf32>, tensor<1xf32>>) -> tensor<4xf32>
  %3 = "relay.tuple_get_item"(%1) {index = 1} : (tuple<tensor<4xf32>, tensor<1xf32>>) -> tensor<1xf32>
  %4 = "relay.add"(%2, %3) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// A branch on a constant is what is taken.
// CHECK-LABEL: func.func @taken
// CHECK-NOT: "relay.if"
// CHECK: %[[E:.*]] = "relay.exp"(%arg0)
// CHECK-NEXT: return %[[E]]
func.func @taken(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = "relay.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %0 = "relay.if"(%c) ({
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }, {
    %1 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%1) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
