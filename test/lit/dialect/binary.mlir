// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The shapes broadcast; the element type is the operands'.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.add"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.subtract"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.multiply"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.divide"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.floor_divide"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.mod"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.floor_mod"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.power"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.maximum"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %{{.*}} = "relay.minimum"(%arg0, %arg1) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
func.func @main(%x: tensor<2x1x4xf32>, %y: tensor<3x1xf32>) {
  %0 = "relay.add"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %1 = "relay.subtract"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %2 = "relay.multiply"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %3 = "relay.divide"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %4 = "relay.floor_divide"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %5 = "relay.mod"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %6 = "relay.floor_mod"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %7 = "relay.power"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %8 = "relay.maximum"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  %9 = "relay.minimum"(%x, %y) : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<?x?x?xf32>
  return
}

// -----

// Comparisons give bools.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.equal"(%arg0, %arg1) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
// CHECK-NEXT: %{{.*}} = "relay.not_equal"(%arg0, %arg1) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
// CHECK-NEXT: %{{.*}} = "relay.less"(%arg0, %arg1) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
// CHECK-NEXT: %{{.*}} = "relay.less_equal"(%arg0, %arg1) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
// CHECK-NEXT: %{{.*}} = "relay.greater"(%arg0, %arg1) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
// CHECK-NEXT: %{{.*}} = "relay.greater_equal"(%arg0, %arg1) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
func.func @main(%x: tensor<4xi64>, %y: tensor<i64>) {
  %0 = "relay.equal"(%x, %y) : (tensor<4xi64>, tensor<i64>) -> tensor<?xi1>
  %1 = "relay.not_equal"(%x, %y) : (tensor<4xi64>, tensor<i64>) -> tensor<?xi1>
  %2 = "relay.less"(%x, %y) : (tensor<4xi64>, tensor<i64>) -> tensor<?xi1>
  %3 = "relay.less_equal"(%x, %y) : (tensor<4xi64>, tensor<i64>) -> tensor<?xi1>
  %4 = "relay.greater"(%x, %y) : (tensor<4xi64>, tensor<i64>) -> tensor<?xi1>
  %5 = "relay.greater_equal"(%x, %y) : (tensor<4xi64>, tensor<i64>) -> tensor<?xi1>
  return
}

// -----

// Bits of integers, and logic of bools.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.bitwise_and"(%arg0, %arg0) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
// CHECK-NEXT: %{{.*}} = "relay.bitwise_or"(%arg0, %arg0) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
// CHECK-NEXT: %{{.*}} = "relay.bitwise_xor"(%arg0, %arg0) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
// CHECK-NEXT: %{{.*}} = "relay.left_shift"(%arg0, %arg0) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
// CHECK-NEXT: %{{.*}} = "relay.right_shift"(%arg0, %arg0) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
// CHECK-NEXT: %{{.*}} = "relay.logical_and"(%arg1, %arg1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
// CHECK-NEXT: %{{.*}} = "relay.logical_or"(%arg1, %arg1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
// CHECK-NEXT: %{{.*}} = "relay.logical_xor"(%arg1, %arg1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
// CHECK-NEXT: %{{.*}} = "relay.bitwise_and"(%arg1, %arg1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
// CHECK-NEXT: %{{.*}} = "relay.maximum"(%arg1, %arg1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
// CHECK-NEXT: %{{.*}} = "relay.minimum"(%arg1, %arg1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
// CHECK-NEXT: %{{.*}} = "relay.equal"(%arg1, %arg1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
func.func @main(%x: tensor<4xui32>, %b: tensor<2xi1>) {
  %0 = "relay.bitwise_and"(%x, %x) : (tensor<4xui32>, tensor<4xui32>) -> tensor<?xui32>
  %1 = "relay.bitwise_or"(%x, %x) : (tensor<4xui32>, tensor<4xui32>) -> tensor<?xui32>
  %2 = "relay.bitwise_xor"(%x, %x) : (tensor<4xui32>, tensor<4xui32>) -> tensor<?xui32>
  %3 = "relay.left_shift"(%x, %x) : (tensor<4xui32>, tensor<4xui32>) -> tensor<?xui32>
  %4 = "relay.right_shift"(%x, %x) : (tensor<4xui32>, tensor<4xui32>) -> tensor<?xui32>
  %b0 = "relay.logical_and"(%b, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<?xi1>
  %b1 = "relay.logical_or"(%b, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<?xi1>
  %b2 = "relay.logical_xor"(%b, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<?xi1>
  %b3 = "relay.bitwise_and"(%b, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<?xi1>
  %b4 = "relay.maximum"(%b, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<?xi1>
  %b5 = "relay.minimum"(%b, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<?xi1>
  %b6 = "relay.equal"(%b, %b) : (tensor<2xi1>, tensor<2xi1>) -> tensor<?xi1>
  return
}

// -----

// An unknown dimension stays unknown beside 1 and takes the other's size beside anything else.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.add"(%arg0, %arg1) : (tensor<7x5xf32>, tensor<1x5xf32>) -> tensor<7x5xf32>
// CHECK-NEXT: %{{.*}} = "relay.where"(%arg2, %arg0, %arg1) : (tensor<7x1xi1>, tensor<7x5xf32>, tensor<1x5xf32>) -> tensor<7x5xf32>
func.func @main(%x: tensor<?x?xf32>, %y: tensor<1x5xf32>, %c: tensor<7x1xi1>) {
  %0 = "relay.add"(%x, %y) : (tensor<?x?xf32>, tensor<1x5xf32>) -> tensor<?x?xf32>
  %1 = "relay.where"(%c, %x, %y) : (tensor<7x1xi1>, tensor<?x?xf32>, tensor<1x5xf32>) -> tensor<?x?xf32>
  return
}
