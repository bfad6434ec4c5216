// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

func.func @main() {
  return
}

// A matrix product: 6 rows by 2 vectors of sums, carried by the loop over the reduction; no other memory than the operands.
// CHECK-LABEL: func.func private @matmul
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} iter_args({{(%[^,]*, ){11}%[^,]*}}) -> (vector<8xf32>
// CHECK-COUNT-2: vector.load %{{.*}} : memref<2048xf32>, vector<8xf32>
// CHECK: memref.load %{{.*}} : memref<384xf32>
// CHECK: vector.broadcast
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: vector.store
// CHECK-NOT: memref.copy
// CHECK: return
func.func private @matmul(%a: tensor<6x64xf32>, %b: tensor<64x32xf32>) -> tensor<6x32xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x32xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<6x32xf32>) -> tensor<6x32xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<6x64xf32>, tensor<64x32xf32>) outs(%i : tensor<6x32xf32>) -> tensor<6x32xf32>
  return %0 : tensor<6x32xf32>
}
