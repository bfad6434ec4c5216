// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// Orders are affine maps.
// CHECK-DAG: #[[TRANSPOSED:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK-DAG: #[[REVERSED:.*]] = affine_map<(d0, d1, d2) -> (d0, -d1 + 2, d2)>
// CHECK-DAG: #[[BACKWARDS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2 * -2 + 3)>
// CHECK-LABEL: func.func private @fused_strided_slice(
// CHECK: tensor.extract_slice %arg0[0, 1, 0] [2, 2, 4] [1, 1, 1]
// CHECK: indexing_maps = [#[[BACKWARDS]],
// CHECK-LABEL: func.func private @fused_reverse(
// CHECK: indexing_maps = [#[[REVERSED]],
// CHECK-LABEL: func.func private @fused_transpose(
// CHECK: indexing_maps = [#[[TRANSPOSED]],
func.func @main(%x: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<2x2x2xf32>) {
  %0 = "relay.transpose"(%x) {axes = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = "relay.reverse"(%x) {axis = 1} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = "relay.strided_slice"(%x) {begin = array<i64: 1, -1>, end = array<i64: 9, -9>, strides = array<i64: 1, -2>, axes = array<i64: 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x2x2xf32>
  return %0, %1, %2 : tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<2x2x2xf32>
}

// -----

// Repetition in loops of its own, then a view.
// CHECK-LABEL: func.func private @fused_broadcast_to(
// CHECK: outs({{.*}} : tensor<7x3x5xf32>)
// CHECK-LABEL: func.func private @fused_repeat(
// CHECK: outs({{.*}} : tensor<3x5x4xf32>)
// CHECK: into tensor<3x20xf32>
// CHECK-LABEL: func.func private @fused_tile(
// CHECK: outs({{.*}} : tensor<2x3x5xf32>)
// CHECK: tensor.expand_shape {{.*}} into tensor<6x5xf32>
func.func @main(%x: tensor<3x5xf32>) -> (tensor<6x5xf32>, tensor<3x20xf32>, tensor<7x3x5xf32>) {
  %0 = "relay.tile"(%x) {reps = array<i64: 2, 1>} : (tensor<3x5xf32>) -> tensor<6x5xf32>
  %1 = "relay.repeat"(%x) {repeats = 4, axis = 1} : (tensor<3x5xf32>) -> tensor<3x20xf32>
  %2 = "relay.broadcast_to"(%x) {shape = array<i64: 7, 3, 5>} : (tensor<3x5xf32>) -> tensor<7x3x5xf32>
  return %0, %1, %2 : tensor<6x5xf32>, tensor<3x20xf32>, tensor<7x3x5xf32>
}

// -----

// Pieces.
// CHECK-LABEL: func.func private @fused_stack(
// CHECK: into tensor<2x1x3xf32>
// CHECK: tensor.concat dim(1)
// CHECK-LABEL: func.func private @fused_concatenate(
// CHECK: tensor.concat dim(1) %arg0, %arg1
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>) -> (tensor<2x8xf32>, tensor<2x2x3xf32>) {
  %0 = tensor.concat dim(1) %x, %y : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  %1 = "relay.stack"(%x, %x) {axis = 1} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2x3xf32>
  return %0, %1 : tensor<2x8xf32>, tensor<2x2x3xf32>
}

// -----

// Blocks move through a view in which they stand apart.
// CHECK-LABEL: func.func private @fused_space_to_depth(
// CHECK: into tensor<2x16x2x2x3x2xf32>
// CHECK: outs({{.*}} : tensor<2x2x2x16x2x3xf32>)
// CHECK: into tensor<2x64x2x3xf32>
// CHECK-LABEL: func.func private @fused_depth_to_space(
// CHECK: into tensor<2x2x2x4x4x6xf32>
// CHECK: outs({{.*}} : tensor<2x4x4x2x6x2xf32>)
// CHECK: into tensor<2x4x8x12xf32>
// CHECK-LABEL: func.func private @fused_layout_transform(
// CHECK: into tensor<2x2x8x4x6xf32>
// CHECK: outs({{.*}} : tensor<2x2x4x6x8xf32>)
func.func @main(%x: tensor<2x16x4x6xf32>) -> (tensor<2x2x4x6x8xf32>, tensor<2x4x8x12xf32>, tensor<2x64x2x3xf32>) {
  %0 = "relay.layout_transform"(%x) {src_layout = "NCHW", dst_layout = "NCHW8c"} : (tensor<2x16x4x6xf32>) -> tensor<2x2x4x6x8xf32>
  %1 = "relay.nn_depth_to_space"(%x) {block_size = 2} : (tensor<2x16x4x6xf32>) -> tensor<2x4x8x12xf32>
  %2 = "relay.nn_space_to_depth"(%x) {block_size = 2} : (tensor<2x16x4x6xf32>) -> tensor<2x64x2x3xf32>
  return %0, %1, %2 : tensor<2x2x4x6x8xf32>, tensor<2x4x8x12xf32>, tensor<2x64x2x3xf32>
}

// -----

// A border known only at run time is selected; mirrored ones are read at computed positions; a triangle by the distance from the diagonal.
// CHECK-LABEL: func.func private @fused_trilu(
// CHECK: linalg.index 1
// CHECK: linalg.index 0
// CHECK: arith.subi
// CHECK: arith.cmpi sge
// CHECK: arith.select
// CHECK-LABEL: func.func private @fused_mirror_pad(
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: tensor.extract %arg0
// CHECK-LABEL: func.func private @fused_pad(
// CHECK: tensor.extract %arg0
// CHECK: arith.cmpi ult
// CHECK: arith.select {{.*}}, %in
func.func @main(%x: tensor<4x5xf32>, %v: tensor<f32>, %k: tensor<i64>) -> (tensor<5x7xf32>, tensor<4x9xf32>, tensor<4x5xf32>) {
  %0 = "relay.nn_pad"(%x, %v) {pad_width = array<i64: 1, 0, 0, 2>} : (tensor<4x5xf32>, tensor<f32>) -> tensor<5x7xf32>
  %1 = "relay.nn_mirror_pad"(%x) {pad_width = array<i64: 0, 0, 2, 2>} : (tensor<4x5xf32>) -> tensor<4x9xf32>
  %2 = "relay.trilu"(%x, %k) : (tensor<4x5xf32>, tensor<i64>) -> tensor<4x5xf32>
  return %0, %1, %2 : tensor<5x7xf32>, tensor<4x9xf32>, tensor<4x5xf32>
}

// -----

// Padding by a constant is tensor.pad.
// CHECK-LABEL: func.func private @fused_pad(
// CHECK: tensor.pad %arg0 low[1, 0] high[0, 2]
// CHECK: tensor.yield %cst
func.func @main(%x: tensor<4x5xf32>) -> tensor<5x7xf32> {
  %0 = "relay.fused"() ({
    %v = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %1 = "relay.nn_pad"(%x, %v) {pad_width = array<i64: 1, 0, 0, 2>} : (tensor<4x5xf32>, tensor<f32>) -> tensor<5x7xf32>
    "relay.yield"(%1) : (tensor<5x7xf32>) -> ()
  }) : () -> tensor<5x7xf32>
  return %0 : tensor<5x7xf32>
}

// -----

// A split is a slice for each part.
// CHECK-LABEL: func.func private @fused_split(
// CHECK: tensor.extract_slice %arg0[0, 0] [3, 1] [1, 1]
// CHECK: tensor.extract_slice %arg0[0, 1] [3, 4] [1, 1]
func.func @main(%x: tensor<3x5xf32>) -> (tensor<3x1xf32>, tensor<3x4xf32>) {
  %t = "relay.split"(%x) {indices_or_sections = array<i64: 1>, axis = 1} : (tensor<3x5xf32>) -> tuple<tensor<3x1xf32>, tensor<3x4xf32>>
  %0 = "relay.tuple_get_item"(%t) {index = 0} : (tuple<tensor<3x1xf32>, tensor<3x4xf32>>) -> tensor<3x1xf32>
  %1 = "relay.tuple_get_item"(%t) {index = 1} : (tuple<tensor<3x1xf32>, tensor<3x4xf32>>) -> tensor<3x4xf32>
  return %0, %1 : tensor<3x1xf32>, tensor<3x4xf32>
}

// -----

// Reshaping of every kind is a view of one kernel's memory.
// CHECK-LABEL: func.func private @fused_exp_reshape_squeeze_expand_dims_batch_flatten(
// CHECK: math.exp
// CHECK-NOT: linalg.generic
// CHECK: into tensor<2x60xf32>
// CHECK: return
func.func @main(%x: tensor<2x3x4x5xf32>) -> tensor<2x60xf32> {
  %0 = "relay.fused"() ({
    %1 = "relay.exp"(%x) : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
    %2 = "relay.reshape"(%1) {newshape = array<i64: 0, 12, 1, -1>} : (tensor<2x3x4x5xf32>) -> tensor<2x12x1x5xf32>
    %3 = "relay.squeeze"(%2) : (tensor<2x12x1x5xf32>) -> tensor<2x12x5xf32>
    %4 = "relay.expand_dims"(%3) {axis = -1} : (tensor<2x12x5xf32>) -> tensor<2x12x5x1xf32>
    %5 = "relay.nn_batch_flatten"(%4) : (tensor<2x12x5x1xf32>) -> tensor<2x60xf32>
    "relay.yield"(%5) : (tensor<2x60xf32>) -> ()
  }) : () -> tensor<2x60xf32>
  return %0 : tensor<2x60xf32>
}
