// RUN: relayc-opt %s --passes alter-op-layout,dead-code-elimination | filecheck %s
// RUN: relayc-opt %s --passes alter-op-layout | filecheck %s --check-prefix ALTERED

// What lies between two convolutions is a region; its convolutions read and write the program's own layout outside.
// CHECK-LABEL: func.func @region
// CHECK-NOT: layout_transform
// CHECK: %[[A:.*]] = "relay.nn_conv2d"(%arg0, {{.*}}) {{.*}}data_layout = "NCHW"{{.*}}out_layout = "NCHW[[B:.*]]c"
// CHECK: %[[R:.*]] = "relay.nn_relu"(%[[A]])
// CHECK: %[[P:.*]] = "relay.nn_max_pool2d"(%[[R]]) {{.*}}layout = "NCHW{{.*}}c"
// CHECK: %[[C:.*]] = "relay.nn_conv2d"(%[[P]], {{.*}}) {{.*}}data_layout = "NCHW{{.*}}c"{{.*}}out_layout = "NCHW"
// CHECK: return %[[C]]
func.func @region(%x: tensor<1x3x8x8xf32>) -> tensor<1x32x4x4xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<16x3x1x1xf32>} : () -> tensor<16x3x1x1xf32>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<32x16x1x1xf32>} : () -> tensor<32x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.nn_relu"(%0) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relay.nn_max_pool2d"(%1) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x16x8x8xf32>) -> tensor<1x16x4x4xf32>
  %3 = "relay.nn_conv2d"(%2, %w1) : (tensor<1x16x4x4xf32>, tensor<32x16x1x1xf32>) -> tensor<1x32x4x4xf32>
  return %3 : tensor<1x32x4x4xf32>
}

// A bias per channel has the same elements in blocks: it is only seen so.
// CHECK-LABEL: func.func @bias
// CHECK: relay.reshape{{.*}} -> tensor<1x{{.*}}x1x1x{{.*}}xf32>
// CHECK: "relay.add"
func.func @bias(%x: tensor<1x3x8x8xf32>, %b: tensor<16x1x1xf32>) -> tensor<1x32x8x8xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<16x3x1x1xf32>} : () -> tensor<16x3x1x1xf32>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<32x16x1x1xf32>} : () -> tensor<32x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.add"(%0, %b) : (tensor<1x16x8x8xf32>, tensor<16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relay.nn_conv2d"(%1, %w1) : (tensor<1x16x8x8xf32>, tensor<32x16x1x1xf32>) -> tensor<1x32x8x8xf32>
  return %2 : tensor<1x32x8x8xf32>
}

// A convolution alone has nothing to gain.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: layout_transform
// CHECK: return
func.func @alone(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<16x16x1x1xf32>} : () -> tensor<16x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  return %0 : tensor<1x16x8x8xf32>
}

// A depthwise convolution between convolutions is part of a region.
// CHECK-LABEL: func.func @depthwise
// CHECK-NOT: layout_transform
// CHECK: %[[D:.*]] = "relay.nn_conv2d"{{.*}}data_layout = "NCHW[[B:[0-9]+]]c"{{.*}}groups = 16{{.*}}out_layout = "NCHW[[B]]c"
// CHECK: "relay.nn_conv2d"(%[[D]], {{.*}}) {{.*}}data_layout = "NCHW[[B]]c"{{.*}}out_layout = "NCHW"
func.func @depthwise(%x: tensor<1x3x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<16x3x1x1xf32>} : () -> tensor<16x3x1x1xf32>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<16x1x3x3xf32>} : () -> tensor<16x1x3x3xf32>
  %w2 = "relay.constant"() {value = dense<1.0> : tensor<2x16x1x1xf32>} : () -> tensor<2x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.nn_conv2d"(%0, %w1) {groups = 16 : i64, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x16x8x8xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relay.nn_conv2d"(%1, %w2) : (tensor<1x16x8x8xf32>, tensor<2x16x1x1xf32>) -> tensor<1x2x8x8xf32>
  return %2 : tensor<1x2x8x8xf32>
}

// Where the program itself goes to NHWC and back, the region is in NHWC: the transposes vanish.
// CHECK-LABEL: func.func @last
// CHECK-NOT: relay.transpose
// CHECK: %[[C:.*]] = "relay.nn_conv2d"(%arg0, {{.*}}) {{.*}}data_layout = "NHWC"{{.*}}groups = 16{{.*}}out_layout = "NHWC"
// CHECK: %[[R:.*]] = "relay.image_resize2d"(%[[C]]) {{.*}}layout = "NHWC"
// CHECK-NOT: relay.transpose
// CHECK: return %[[R]]
func.func @last(%x: tensor<1x8x8x16xf32>) -> tensor<1x4x4x16xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<16x1x7x7xf32>} : () -> tensor<16x1x7x7xf32>
  %0 = "relay.transpose"(%x) {axes = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x16xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.nn_conv2d"(%0, %w) {groups = 16 : i64, padding = array<i64: 3, 3, 3, 3>} : (tensor<1x16x8x8xf32>, tensor<16x1x7x7xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relay.image_resize2d"(%1) {size = array<i64: 4, 4>} : (tensor<1x16x8x8xf32>) -> tensor<1x16x4x4xf32>
  %3 = "relay.transpose"(%2) {axes = array<i64: 0, 2, 3, 1>} : (tensor<1x16x4x4xf32>) -> tensor<1x4x4x16xf32>
  return %3 : tensor<1x4x4x16xf32>
}

