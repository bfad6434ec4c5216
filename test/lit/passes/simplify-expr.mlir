// RUN: relayc-opt %s --passes simplify-expr --split-input-file | filecheck %s

// CHECK-LABEL: func.func @neutral
// CHECK-NOT: relay.add
// CHECK-NOT: relay.multiply
// CHECK-NOT: relay.divide
// CHECK: return %arg0
func.func @neutral(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = "relay.add"(%zero, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.subtract"(%0, %zero) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = "relay.multiply"(%1, %one) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "relay.divide"(%2, %one) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = "relay.power"(%3, %one) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// A neutral operand that broadcasts the other one does something; 0 - x and 1 / x too.
// CHECK-LABEL: func.func @not_neutral
// CHECK: "relay.add"(%arg0
// CHECK: "relay.subtract"(%{{.*}}, %arg0)
// CHECK: "relay.divide"(%{{.*}}, %arg0)
func.func @not_neutral(%x: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zeros = "relay.constant"() {value = dense<0.0> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  %zero = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = "relay.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.add"(%x, %zeros) : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "relay.subtract"(%zero, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "relay.divide"(%one, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @powers
// CHECK: %[[X2:.*]] = "relay.multiply"(%arg0, %arg0)
// CHECK: %[[SQUARE:.*]] = "relay.multiply"(%arg0, %arg0)
// CHECK: %[[X3:.*]] = "relay.multiply"(%[[SQUARE]], %arg0)
// CHECK: %[[ROOT:.*]] = "relay.sqrt"(%arg0)
// CHECK: return %[[X2]], %[[X3]], %[[ROOT]]
func.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %three = "relay.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %half = "relay.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.power"(%x, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = "relay.power"(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = "relay.power"(%x, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A division by a power of two is a multiplication; by another number, or of integers, it stays.
// CHECK-LABEL: func.func @divisions
// CHECK: "relay.constant"() {value = dense<1.250000e-01> : tensor<f32>}
// CHECK: "relay.multiply"(%arg0
// CHECK: "relay.divide"(%arg0
// CHECK: "relay.divide"(%arg1
func.func @divisions(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) {
  %eight = "relay.constant"() {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %three = "relay.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %two = "relay.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
  %0 = "relay.divide"(%x, %eight) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = "relay.divide"(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = "relay.divide"(%i, %two) : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>
}

// -----

// CHECK-LABEL: func.func @twice
// CHECK-NEXT: %[[R:.*]] = "relay.nn_relu"(%arg0)
// CHECK-NEXT: return %arg0, %[[R]]
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relay.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relay.nn_relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "relay.nn_relu"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A cast that keeps every value is skipped; one that rounds is not.
// CHECK-LABEL: func.func @casts
// CHECK: "relay.cast"(%arg0) {dtype = "float32"} : (tensor<4xi8>) -> tensor<4xf32>
// CHECK: %[[I:.*]] = "relay.cast"(%arg1) {dtype = "int32"}
// CHECK: "relay.cast"(%[[I]]) {dtype = "float32"}
// CHECK: return %{{.*}}, %{{.*}}, %arg1
func.func @casts(%i: tensor<4xi8>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "relay.cast"(%i) {dtype = "int64"} : (tensor<4xi8>) -> tensor<4xi64>
  %1 = "relay.cast"(%0) {dtype = "float32"} : (tensor<4xi64>) -> tensor<4xf32>
  %2 = "relay.cast"(%x) {dtype = "int32"} : (tensor<4xf32>) -> tensor<4xi32>
  %3 = "relay.cast"(%2) {dtype = "float32"} : (tensor<4xi32>) -> tensor<4xf32>
  %4 = "relay.cast"(%x) {dtype = "float32"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @where
// CHECK: return %arg1, %arg0
func.func @where(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %no = "relay.constant"() {value = dense<false> : tensor<4xi1>} : () -> tensor<4xi1>
  %0 = "relay.where"(%no, %x, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.where"(%c, %x, %x) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Operators broadcast by themselves, but something must have the shape of the result.
// CHECK-LABEL: func.func @broadcasts
// CHECK: %[[B:.*]] = "relay.broadcast_to"(%arg1)
// CHECK: "relay.add"(%arg0, %arg1) : (tensor<4x4xf32>, tensor<4xf32>)
// CHECK: "relay.add"(%[[B]], %arg1) : (tensor<4x4xf32>, tensor<4xf32>)
func.func @broadcasts(%x: tensor<4x4xf32>, %v: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = "relay.broadcast_to"(%v) {shape = array<i64: 4, 4>} : (tensor<4xf32>) -> tensor<4x4xf32>
  %1 = "relay.add"(%x, %0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relay.add"(%0, %v) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT: %[[R:.*]] = "relay.reshape"(%arg0) {allowzero = false, newshape = array<i64: 4, 3>}
// CHECK-NEXT: return %[[R]], %arg0
func.func @reshapes(%x: tensor<2x6xf32>) -> (tensor<4x3xf32>, tensor<2x6xf32>) {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 12>} : (tensor<2x6xf32>) -> tensor<12xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 4, 3>} : (tensor<12xf32>) -> tensor<4x3xf32>
  %2 = "relay.reshape"(%1) {newshape = array<i64: 2, 6>} : (tensor<4x3xf32>) -> tensor<2x6xf32>
  return %1, %2 : tensor<4x3xf32>, tensor<2x6xf32>
}

// -----

// Pixels in one dimension, transposed, are an image transposed between NCHW and NHWC.
// CHECK-LABEL: func.func @pixels
// CHECK-DAG: %[[A:.*]] = "relay.transpose"(%arg0) {axes = array<i64: 0, 2, 3, 1>} : {{.*}} -> tensor<1x4x5x6xf32>
// CHECK-DAG: %[[B:.*]] = "relay.reshape"(%[[A]]) {{.*}} -> tensor<1x20x6xf32>
// CHECK-DAG: %[[C:.*]] = "relay.reshape"(%arg1) {{.*}} -> tensor<1x4x5x6xf32>
// CHECK-DAG: %[[D:.*]] = "relay.transpose"(%[[C]]) {axes = array<i64: 0, 3, 1, 2>} : {{.*}} -> tensor<1x6x4x5xf32>
// CHECK: return %[[B]], %[[D]]
func.func @pixels(%x: tensor<1x6x4x5xf32>, %y: tensor<1x20x6xf32>) -> (tensor<1x20x6xf32>, tensor<1x6x4x5xf32>) {
  %0 = "relay.reshape"(%x) {newshape = array<i64: 1, 6, 20>} : (tensor<1x6x4x5xf32>) -> tensor<1x6x20xf32>
  %1 = "relay.transpose"(%0) {axes = array<i64: 0, 2, 1>} : (tensor<1x6x20xf32>) -> tensor<1x20x6xf32>
  %2 = "relay.transpose"(%y) {axes = array<i64: 0, 2, 1>} : (tensor<1x20x6xf32>) -> tensor<1x6x20xf32>
  %3 = "relay.reshape"(%2) {newshape = array<i64: 1, 6, 4, 5>} : (tensor<1x6x20xf32>) -> tensor<1x6x4x5xf32>
  return %1, %3 : tensor<1x20x6xf32>, tensor<1x6x4x5xf32>
}

// CHECK-LABEL: func.func @transposes
// CHECK: %[[T:.*]] = "relay.transpose"(%arg0) {axes = array<i64: 2, 0, 1>}
// CHECK: %[[R:.*]] = "relay.reshape"(%arg1) {allowzero = false, newshape = array<i64: 3, 1, 1>}
// CHECK: return %[[T]], %arg0, %[[R]]
func.func @transposes(%x: tensor<2x3x4xf32>, %y: tensor<1x3x1xf32>) -> (tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<3x1x1xf32>) {
  %0 = "relay.transpose"(%x) {axes = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = "relay.transpose"(%0) {axes = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  %2 = "relay.transpose"(%0) {axes = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  %3 = "relay.transpose"(%y) {axes = array<i64: 1, 2, 0>} : (tensor<1x3x1xf32>) -> tensor<3x1x1xf32>
  return %1, %2, %3 : tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<3x1x1xf32>
}

// -----

// Parts: a concatenation inside another, a slice of one part, consecutive rows.
// CHECK-LABEL: func.func @parts
// CHECK: %[[C:.*]] = tensor.concat dim(0) %arg0, %arg1, %arg0 :
// CHECK: %[[S:.*]] = "relay.strided_slice"(%arg1) {axes = array<i64: 0>, begin = array<i64: 0>, end = array<i64: 1>
// CHECK: %[[T:.*]] = "relay.strided_slice"(%arg0) {axes = array<i64: 0>, begin = array<i64: 1>, end = array<i64: 2>
// CHECK: %[[R:.*]] = "relay.reshape"(%[[T]])
// CHECK: return %[[C]], %[[S]], %[[R]]
func.func @parts(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<6x3xf32>, tensor<1x3xf32>, tensor<3xf32>) {
  %minus = "relay.constant"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %0 = tensor.concat dim(0) %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %1 = tensor.concat dim(0) %0, %x : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %2 = "relay.strided_slice"(%1) {begin = array<i64: 2>, end = array<i64: 3>, axes = array<i64: 0>} : (tensor<6x3xf32>) -> tensor<1x3xf32>
  %3 = "relay.take"(%x, %minus) {axis = 0, mode = "fast"} : (tensor<2x3xf32>, tensor<i64>) -> tensor<3xf32>
  return %1, %2, %3 : tensor<6x3xf32>, tensor<1x3xf32>, tensor<3xf32>
}

// -----

// Rows in another order are still taken.
// CHECK-LABEL: func.func @take
// CHECK: "relay.take"
func.func @take(%x: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %i = "relay.constant"() {value = dense<[2, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "relay.take"(%x, %i) {axis = 0} : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Transposed operands of products: into the flags; a constant matrix [in, units] into a dense weight.
// CHECK-LABEL: func.func @products
// CHECK: "relay.nn_batch_matmul"(%arg0, %arg1) {{.*}}transpose_b = true
// CHECK: %[[W:.*]] = "relay.transpose"({{.*}}) {axes = array<i64: 1, 0>} : (tensor<5x6xf32>) -> tensor<6x5xf32>
// CHECK: "relay.nn_dense"(%arg2, %[[W]])
// CHECK: "relay.nn_matmul"(%arg2, %arg3)
func.func @products(%a: tensor<2x3x5xf32>, %b: tensor<2x4x5xf32>, %x: tensor<3x5xf32>, %w: tensor<5x6xf32>) -> (tensor<2x3x4xf32>, tensor<3x6xf32>, tensor<3x6xf32>) {
  %c = "relay.constant"() {value = dense<1.0> : tensor<5x6xf32>} : () -> tensor<5x6xf32>
  %0 = "relay.transpose"(%b) {axes = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
  %1 = "relay.nn_batch_matmul"(%a, %0) {transpose_b = false} : (tensor<2x3x5xf32>, tensor<2x5x4xf32>) -> tensor<2x3x4xf32>
  %2 = "relay.nn_matmul"(%x, %c) : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  %3 = "relay.transpose"(%w) : (tensor<5x6xf32>) -> tensor<6x5xf32>
  %4 = "relay.nn_dense"(%x, %3) : (tensor<3x5xf32>, tensor<6x5xf32>) -> tensor<3x6xf32>
  return %1, %2, %4 : tensor<2x3x4xf32>, tensor<3x6xf32>, tensor<3x6xf32>
}

// -----

// A transposed matrix that got a dimension of 1.
// CHECK-LABEL: func.func @one_matrix
// CHECK-NOT: relay.transpose
// CHECK: "relay.nn_batch_matmul"({{.*}}transpose_b = true
func.func @one_matrix(%a: tensor<1x3x5xf32>, %b: tensor<4x5xf32>) -> tensor<1x3x4xf32> {
  %0 = "relay.transpose"(%b) {axes = array<i64: 1, 0>} : (tensor<4x5xf32>) -> tensor<5x4xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 1, 5, 4>} : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
  %2 = "relay.nn_batch_matmul"(%a, %1) {transpose_b = false} : (tensor<1x3x5xf32>, tensor<1x5x4xf32>) -> tensor<1x3x4xf32>
  return %2 : tensor<1x3x4xf32>
}

// -----

// The keys of an attention: heads are moved to the front row by row, and the product reads them transposed.
// CHECK-LABEL: func.func @keys
// CHECK: %[[T:.*]] = "relay.transpose"(%arg1) {axes = array<i64: 0, 2, 1, 3>} {{.*}} -> tensor<1x4x8x16xf32>
// CHECK: %[[R:.*]] = "relay.reshape"(%[[T]]) {{.*}} -> tensor<4x8x16xf32>
// CHECK: "relay.nn_batch_matmul"(%arg0, %[[R]]) {{.*}}transpose_b = true
func.func @keys(%q: tensor<4x8x16xf32>, %k: tensor<1x8x4x16xf32>) -> tensor<4x8x8xf32> {
  %0 = "relay.transpose"(%k) {axes = array<i64: 0, 2, 3, 1>} : (tensor<1x8x4x16xf32>) -> tensor<1x4x16x8xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 4, 16, 8>} : (tensor<1x4x16x8xf32>) -> tensor<4x16x8xf32>
  %2 = "relay.nn_batch_matmul"(%q, %1) {transpose_b = false} : (tensor<4x8x16xf32>, tensor<4x16x8xf32>) -> tensor<4x8x8xf32>
  return %2 : tensor<4x8x8xf32>
}

// -----

// The heads of joint projections: the slice comes after the reshape, where the transpose can take it.
// CHECK-LABEL: func.func @heads
// CHECK: %[[R:.*]] = "relay.reshape"(%arg0) {{.*}} -> tensor<1x6x12x2xf32>
// CHECK: %[[S:.*]] = "relay.strided_slice"(%[[R]]) {axes = array<i64: 2>, begin = array<i64: 4>, end = array<i64: 8>, {{.*}} -> tensor<1x6x4x2xf32>
// CHECK: "relay.transpose"(%[[S]])
func.func @heads(%x: tensor<6x24xf32>) -> tensor<1x4x6x2xf32> {
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 8>, end = array<i64: 16>, axes = array<i64: 1>} : (tensor<6x24xf32>) -> tensor<6x8xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 1, 6, 4, 2>} : (tensor<6x8xf32>) -> tensor<1x6x4x2xf32>
  %2 = "relay.transpose"(%1) {axes = array<i64: 0, 2, 1, 3>} : (tensor<1x6x4x2xf32>) -> tensor<1x4x6x2xf32>
  return %2 : tensor<1x4x6x2xf32>
}

// -----

// A slice that cuts through the inner part stays before the reshape.
// CHECK-LABEL: func.func @cut_heads
// CHECK: %[[S:.*]] = "relay.strided_slice"(%arg0)
// CHECK: "relay.reshape"(%[[S]])
func.func @cut_heads(%x: tensor<6x24xf32>) -> tensor<6x4x2xf32> {
  %0 = "relay.strided_slice"(%x) {begin = array<i64: 7>, end = array<i64: 15>, axes = array<i64: 1>} : (tensor<6x24xf32>) -> tensor<6x8xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 6, 4, 2>} : (tensor<6x8xf32>) -> tensor<6x4x2xf32>
  return %1 : tensor<6x4x2xf32>
}

// -----

// A clip of all values that a type has says nothing.
// CHECK-LABEL: func.func @clipped
// CHECK: %[[B:.*]] = "relay.cast"(%arg0) {dtype = "int8"}
// CHECK: return %[[B]], %arg0
func.func @clipped(%x: tensor<3xi32>) -> (tensor<3xi8>, tensor<3xi32>) {
  %0 = "relay.cast"(%x) {dtype = "int8"} : (tensor<3xi32>) -> tensor<3xi8>
  %1 = "relay.clip"(%0) {a_min = -128.0, a_max = 200.0} : (tensor<3xi8>) -> tensor<3xi8>
  %2 = "relay.clip"(%x) {a_max = 3.0e9} : (tensor<3xi32>) -> tensor<3xi32>
  return %1, %2 : tensor<3xi8>, tensor<3xi32>
}

// -----

// Zeros and ones are the number that they repeat.
// CHECK-LABEL: func.func @filled
// CHECK: %[[Z:.*]] = "relay.constant"() {value = dense<0.000000e+00> : tensor<f32>}
// CHECK: %[[S:.*]] = "relay.subtract"(%[[Z]], %arg0)
// CHECK: return %arg0, %[[S]]
func.func @filled(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %zeros = "relay.zeros"() {shape = array<i64: 2, 3>, dtype = "float32"} : () -> tensor<2x3xf32>
  %ones = "relay.ones"() {shape = array<i64: 3>, dtype = "float32"} : () -> tensor<3xf32>
  %0 = "relay.multiply"(%ones, %x) : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "relay.add"(%0, %zeros) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "relay.subtract"(%zeros, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>
}
