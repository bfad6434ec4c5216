// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.fft at {{.*}}: roots: expected tensor<2x8xf32>, found tensor<2x4xf32>
func.func @main(%x: tensor<3x8x2xf32>, %roots: tensor<2x4xf32>, %plan: tensor<64xi64>) {
  %0 = "relay.fft"(%x, %roots, %plan) {length = 8, frequencies = 8}
      : (tensor<3x8x2xf32>, tensor<2x4xf32>, tensor<64xi64>) -> tensor<3x8x2xf32>
  return
}

// -----

// CHECK: relay.fft at {{.*}}: data: expected [batch, n, 1 or 2], found tensor<3x8x3xf32>
func.func @main(%x: tensor<3x8x3xf32>, %roots: tensor<2x8xf32>, %plan: tensor<64xi64>) {
  %0 = "relay.fft"(%x, %roots, %plan) {length = 8, frequencies = 8}
      : (tensor<3x8x3xf32>, tensor<2x8xf32>, tensor<64xi64>) -> tensor<3x8x2xf32>
  return
}

// -----

// CHECK: relay.fft at {{.*}}: frequencies: expected at most 8, found 9
func.func @main(%x: tensor<3x8x2xf32>, %roots: tensor<2x8xf32>, %plan: tensor<64xi64>) {
  %0 = "relay.fft"(%x, %roots, %plan) {length = 8, frequencies = 9}
      : (tensor<3x8x2xf32>, tensor<2x8xf32>, tensor<64xi64>) -> tensor<3x9x2xf32>
  return
}

// -----

// CHECK: relay.fft_plan at {{.*}}: length: expected int64[], found tensor<i32>
func.func @main(%n: tensor<i32>) {
  %0 = "relay.fft_plan"(%n) : (tensor<i32>) -> tensor<64xi64>
  return
}
