// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.nn_conv2d at {{.*}}: channels of data tensor<1x4x8x8xf32>: expected 3 (weight tensor<6x3x3x3xf32> in OIHW, groups 1), found 4
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x3x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x4x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: channels of data tensor<1x4x8x8xf32>: expected 12 (weight tensor<6x4x3x3xf32> in OIHW, groups 3), found 4
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {groups = 3 : i64} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: output channels: expected a multiple of groups 2, found 5
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<5x2x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {groups = 2 : i64} : (tensor<1x4x8x8xf32>, tensor<5x2x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: window along axis H: expected at most 8 elements (data 8 with padding (0, 0)), found 9
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x9x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x4x8x8xf32>, tensor<6x4x9x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: weight: expected the dtype of data, float32, found float16
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf16>) {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf16>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: rank of weight: expected 4 (layout OIHW), found 3
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x4x8x8xf32>, tensor<6x4x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: weight tensor<6x4x3x3xf32>, axis O: expected 7 (channels), found 6
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {channels = 7 : i64} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: weight tensor<6x4x3x3xf32>, axis W: expected 5 (kernel_size), found 3
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {kernel_size = array<i64: 3, 5>} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: strides: expected 1 or 2 values, found (1, 2, 3)
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {strides = array<i64: 1, 2, 3>} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: strides: expected values of at least 1, found (0, 1)
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {strides = array<i64: 0, 1>} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: padding: expected 1 or 2 or 4 values, found (1, 1, 1)
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {padding = array<i64: 1, 1, 1>} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: padding: expected values of at least 0, found (-1, 0)
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {padding = array<i64: -1, 0>} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: data_layout: expected the axes N, C, H, W, found 'NCWZ'
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCWZ"} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: data_layout: expected a layout such as NCHW or NCHW16c, found 'NCHW0c'
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW0c"} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: kernel_layout: expected an unblocked layout (schedules pack weights), found OIHW4i
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x1x3x3x4xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {kernel_layout = "OIHW4i"} : (tensor<1x4x8x8xf32>, tensor<6x1x3x3x4xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: result, axis C of layout NCHW4c: expected a multiple of 4, found 6
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {out_layout = "NCHW4c"} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: data, dimension c of layout NCHW8c: expected 8, found 4
func.func @main(%x: tensor<1x2x8x8x4xf32>, %w: tensor<8x4x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW8c"} : (tensor<1x2x8x8x4xf32>, tensor<8x4x3x3xf32>) -> tensor<?x?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d at {{.*}}: blocked layout with groups: expected depthwise, or groups of whole blocks, found 12 channels in 2 groups
func.func @main(%x: tensor<1x3x8x8x4xf32>, %w: tensor<8x6x3x3xf32>) {
  %0 = "relay.nn_conv2d"(%x, %w) {data_layout = "NCHW4c", groups = 2 : i64} : (tensor<1x3x8x8x4xf32>, tensor<8x6x3x3xf32>) -> tensor<?x?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d_transpose at {{.*}}: channels of data tensor<1x4x8x8xf32>: expected 3 (weight tensor<3x4x3x3xf32> in IOHW), found 4
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<3x4x3x3xf32>) {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) : (tensor<1x4x8x8xf32>, tensor<3x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d_transpose at {{.*}}: output_padding along axis H: expected less than stride 2 or dilation 1, found 2
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {strides = array<i64: 2, 2>, output_padding = array<i64: 2, 0>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_conv2d_transpose at {{.*}}: padding along axis H: expected less than the result, found (9, 9)
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) {
  %0 = "relay.nn_conv2d_transpose"(%x, %w) {padding = array<i64: 9>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<?x?x?x?xf32>
  return
}
