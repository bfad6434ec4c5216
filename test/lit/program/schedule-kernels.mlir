// RUN: relayc-opt %s --passes schedule-kernels --config "target=cpu -mcpu=x86-64-v3 -num-threads=1" --split-input-file | filecheck %s

// A kernel becomes loops over buffers; a program goes on in tensors, and calls the kernel by a declaration.
// CHECK: func.func private @k.te(tensor<8xf32>) -> tensor<8xf32> attributes {relay.tir = @k}
// CHECK: func.func private @k(%arg0: memref<8xf32>, %arg1: memref<8xf32>) attributes {relay.bytes = 64 : i64, relay.flops = 8 : i64,
// CHECK-SAME: relay.ops = ["add"], relay.schedule = "loops {{.*}}", {{.*}}relay.tensors = (tensor<8xf32>) -> tensor<8xf32>
// CHECK: vector.load %arg0[%{{.*}}] : memref<8xf32>, vector<8xf32>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK: call @k.te(%arg0)
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {relay.ops = ["add"]} {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @k(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A parameter is wanted in panels of columns: the attribute says how loops over (columns, reduction) read it. No program calls the kernel:
// nothing is declared.
// CHECK-NOT: .te
// CHECK: func.func private @product(%arg0: memref<16x64xf32>, %arg1: memref<2x64x24xf32>
// CHECK-SAME: {relay.packing = {batch = 0 : i64, extents = array<i64: 48, 64>, kind = "columns", map = affine_map<(d0, d1) -> (d1, d0)>, source = array<i64: 64, 48>}}
// CHECK-SAME: %arg2: memref<16x48xf32>)
// CHECK-SAME: relay.schedule = "contraction
// CHECK: vector.fma
func.func private @product(%x: tensor<16x64xf32>, %w: tensor<64x48xf32> {relay.param}) -> tensor<16x48xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x48xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x48xf32>) -> tensor<16x48xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<16x64xf32>, tensor<64x48xf32>) outs(%f : tensor<16x48xf32>) -> tensor<16x48xf32>
  return %0 : tensor<16x48xf32>
}

// -----

// What no schedule takes becomes plain loops.
// CHECK: func.func private @reversed(%arg0: memref<4xf32>, %arg1: memref<4xf32>)
// CHECK-SAME: relay.schedule = "bufferize"
// CHECK: scf.for
func.func private @reversed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.generate {
  ^bb0(%i: index):
    %c3 = arith.constant 3 : index
    %j = arith.subi %c3, %i : index
    %v = tensor.extract %x[%j] : tensor<4xf32>
    tensor.yield %v : f32
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}
