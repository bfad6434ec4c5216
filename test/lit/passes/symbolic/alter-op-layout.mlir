// RUN: relayc-opt %s --passes alter-op-layout --config relay.AlterOpLayout.block=4 | filecheck %s
// RUN: relayc-opt %s --passes alter-op-layout,winograd --config relay.AlterOpLayout.block=4 | filecheck %s --check-prefix WINOGRAD

// Only channels need be numbers: batch, height and width of images in blocks may be expressions.
// CHECK-LABEL: func.func @images
// CHECK: %[[X:.*]] = "relay.layout_transform"(%arg0) {dst_layout = "NCHW4c", src_layout = "NCHW"} : {{.*}} -> tensor<?x16x?x?x4xf32, ["n", "h", "w"]>
// CHECK: %[[C:.*]] = "relay.nn_conv2d"(%[[X]], %{{.*}}) {{.*}}data_layout = "NCHW4c"{{.*}}out_layout = "NCHW4c"{{.*}} -> tensor<?x16x?x?x4xf32, ["n", "h", "w"]>
// CHECK: %[[R:.*]] = "relay.nn_relu"(%[[C]])
// CHECK: %[[P:.*]] = "relay.nn_max_pool2d"(%[[R]]) {{.*}}layout = "NCHW4c"{{.*}} -> tensor<?x16x?x?x4xf32, ["n", "h//2", "w//2"]>
// CHECK: "relay.layout_transform"(%[[P]]) {dst_layout = "NCHW", src_layout = "NCHW4c"}
// By Winograd's method are convolutions of symbolic batch, and of symbolic height and width where typical sizes have tiles enough.
// WINOGRAD-LABEL: func.func @images
// WINOGRAD: "relay.nn_winograd_input_transform"({{.*}} -> tensor<?x576x?x?x4xf32, ["n", "(h + 3)//4", "(w + 3)//4"]>
// WINOGRAD: "relay.nn_winograd_output_transform"({{.*}} -> tensor<?x16x?x?x4xf32, ["n", "h", "w"]>
// WINOGRAD-LABEL: func.func @batches
// WINOGRAD: "relay.nn_winograd_input_transform"({{.*}} -> tensor<?x576x8x8x4xf32, ["n"]>
// WINOGRAD: "relay.nn_conv2d"({{.*}} -> tensor<?x576x8x8x4xf32, ["n"]>
// WINOGRAD: "relay.nn_winograd_output_transform"({{.*}}height = 32 : i64{{.*}} -> tensor<?x16x32x32x4xf32, ["n"]>
func.func @images(%x: tensor<?x64x?x?xf32, ["n", "h", "w"]>) -> tensor<?x64x?x?xf32, ["n", "h//2", "w//2"]> {
  %w = "relay.constant"() {value = dense<0.5> : tensor<64x64x3x3xf32>} : () -> tensor<64x64x3x3xf32>
  %0 = "relay.nn_conv2d"(%x, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<?x64x?x?xf32, ["n", "h", "w"]>, tensor<64x64x3x3xf32>) -> tensor<?x64x?x?xf32, ["n", "h", "w"]>
  %1 = "relay.nn_relu"(%0) : (tensor<?x64x?x?xf32, ["n", "h", "w"]>) -> tensor<?x64x?x?xf32, ["n", "h", "w"]>
  %2 = "relay.nn_max_pool2d"(%1) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<?x64x?x?xf32, ["n", "h", "w"]>) -> tensor<?x64x?x?xf32, ["n", "h//2", "w//2"]>
  return %2 : tensor<?x64x?x?xf32, ["n", "h//2", "w//2"]>
}

func.func @batches(%x: tensor<?x64x32x32xf32, ["n"]>) -> tensor<?x64x32x32xf32, ["n"]> {
  %w = "relay.constant"() {value = dense<0.5> : tensor<64x64x3x3xf32>} : () -> tensor<64x64x3x3xf32>
  %0 = "relay.nn_conv2d"(%x, %w) {padding = array<i64: 1, 1, 1, 1>} : (tensor<?x64x32x32xf32, ["n"]>, tensor<64x64x3x3xf32>) -> tensor<?x64x32x32xf32, ["n"]>
  return %0 : tensor<?x64x32x32xf32, ["n"]>
}

// Channels of which only an expression is known stay where they are.
// CHECK-LABEL: func.func @channels
// CHECK-NOT: layout_transform
func.func @channels(%x: tensor<1x?x32x32xf32, ["c"]>) -> tensor<1x?x16x16xf32, ["c"]> {
  %0 = "relay.nn_relu"(%x) : (tensor<1x?x32x32xf32, ["c"]>) -> tensor<1x?x32x32xf32, ["c"]>
  %1 = "relay.nn_max_pool2d"(%0) {pool_size = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x?x32x32xf32, ["c"]>) -> tensor<1x?x16x16xf32, ["c"]>
  return %1 : tensor<1x?x16x16xf32, ["c"]>
}
