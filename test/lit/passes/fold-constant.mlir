// RUN: relayc-opt %s --passes fold-constant --split-input-file | filecheck %s

// A chain of constants becomes one; int32 division rounds toward zero.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT: "relay.constant"() {value = dense<[-3, 3, 0]> : tensor<3xi32>}
// CHECK-NEXT: return
func.func @chain() -> tensor<3xi32> {
  %a = "relay.constant"() {value = dense<[-7, 7, 1]> : tensor<3xi32>} : () -> tensor<3xi32>
  %b = "relay.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
  %0 = "relay.divide"(%a, %b) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

// -----

// A division by zero is left to run time.
// CHECK-LABEL: func.func @division_by_zero
// CHECK: "relay.divide"
func.func @division_by_zero() -> tensor<i32> {
  %a = "relay.constant"() {value = dense<7> : tensor<i32>} : () -> tensor<i32>
  %b = "relay.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %0 = "relay.divide"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----

// Only what depends on constants alone; the shape of a static operand is a constant.
// CHECK-LABEL: func.func @constants_alone
// CHECK: %[[C:.*]] = "relay.constant"() {value = dense<6.000000e+00> : tensor<f32>}
// CHECK: "relay.add"(%arg0, %[[C]])
func.func @constants_alone(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %b = "relay.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.multiply"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = "relay.add"(%x, %0) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// Movement: transpose, slice, concatenate, reshape.
// CHECK-LABEL: func.func @movement
// CHECK-NEXT: "relay.constant"() {value = dense<[1, 3, 2, 4, 1, 3]> : tensor<6xi64>}
// CHECK-NEXT: return
func.func @movement() -> tensor<6xi64> {
  %a = "relay.constant"() {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>} : () -> tensor<2x2xi64>
  %0 = "relay.transpose"(%a) : (tensor<2x2xi64>) -> tensor<2x2xi64>
  %1 = "relay.strided_slice"(%0) {begin = array<i64: 0>, end = array<i64: 1>} : (tensor<2x2xi64>) -> tensor<1x2xi64>
  %2 = tensor.concat dim(0) %0, %1 : (tensor<2x2xi64>, tensor<1x2xi64>) -> tensor<3x2xi64>
  %3 = "relay.reshape"(%2) {newshape = array<i64: -1>} : (tensor<3x2xi64>) -> tensor<6xi64>
  return %3 : tensor<6xi64>
}

// -----

// A large repetition of few elements stays an operator; what it is made from is folded.
// CHECK-LABEL: func.func @repetition
// CHECK: %[[C:.*]] = "relay.constant"() {value = dense<-1.000000e+00> : tensor<1xf32>}
// CHECK: "relay.broadcast_to"(%[[C]])
func.func @repetition() -> tensor<1000x1000xf32> {
  %a = "relay.constant"() {value = dense<1.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = "relay.negative"(%a) : (tensor<1xf32>) -> tensor<1xf32>
  %1 = "relay.broadcast_to"(%0) {shape = array<i64: 1000, 1000>} : (tensor<1xf32>) -> tensor<1000x1000xf32>
  return %1 : tensor<1000x1000xf32>
}

// -----

// Results above the inline size become parameters.
// CHECK-LABEL: func.func @large_result
// CHECK-NEXT: "relay.constant"() {dtype = "int64", shape = array<i64: 1000>, value = "const"}
func.func @large_result() -> tensor<1000xi64> {
  %0 = "relay.arange"() {start = 0.0, stop = 1000.0, step = 1.0, dtype = "int64"} : () -> tensor<1000xi64>
  return %0 : tensor<1000xi64>
}

// -----

// A parameter that the table does not hold is not folded.
// CHECK-LABEL: func.func @absent_parameter
// CHECK: "relay.exp"
func.func @absent_parameter() -> tensor<2xf32> {
  %a = "relay.constant"() {value = "absent", shape = array<i64: 2>, dtype = "float32"} : () -> tensor<2xf32>
  %0 = "relay.exp"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// What a loop computes of constants from around it is folded too.
// CHECK-LABEL: func.func @captured
// CHECK: %[[C:.*]] = "relay.constant"() {value = dense<{{\[\[}}1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]>
// CHECK: "relay.multiply"(%{{.*}}, %[[C]])
func.func @captured(%c: tensor<i1>, %x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %a = "relay.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "relay.while"(%x) ({
  ^bb0(%y: tensor<2x2xf32>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%y: tensor<2x2xf32>):
    %1 = "relay.transpose"(%a) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %2 = "relay.multiply"(%y, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    "relay.yield"(%2) : (tensor<2x2xf32>) -> ()
  }) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
