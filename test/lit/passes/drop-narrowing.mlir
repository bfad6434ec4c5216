// RUN: relayc-opt %s --passes fuse-ops,drop-narrowing --split-input-file | filecheck %s

// Integers that are clipped to uint8 keep their values as uint8; a clip to more, or open on one side, says nothing.
// CHECK-LABEL: func.func @clipped
// CHECK: %[[C:.*]] = "relay.clip"(%arg0) {a_max = 2.550000e+02
// CHECK-NEXT: %[[I:.*]] = "relay.cast"(%[[C]]) {dtype = "int64"}
// CHECK-NEXT: relay.yield{{.*}}%[[I]]
// CHECK: %[[D:.*]] = "relay.clip"(%arg0) {a_max = 2.560000e+02
// CHECK-NEXT: %[[U:.*]] = "relay.cast"(%[[D]]) {dtype = "uint8"}
// CHECK-NEXT: "relay.cast"(%[[U]]) {dtype = "int64"}
// CHECK: %[[E:.*]] = "relay.clip"(%arg0) {a_min = 0
// CHECK-NEXT: %[[V:.*]] = "relay.cast"(%[[E]]) {dtype = "uint8"}
// CHECK-NEXT: "relay.cast"(%[[V]]) {dtype = "int64"}
func.func @clipped(%x: tensor<3xi32>) -> (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) {
  %0 = "relay.clip"(%x) {a_min = 0.0, a_max = 255.0} : (tensor<3xi32>) -> tensor<3xi32>
  %1 = "relay.cast"(%0) {dtype = "uint8"} : (tensor<3xi32>) -> tensor<3xui8>
  %2 = "relay.cast"(%1) {dtype = "int64"} : (tensor<3xui8>) -> tensor<3xi64>
  %3 = "relay.clip"(%x) {a_min = 0.0, a_max = 256.0} : (tensor<3xi32>) -> tensor<3xi32>
  %4 = "relay.cast"(%3) {dtype = "uint8"} : (tensor<3xi32>) -> tensor<3xui8>
  %5 = "relay.cast"(%4) {dtype = "int64"} : (tensor<3xui8>) -> tensor<3xi64>
  %6 = "relay.clip"(%x) {a_min = 0.0} : (tensor<3xi32>) -> tensor<3xi32>
  %7 = "relay.cast"(%6) {dtype = "uint8"} : (tensor<3xi32>) -> tensor<3xui8>
  %8 = "relay.cast"(%7) {dtype = "int64"} : (tensor<3xui8>) -> tensor<3xi64>
  return %2, %5, %8 : tensor<3xi64>, tensor<3xi64>, tensor<3xi64>
}

// -----

// The target must have the numbers, too.
// CHECK-LABEL: func.func @narrower
// CHECK: %[[U:.*]] = "relay.cast"({{.*}}) {dtype = "uint8"}
// CHECK: "relay.cast"(%[[U]]) {dtype = "int8"}
func.func @narrower(%x: tensor<3xf32>) -> tensor<3xi8> {
  %0 = "relay.clip"(%x) {a_min = 0.0, a_max = 128.0} : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "relay.cast"(%0) {dtype = "uint8"} : (tensor<3xf32>) -> tensor<3xui8>
  %2 = "relay.cast"(%1) {dtype = "int8"} : (tensor<3xui8>) -> tensor<3xi8>
  return %2 : tensor<3xi8>
}

// -----

// A tensor that is stored between two kernels is stored in 8 bits.
// CHECK-LABEL: func.func @stored
// CHECK: %[[U:.*]] = "relay.fused"()
// CHECK: "relay.cast"({{.*}}) {dtype = "uint8"}
// CHECK: () -> tensor<3x3xui8>
// CHECK: "relay.cast"(%[[U]]) {dtype = "int32"}
func.func @stored(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %z = "relay.constant"() {value = dense<7> : tensor<i32>} : () -> tensor<i32>
  %0 = "relay.nn_dense"(%x, %x) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = "relay.clip"(%0) {a_min = 0.0, a_max = 255.0} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = "relay.cast"(%1) {dtype = "uint8"} : (tensor<3x3xf32>) -> tensor<3x3xui8>
  %6 = "relay.nn_dense"(%x, %x) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = "relay.cast"(%2) {dtype = "int32"} : (tensor<3x3xui8>) -> tensor<3x3xi32>
  %4 = "relay.subtract"(%3, %z) : (tensor<3x3xi32>, tensor<i32>) -> tensor<3x3xi32>
  %5 = "relay.cast"(%4) {dtype = "float32"} : (tensor<3x3xi32>) -> tensor<3x3xf32>
  %7 = "relay.add"(%6, %5) : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %7 : tensor<3x3xf32>
}

// -----

