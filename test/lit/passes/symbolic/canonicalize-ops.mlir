// RUN: relayc-opt %s --passes canonicalize-ops | filecheck %s

// Views become reshapes to sizes, also where these are expressions.
// CHECK-LABEL: func.func @views
// CHECK-NEXT: %[[F:.*]] = "relay.reshape"(%arg0) {{.*}}newshape = ["n", "12*m"]{{.*}} -> tensor<?x?xf32, ["n", "12*m"]>
// CHECK-NEXT: %[[E:.*]] = "relay.reshape"(%[[F]]) {{.*}}newshape = ["n", 1, "12*m"]
// CHECK-NEXT: "relay.reshape"(%[[E]]) {{.*}}newshape = ["n", "12*m"]
// CHECK-NEXT: "relay.reshape"(%arg0) {{.*}}newshape = ["m*n", 12]
func.func @views(%x: tensor<?x?x12xf32, ["n", "m"]>) -> (tensor<?x?xf32, ["n", "12*m"]>, tensor<?x12xf32, ["m*n"]>) {
  %0 = "relay.nn_batch_flatten"(%x) : (tensor<?x?x12xf32, ["n", "m"]>) -> tensor<?x?xf32, ["n", "12*m"]>
  %1 = "relay.expand_dims"(%0) {axis = 1} : (tensor<?x?xf32, ["n", "12*m"]>) -> tensor<?x1x?xf32, ["n", "12*m"]>
  %2 = "relay.squeeze"(%1) {axis = array<i64: 1>} : (tensor<?x1x?xf32, ["n", "12*m"]>) -> tensor<?x?xf32, ["n", "12*m"]>
  %3 = "relay.reshape"(%x) {newshape = array<i64: -1, 12>} : (tensor<?x?x12xf32, ["n", "m"]>) -> tensor<?x12xf32, ["m*n"]>
  return %2, %3 : tensor<?x?xf32, ["n", "12*m"]>, tensor<?x12xf32, ["m*n"]>
}

// Parts begin and end at expressions.
// CHECK-LABEL: func.func @parts
// CHECK-NEXT: %[[A:.*]] = "relay.strided_slice"(%arg0) {axes = array<i64: 0>, begin = array<i64: 0>, end = ["n"]{{.*}} -> tensor<?x4xf32, ["n"]>
// CHECK-NEXT: %[[B:.*]] = "relay.strided_slice"(%arg0) {axes = array<i64: 0>, begin = ["n"], end = ["2*n"]{{.*}} -> tensor<?x4xf32, ["n"]>
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @parts(%x: tensor<?x4xf32, ["2*n"]>, %y: tensor<?xf32, ["n"]>) -> (tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>) {
  %0 = "relay.split"(%x) {axis = 0, indices_or_sections = 2 : i64} : (tensor<?x4xf32, ["2*n"]>) -> tuple<tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>>
  %1 = "relay.tuple_get_item"(%0) {index = 0} : (tuple<tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>>) -> tensor<?x4xf32, ["n"]>
  %2 = "relay.tuple_get_item"(%0) {index = 1} : (tuple<tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>>) -> tensor<?x4xf32, ["n"]>
  return %1, %2 : tensor<?x4xf32, ["n"]>, tensor<?x4xf32, ["n"]>
}

// A slice that may leave something out stays; one of all goes.
// CHECK-LABEL: func.func @slices
// CHECK-NEXT: %[[S:.*]] = "relay.strided_slice"(%arg0) {{.*}}end = ["m"]
// CHECK-NEXT: return %[[S]], %arg0
func.func @slices(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>) -> (tensor<?xf32, ["min(m, n)"]>, tensor<?xf32, ["n"]>) {
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 0>, end = ["m"], strides = array<i64: 1>} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["min(m, n)"]>
  %1 = "relay.strided_slice"(%x) {begin = array<i64: 0>, end = array<i64: 9223372036854775807>, strides = array<i64: 1>} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %0, %1 : tensor<?xf32, ["min(m, n)"]>, tensor<?xf32, ["n"]>
}

// Blocks of pixels of symbolic images, and layouts of them.
// CHECK-LABEL: func.func @images
// CHECK: "relay.reshape"(%arg0) {{.*}}newshape = ["n", 2, 2, 3, "h", "w"]
// CHECK: "relay.transpose"
// CHECK: "relay.reshape"({{.*}}newshape = ["n", 3, "2*h", "2*w"]
// CHECK: "relay.reshape"({{.*}}newshape = ["n", 3, "h", 2, "w", 2]
// CHECK: "relay.reshape"({{.*}}newshape = ["n", 12, "h", "w"]
// CHECK: "relay.reshape"({{.*}}newshape = ["n", 3, 4, "h", "w"]
// CHECK: "relay.transpose"({{.*}} -> tensor<?x3x?x?x4xf32, ["n", "h", "w"]>
func.func @images(%x: tensor<?x12x?x?xf32, ["n", "h", "w"]>) -> tensor<?x3x?x?x4xf32, ["n", "h", "w"]> {
  %0 = "relay.nn_depth_to_space"(%x) {block_size = 2} : (tensor<?x12x?x?xf32, ["n", "h", "w"]>) -> tensor<?x3x?x?xf32, ["n", "2*h", "2*w"]>
  %1 = "relay.nn_space_to_depth"(%0) {block_size = 2} : (tensor<?x3x?x?xf32, ["n", "2*h", "2*w"]>) -> tensor<?x12x?x?xf32, ["n", "h", "w"]>
  %2 = "relay.layout_transform"(%1) {src_layout = "NCHW", dst_layout = "NCHW4c"} : (tensor<?x12x?x?xf32, ["n", "h", "w"]>) -> tensor<?x3x?x?x4xf32, ["n", "h", "w"]>
  return %2 : tensor<?x3x?x?x4xf32, ["n", "h", "w"]>
}

// A border of symbolic width is none of a window.
// CHECK-LABEL: func.func @borders
// CHECK: "relay.nn_pad"
// CHECK-NEXT: "relay.nn_conv2d"
// CHECK-SAME: (%{{.*}}, %arg1) : (tensor<1x3x?x8xf32, ["h + p + 2"]>
func.func @borders(%x: tensor<1x3x?x8xf32, ["h"]>, %w: tensor<4x3x3x3xf32>, %b: tensor<?xf32, ["p"]>) -> tensor<1x4x?x6xf32, ["h + p"]> {
  %c = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.nn_pad"(%x, %c) {pad_width = [0, 0, 0, 0, 2, "p", 0, 0]} : (tensor<1x3x?x8xf32, ["h"]>, tensor<f32>) -> tensor<1x3x?x8xf32, ["h + p + 2"]>
  %1 = "relay.nn_conv2d"(%0, %w) {} : (tensor<1x3x?x8xf32, ["h + p + 2"]>, tensor<4x3x3x3xf32>) -> tensor<1x4x?x6xf32, ["h + p"]>
  return %1 : tensor<1x4x?x6xf32, ["h + p"]>
}
