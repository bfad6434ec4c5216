// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.nn_layer_norm at {{.*}}: gamma for axis 2 of data tensor<2x6x4xf32>: expected tensor<4xf32>, found tensor<6xf32>
func.func @main(%x: tensor<2x6x4xf32>, %g: tensor<6xf32>) {
  %0 = "relay.nn_layer_norm"(%x, %g, %g) : (tensor<2x6x4xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_layer_norm at {{.*}}: data: expected a float dtype, found int32
func.func @main(%x: tensor<2x6x4xi32>, %g: tensor<4xi32>) {
  %0 = "relay.nn_layer_norm"(%x, %g, %g) : (tensor<2x6x4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<?x?x?xi32>
  return
}

// -----

// CHECK: relay.nn_rms_norm at {{.*}}: gamma for axis 2 of data tensor<2x6x4xf32>: expected tensor<4xf32>, found tensor<4xf16>
func.func @main(%x: tensor<2x6x4xf32>, %g: tensor<4xf16>) {
  %0 = "relay.nn_rms_norm"(%x, %g) : (tensor<2x6x4xf32>, tensor<4xf16>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_instance_norm at {{.*}}: rank of data: expected at least 3, found 2
func.func @main(%x: tensor<2x6xf32>, %g: tensor<6xf32>) {
  %0 = "relay.nn_instance_norm"(%x, %g, %g) : (tensor<2x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_instance_norm at {{.*}}: axis: expected another axis than that of the batch, found 0
func.func @main(%x: tensor<2x6x4xf32>, %g: tensor<2xf32>) {
  %0 = "relay.nn_instance_norm"(%x, %g, %g) {axis = 0 : i64} : (tensor<2x6x4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_group_norm at {{.*}}: num_groups: expected a divisor of the 6 channels, found 4
func.func @main(%x: tensor<2x6x4xf32>, %g: tensor<6xf32>) {
  %0 = "relay.nn_group_norm"(%x, %g, %g) {num_groups = 4 : i64} : (tensor<2x6x4xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_group_norm at {{.*}}: attribute num_groups: expected an integer, found none
func.func @main(%x: tensor<2x6x4xf32>, %g: tensor<6xf32>) {
  %0 = "relay.nn_group_norm"(%x, %g, %g) : (tensor<2x6x4xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_l2_normalize at {{.*}}: axis: expected one or more axes, each once, found (1, -2)
func.func @main(%x: tensor<2x6x4xf32>) {
  %0 = "relay.nn_l2_normalize"(%x) {eps = 0.5, axis = array<i64: 1, -2>} : (tensor<2x6x4xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_lrn at {{.*}}: size: expected at least 1, found 0
func.func @main(%x: tensor<2x6x4xf32>) {
  %0 = "relay.nn_lrn"(%x) {size = 0 : i64} : (tensor<2x6x4xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_batch_norm at {{.*}}: expected 5 operand(s) (data, gamma, beta, moving_mean, moving_var), found 4
func.func @main(%x: tensor<2x6x4xf32>, %g: tensor<6xf32>) {
  %0 = "relay.nn_batch_norm"(%x, %g, %g, %g) : (tensor<2x6x4xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_l2_normalize at {{.*}}: axis: expected a value in [0, 0), found 0
func.func @main(%x: tensor<f32>) {
  %0 = "relay.nn_l2_normalize"(%x) {eps = 0.5, axis = array<i64: 0>} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// CHECK: relay.nn_dense at {{.*}}: unknown dtype 'same'; expected one of
func.func @main(%x: tensor<2x6xf32>) {
  %0 = "relay.nn_dense"(%x, %x) {out_dtype = "same"} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x2xf32>
  return
}