// What is quantised and dequantised: the limits move by the zero point.
// CHECK-LABEL: func.func @steps
// CHECK: %[[R:.*]] = "relay.round"(%arg0)
// CHECK-NEXT: %[[C:.*]] = "relay.clip"(%[[R]]) {a_max = 1.180000e+02 : f64, a_min = -1.370000e+02 : f64}
// CHECK-NEXT: "relay.exp"(%[[C]])
func.func @steps(%x: tensor<3xf32>) -> tensor<3xf32> {
  %z = "relay.constant"() {value = dense<137.0> : tensor<f32>} : () -> tensor<f32>
  %i = "relay.constant"() {value = dense<137> : tensor<i32>} : () -> tensor<i32>
  %0 = "relay.round"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "relay.add"(%0, %z) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = "relay.clip"(%1) {a_min = 0.0, a_max = 255.0} : (tensor<3xf32>) -> tensor<3xf32>
  %3 = "relay.cast"(%2) {dtype = "uint8"} : (tensor<3xf32>) -> tensor<3xui8>
  %4 = "relay.cast"(%3) {dtype = "int32"} : (tensor<3xui8>) -> tensor<3xi32>
  %5 = "relay.subtract"(%4, %i) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %6 = "relay.cast"(%5) {dtype = "float32"} : (tensor<3xi32>) -> tensor<3xf32>
  %7 = "relay.exp"(%6) : (tensor<3xf32>) -> tensor<3xf32>
  return %7 : tensor<3xf32>
}

// -----

// Another zero point, numbers that are not whole, limits that are not, and integers that are read elsewhere stay as they are.
// CHECK-LABEL: func.func @other_zero
// CHECK: "relay.subtract"
// CHECK-LABEL: func.func @not_whole
// CHECK: "relay.subtract"
// CHECK-LABEL: func.func @limits_not_whole
// CHECK: "relay.subtract"
// CHECK-LABEL: func.func @read_elsewhere
// CHECK: "relay.subtract"
func.func @other_zero(%x: tensor<3xf32>) -> tensor<3xf32> {
  %z = "relay.constant"() {value = dense<137.0> : tensor<f32>} : () -> tensor<f32>
  %i = "relay.constant"() {value = dense<136> : tensor<i32>} : () -> tensor<i32>
  %0 = "relay.round"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "relay.add"(%0, %z) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = "relay.clip"(%1) {a_min = 0.0, a_max = 255.0} : (tensor<3xf32>) -> tensor<3xf32>
  %4 = "relay.cast"(%2) {dtype = "int32"} : (tensor<3xf32>) -> tensor<3xi32>
  %5 = "relay.subtract"(%4, %i) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %6 = "relay.cast"(%5) {dtype = "float32"} : (tensor<3xi32>) -> tensor<3xf32>
  return %6 : tensor<3xf32>
}
func.func @not_whole(%x: tensor<3xf32>) -> tensor<3xf32> {
  %z = "relay.constant"() {value = dense<137.0> : tensor<f32>} : () -> tensor<f32>
  %i = "relay.constant"() {value = dense<137> : tensor<i32>} : () -> tensor<i32>
  %1 = "relay.add"(%x, %z) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = "relay.clip"(%1) {a_min = 0.0, a_max = 255.0} : (tensor<3xf32>) -> tensor<3xf32>
  %4 = "relay.cast"(%2) {dtype = "int32"} : (tensor<3xf32>) -> tensor<3xi32>
  %5 = "relay.subtract"(%4, %i) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %6 = "relay.cast"(%5) {dtype = "float32"} : (tensor<3xi32>) -> tensor<3xf32>
  return %6 : tensor<3xf32>
}
func.func @limits_not_whole(%x: tensor<3xf32>) -> tensor<3xf32> {
  %z = "relay.constant"() {value = dense<137.0> : tensor<f32>} : () -> tensor<f32>
  %i = "relay.constant"() {value = dense<137> : tensor<i32>} : () -> tensor<i32>
  %0 = "relay.round"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "relay.add"(%0, %z) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = "relay.clip"(%1) {a_min = 0.0, a_max = 255.5} : (tensor<3xf32>) -> tensor<3xf32>
  %4 = "relay.cast"(%2) {dtype = "int32"} : (tensor<3xf32>) -> tensor<3xi32>
  %5 = "relay.subtract"(%4, %i) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %6 = "relay.cast"(%5) {dtype = "float32"} : (tensor<3xi32>) -> tensor<3xf32>
  return %6 : tensor<3xf32>
}
func.func @read_elsewhere(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %z = "relay.constant"() {value = dense<137.0> : tensor<f32>} : () -> tensor<f32>
  %i = "relay.constant"() {value = dense<137> : tensor<i32>} : () -> tensor<i32>
  %0 = "relay.round"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "relay.add"(%0, %z) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = "relay.clip"(%1) {a_min = 0.0, a_max = 255.0} : (tensor<3xf32>) -> tensor<3xf32>
  %4 = "relay.cast"(%2) {dtype = "int32"} : (tensor<3xf32>) -> tensor<3xi32>
  %5 = "relay.subtract"(%4, %i) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %6 = "relay.cast"(%5) {dtype = "float32"} : (tensor<3xi32>) -> tensor<3xf32>
  return %6, %5 : tensor<3xf32>, tensor<3xi32>
}
