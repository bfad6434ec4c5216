// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.qnn_quantize at {{.*}}: data: expected a floating-point element type, found tensor<2x3xui8>
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_quantize"(%x, %s, %z) : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xi8>
  return
}

// -----

// CHECK: relay.qnn_quantize at {{.*}}: rounding: expected one of TONEAREST, TONEVEN, found DOWN
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_quantize"(%r, %s, %z) {rounding = "DOWN"} : (tensor<2x3xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x3xi8>
  return
}

// -----

// CHECK: relay.qnn_dequantize at {{.*}}: data: expected an integer element type, or floats of 8 bits or less, found tensor<2x3xf32>
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_dequantize"(%r, %s, %z) : (tensor<2x3xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

// CHECK: relay.qnn_dequantize at {{.*}}: input_scale: expected a floating-point element type, found tensor<ui8>
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_dequantize"(%x, %z, %z) : (tensor<2x3xui8>, tensor<ui8>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

// CHECK: relay.qnn_dequantize at {{.*}}: input_scale: expected 3 elements for axis 1 of data tensor<2x3xui8>, found tensor<2xf32>
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_dequantize"(%x, %v, %z) : (tensor<2x3xui8>, tensor<2xf32>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

// CHECK: relay.qnn_dequantize at {{.*}}: axis: expected a value in [-2, 2), found 2
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_dequantize"(%x, %v, %z) {axis = 2 : i64} : (tensor<2x3xui8>, tensor<2xf32>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

// CHECK: relay.qnn_requantize at {{.*}}: compute_dtype: expected one of int64, float32, float64, found int8
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_requantize"(%x, %s, %z, %s, %z) {compute_dtype = "int8"} : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xi8>
  return
}

// -----

// CHECK: relay.qnn_dense at {{.*}}: data: expected integers, found tensor<2x3xf32>
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_dense"(%r, %x, %z, %z, %s, %s) : (tensor<2x3xf32>, tensor<2x3xui8>, tensor<ui8>, tensor<ui8>, tensor<f32>, tensor<f32>) -> tensor<2x2xi32>
  return
}

// -----

// CHECK: relay.qnn_dense at {{.*}}: rank of input_scale: expected 0 or 1, found 2
func.func @main(%x: tensor<2x3xui8>, %r: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<ui8>, %v: tensor<2xf32>) {
  %0 = "relay.qnn_dense"(%x, %x, %z, %z, %r, %s) : (tensor<2x3xui8>, tensor<2x3xui8>, tensor<ui8>, tensor<ui8>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x2xi32>
  return
}

// -----

// CHECK: relay.qnn_avg_pool2d at {{.*}}: out_layout: expected the layout NHWC, found NCHW
func.func @main(%x: tensor<1x2x2x3xui8>, %s: tensor<f32>, %z: tensor<ui8>) {
  %0 = "relay.qnn_avg_pool2d"(%x, %s, %z, %s, %z) {pool_size = array<i64: 2, 2>, out_layout = "NCHW"} : (tensor<1x2x2x3xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x1x3xui8>
  return
}

// -----

// CHECK: relay.qnn_leaky_relu at {{.*}}: rounding: expected one of None, UPWARD, TONEAREST, TONEVEN, found UP
func.func @main(%x: tensor<2x3xui8>, %s: tensor<f32>, %z: tensor<ui8>) {
  %0 = "relay.qnn_leaky_relu"(%x, %s, %z, %s, %z) {alpha = 0.3 : f64, rounding = "UP"} : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xui8>
  return
}
