// RUN: not relayc-opt %s --passes bufferize-programs --split-input-file 2>&1 | filecheck %s

// CHECK: a call of @k: expected a kernel with a schedule (run schedule-kernels), found one over tensors
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: @main: a call at {{.*}}: expected a parameter as argument 0 of @k, which takes it packed
func.func private @k(%x: memref<1x4x8xf32> {relay.packing = {batch = 0 : i64, extents = array<i64: 8, 4>, kind = "columns", map = affine_map<(d0, d1) -> (d1, d0)>, source = array<i64: 4, 8>}}, %y: memref<4x8xf32>) {
  return
}
func.func private @k.te(tensor<4x8xf32>) -> tensor<4x8xf32> attributes {relay.tir = @k}
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = call @k.te(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK: @main: tensor.concat at {{.*}}: expected results of calls of the same block that stand in no second place (see concatenate-in-place)
func.func private @k(%x: memref<8xf32>, %y: memref<8xf32>) {
  return
}
func.func private @k.te(tensor<8xf32>) -> tensor<8xf32> attributes {relay.tir = @k}
func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = tensor.concat dim(0) %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %1 = call @k.te(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
