// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.nn_max_pool2d at {{.*}}: rank of data: expected 4 (layout NCHW), found 3
func.func @main(%x: tensor<1x3x8xf32>) {
  %0 = "relay.nn_max_pool2d"(%x) : (tensor<1x3x8xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_max_pool2d at {{.*}}: window along axis H: expected at most 8 elements (data 8 with padding (0, 0)), found 9
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.nn_max_pool2d"(%x) {pool_size = array<i64: 9, 2>} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_avg_pool2d at {{.*}}: data: expected a numeric element type, found tensor<1x3x8x8xi1>
func.func @main(%x: tensor<1x3x8x8xi1>) {
  %0 = "relay.nn_avg_pool2d"(%x) : (tensor<1x3x8x8xi1>) -> tensor<?x?x?x?xi1>
  return
}

// -----

// CHECK: relay.nn_max_pool2d at {{.*}}: data: expected a numeric element type, found tensor<{{.*}}xi1>
func.func @main(%x: tensor<1x3x8x8xi1>) {
  %0 = "relay.nn_max_pool2d"(%x) : (tensor<1x3x8x8xi1>) -> tensor<?x?x?x?xi1>
  return
}

// -----

// CHECK: relay.nn_max_pool2d at {{.*}}: layout: expected only the axis C blocked, found NCHW8h
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.nn_max_pool2d"(%x) {layout = "NCHW8h"} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_max_pool2d at {{.*}}: layout: expected only the axis C blocked, found NCHW4h
func.func @main(%x: tensor<1x3x8x8x4xf32>) {
  %0 = "relay.nn_max_pool2d"(%x) {layout = "NCHW4h"} : (tensor<1x3x8x8x4xf32>) -> tensor<?x?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_adaptive_avg_pool2d at {{.*}}: output_size: expected values of at least 1, found (0, 1)
func.func @main(%x: tensor<1x3x8x8xf32>) {
  %0 = "relay.nn_adaptive_avg_pool2d"(%x) {output_size = array<i64: 0, 1>} : (tensor<1x3x8x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_global_avg_pool2d at {{.*}}: data: expected a numeric element type, found tensor<1x3x8x8xi1>
func.func @main(%x: tensor<1x3x8x8xi1>) {
  %0 = "relay.nn_global_avg_pool2d"(%x) : (tensor<1x3x8x8xi1>) -> tensor<?x?x?x?xi1>
  return
}
