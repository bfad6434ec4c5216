// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.nn_dense at {{.*}}: dimension 1 of weight tensor<7x9xf32>: expected 8 (of data tensor<2x8xf32>), found 9
func.func @main(%x: tensor<2x8xf32>, %w: tensor<7x9xf32>) {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<2x8xf32>, tensor<7x9xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_dense at {{.*}}: weight: expected the dtype of data, float32, found float16
func.func @main(%x: tensor<2x8xf32>, %w: tensor<7x8xf16>) {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<2x8xf32>, tensor<7x8xf16>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_dense at {{.*}}: units: expected 7 (weight tensor<7x8xf32>), found 8
func.func @main(%x: tensor<2x8xf32>, %w: tensor<7x8xf32>) {
  %0 = "relay.nn_dense"(%x, %w) {units = 8 : i64} : (tensor<2x8xf32>, tensor<7x8xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_dense at {{.*}}: rank of data: expected at least 1, found 0
func.func @main(%x: tensor<f32>, %w: tensor<7x8xf32>) {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<f32>, tensor<7x8xf32>) -> tensor<f32>
  return
}

// -----

// CHECK: relay.nn_dense at {{.*}}: rank of weight: expected 2, found 3
func.func @main(%x: tensor<2x8xf32>, %w: tensor<7x8x1xf32>) {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<2x8xf32>, tensor<7x8x1xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_dense at {{.*}}: data: expected a numeric element type, found tensor<{{.*}}xi1>
func.func @main(%x: tensor<2x8xi1>, %w: tensor<7x8xi1>) {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<2x8xi1>, tensor<7x8xi1>) -> tensor<?x?xi1>
  return
}

// -----

// CHECK: relay.nn_matmul at {{.*}}: dimension 0 of tensor_b tensor<7x8xf32>: expected 8 (of tensor_a tensor<2x8xf32>), found 7
func.func @main(%x: tensor<2x8xf32>, %w: tensor<7x8xf32>) {
  %0 = "relay.nn_matmul"(%x, %w) : (tensor<2x8xf32>, tensor<7x8xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_matmul at {{.*}}: rank of tensor_a: expected 2, found 3
func.func @main(%x: tensor<2x8x3xf32>, %w: tensor<8x3xf32>) {
  %0 = "relay.nn_matmul"(%x, %w) {transpose_a = true} : (tensor<2x8x3xf32>, tensor<8x3xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_batch_matmul at {{.*}}: batch of tensor_b tensor<3x5x3xf32>: expected 2 or 1 (of tensor_a tensor<2x8x3xf32>), found 3
func.func @main(%x: tensor<2x8x3xf32>, %w: tensor<3x5x3xf32>) {
  %0 = "relay.nn_batch_matmul"(%x, %w) : (tensor<2x8x3xf32>, tensor<3x5x3xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_batch_matmul at {{.*}}: dimension 2 of tensor_b tensor<2x5x4xf32>: expected 3 (of tensor_a tensor<2x8x3xf32>), found 4
func.func @main(%x: tensor<2x8x3xf32>, %w: tensor<2x5x4xf32>) {
  %0 = "relay.nn_batch_matmul"(%x, %w) : (tensor<2x8x3xf32>, tensor<2x5x4xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_batch_matmul at {{.*}}: rank of tensor_a: expected 3, found 2
func.func @main(%x: tensor<2x8xf32>, %w: tensor<2x5x4xf32>) {
  %0 = "relay.nn_batch_matmul"(%x, %w) : (tensor<2x8xf32>, tensor<2x5x4xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_bias_add at {{.*}}: bias for axis 1 of data tensor<2x8xf32>: expected tensor<8xf32>, found tensor<2xf32>
func.func @main(%x: tensor<2x8xf32>, %b: tensor<2xf32>) {
  %0 = "relay.nn_bias_add"(%x, %b) : (tensor<2x8xf32>, tensor<2xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_bias_add at {{.*}}: axis: expected a value in [-2, 2), found 2
func.func @main(%x: tensor<2x8xf32>, %b: tensor<8xf32>) {
  %0 = "relay.nn_bias_add"(%x, %b) {axis = 2 : i64} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<?x?xf32>
  return
}
