// RUN: not relayc-opt %s --passes infer-type 2>&1 | filecheck %s

// CHECK: builtin.unrealized_conversion_cast: expected result type tuple<tensor<4xf32>>, found tuple<tensor<4xi32>>
func.func @main(%x: tensor<4xf32>) -> tuple<tensor<4xi32>> {
  %0 = builtin.unrealized_conversion_cast %x : tensor<4xf32> to tuple<tensor<4xi32>>
  return %0 : tuple<tensor<4xi32>>
}
