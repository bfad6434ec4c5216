// RUN: relayc-opt %s --passes te-to-tir --split-input-file | filecheck %s

// A program passes part of its arena on to another one, beside the tensors that are alive (%0 and %1); the parameters are the
// same for all. A public program that is not main stands for itself.
// CHECK-LABEL: func.func @main
// CHECK-SAME: memref<4xf32>, %arg2: memref<192xi8>, %arg3: memref<64xi8>)
// CHECK: call @k(%arg0,
// CHECK: %[[ARENA:.*]] = memref.view %arg2[%c0{{.*}}][] : memref<192xi8> to memref<64xi8>
// CHECK: call @f(%{{.*}}, %{{.*}}, %[[ARENA]], %arg3)
// CHECK: call @add(
// CHECK-LABEL: func.func @other
// CHECK: call @f(%arg0, %arg1, %{{.*}}, %arg3)
// CHECK-LABEL: func.func private @f
// CHECK-SAME: (%arg0: memref<4xf32>, %arg1: memref<4xf32>, %arg2: memref<64xi8>, %arg3: memref<64xi8>)
// CHECK: call @k(%arg0, %[[T:.*]])
// CHECK: call @k({{.*}}, %arg1)
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @add(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @add(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {relay.program} {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A function of the tir stage is taken as it is, and called in the place of the declaration.
// CHECK: func.func private @impl(%arg0: memref<4xf32>, %arg1: memref<4xf32>)
// CHECK: memref.copy
// CHECK-LABEL: func.func @main
// CHECK: call @impl(%arg0, %arg1)
func.func private @impl(%x: memref<4xf32>, %y: memref<4xf32>) {
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}
func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {relay.tir = @impl}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
