// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.nn_relu at {{.*}}: data: expected a numeric element type, found tensor<{{.*}}xi1>
func.func @main(%x: tensor<2x8xi1>) {
  %0 = "relay.nn_relu"(%x) : (tensor<2x8xi1>) -> tensor<?x?xi1>
  return
}

// -----

// CHECK: relay.nn_softmax at {{.*}}: data: expected a float dtype, found int32
func.func @main(%x: tensor<2x8xi32>) {
  %0 = "relay.nn_softmax"(%x) : (tensor<2x8xi32>) -> tensor<?x?xi32>
  return
}

// -----

// CHECK: relay.nn_softmax at {{.*}}: axis: expected a value in [-2, 2), found 2
func.func @main(%x: tensor<2x8xf32>) {
  %0 = "relay.nn_softmax"(%x) {axis = 2 : i64} : (tensor<2x8xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_prelu at {{.*}}: alpha for axis 1 of data tensor<2x8xf32>: expected tensor<8xf32>, found tensor<2xf32>
func.func @main(%x: tensor<2x8xf32>, %a: tensor<2xf32>) {
  %0 = "relay.nn_prelu"(%x, %a) : (tensor<2x8xf32>, tensor<2xf32>) -> tensor<?x?xf32>
  return
}

// -----

// CHECK: relay.nn_dropout at {{.*}}: rate: expected a value in [0, 1], found 1.5
func.func @main(%x: tensor<2x8xf32>) {
  %0:2 = "relay.nn_dropout"(%x) {rate = 1.5} : (tensor<2x8xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>)
  return
}