// Channels that do not fill blocks are put last; a mean over all pixels ends a region.
// CHECK-LABEL: func.func @uneven
// CHECK-NOT: layout_transform
// CHECK: "relay.nn_conv2d"{{.*}}data_layout = "NCHW"{{.*}}out_layout = "NHWC"
// CHECK: "relay.nn_conv2d"{{.*}}data_layout = "NHWC"{{.*}}out_layout = "NHWC"
// CHECK: %[[M:.*]] = "relay.mean"{{.*}} {axis = array<i64: 1, 2>
// CHECK: %[[R:.*]] = "relay.reshape"(%[[M]])
// CHECK: return %[[R]]
func.func @uneven(%x: tensor<1x3x8x8xf32>) -> tensor<1x30x1x1xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<20x3x1x1xf32>} : () -> tensor<20x3x1x1xf32>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<30x20x1x1xf32>} : () -> tensor<30x20x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) : (tensor<1x3x8x8xf32>, tensor<20x3x1x1xf32>) -> tensor<1x20x8x8xf32>
  %1 = "relay.nn_conv2d"(%0, %w1) : (tensor<1x20x8x8xf32>, tensor<30x20x1x1xf32>) -> tensor<1x30x8x8xf32>
  %2 = "relay.mean"(%1) {axis = array<i64: 2, 3>, keepdims = true} : (tensor<1x30x8x8xf32>) -> tensor<1x30x1x1xf32>
  return %2 : tensor<1x30x1x1xf32>
}

// A depthwise convolution alone gains less than the transforms of its data and result cost.
// CHECK-LABEL: func.func @depthwise_alone
// CHECK-NOT: layout_transform
// CHECK: return
func.func @depthwise_alone(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<16x1x3x3xf32>} : () -> tensor<16x1x3x3xf32>
  %0 = "relay.nn_conv2d"(%x, %w) {groups = 16 : i64, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x16x8x8xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x8x8xf32>
  return %0 : tensor<1x16x8x8xf32>
}

// The result of a branch is put back where another operator than a convolution reads it.
// CHECK-LABEL: func.func @leaves
// CHECK: %[[C:.*]] = "relay.nn_conv2d"{{.*}}out_layout = "NCHW[[B:[0-9]+]]c"
// CHECK: %[[T:.*]] = "relay.layout_transform"(%[[C]]) {dst_layout = "NCHW", src_layout = "NCHW[[B]]c"}
// CHECK: "relay.nn_softmax"(%[[T]])
func.func @leaves(%x: tensor<1x64x16x16xf32>) -> tensor<1x64x16x16xf32> {
  %w = "relay.constant"() {value = dense<1.0> : tensor<64x64x3x3xf32>} : () -> tensor<64x64x3x3xf32>
  %0 = "relay.nn_conv2d"(%x, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x64x16x16xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x16x16xf32>
  %1 = "relay.nn_softmax"(%0) : (tensor<1x64x16x16xf32>) -> tensor<1x64x16x16xf32>
  return %1 : tensor<1x64x16x16xf32>
}

// What is rebuilt in another layout is erased by the pass itself.
// ALTERED-LABEL: func.func @pooled
// ALTERED: "relay.nn_global_avg_pool2d"({{.*}}) {layout = "NCHW{{.*}}c"}
// ALTERED-NOT: relay.nn_
// ALTERED: return
func.func @pooled(%x: tensor<1x3x8x8xf32>) -> tensor<1x32x1x1xf32> {
  %w0 = "relay.constant"() {value = dense<1.0> : tensor<16x3x1x1xf32>} : () -> tensor<16x3x1x1xf32>
  %w1 = "relay.constant"() {value = dense<1.0> : tensor<32x16x1x1xf32>} : () -> tensor<32x16x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %w0) : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  %1 = "relay.nn_relu"(%0) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %2 = "relay.nn_conv2d"(%1, %w1) : (tensor<1x16x8x8xf32>, tensor<32x16x1x1xf32>) -> tensor<1x32x8x8xf32>
  %3 = "relay.nn_relu"(%2) : (tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %4 = "relay.nn_global_avg_pool2d"(%3) : (tensor<1x32x8x8xf32>) -> tensor<1x32x1x1xf32>
  return %4 : tensor<1x32x1x1xf32>
}
