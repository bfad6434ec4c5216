// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.topk at {{.*}}: k: expected at most the size of axis 1, 3, found 4
func.func @main(%x: tensor<2x3xf32>) {
  %0:2 = "relay.topk"(%x) {k = 4} : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi32>)
  return
}

// -----

// CHECK: relay.topk at {{.*}}: ret_type: expected one of both, values, indices, found value
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.topk"(%x) {ret_type = "value"} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return
}

// -----

// CHECK: relay.argsort at {{.*}}: dtype: expected an integer element type, found float32
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.argsort"(%x) {dtype = "float32"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// CHECK: relay.argsort_rows at {{.*}}: data: expected rank 2, found tensor<3xf32>
func.func @main(%x: tensor<3xf32>) {
  %0 = "relay.argsort_rows"(%x) : (tensor<3xf32>) -> tensor<3xi64>
  return
}

// -----

// CHECK: relay.cumsum at {{.*}}: dtype: expected a numeric element type, found bool
func.func @main(%x: tensor<3xi1>) {
  %0 = "relay.cumsum"(%x) : (tensor<3xi1>) -> tensor<3xi1>
  return
}
