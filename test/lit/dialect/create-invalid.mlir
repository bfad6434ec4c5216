// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.full at {{.*}}: fill_value: expected a scalar (rank 0), found tensor<1xf32>
func.func @main(%v: tensor<1xf32>) {
  %0 = "relay.full"(%v) {shape = array<i64: 2>} : (tensor<1xf32>) -> tensor<2xf32>
  return
}

// -----

// CHECK: relay.zeros at {{.*}}: shape: expected no negative size, found (2, -1)
func.func @main() {
  %0 = "relay.zeros"() {shape = array<i64: 2, -1>} : () -> tensor<2x1xf32>
  return
}

// -----

// CHECK: relay.zeros at {{.*}}: attribute shape: expected a sequence of sizes, found none
func.func @main() {
  %0 = "relay.zeros"() : () -> tensor<2xf32>
  return
}

// -----

// CHECK: relay.arange at {{.*}}: step: expected a value other than 0, found 0.0
func.func @main() {
  %0 = "relay.arange"() {stop = 3.0, step = 0.0} : () -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.shape_of at {{.*}}: dtype: expected an integer element type, found float32
func.func @main(%x: tensor<2xf32>) {
  %0 = "relay.shape_of"(%x) {dtype = "float32"} : (tensor<2xf32>) -> tensor<1xf32>
  return
}
