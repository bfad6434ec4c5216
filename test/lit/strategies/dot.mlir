// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=sapphirerapids -mattr=-amx-tile" | filecheck %s

func.func @main() {
  return
}

// Eight rows by two vectors of sums are carried by the loop over pairs of the reduction: a pair of A is broadcast, one of B is loaded for
// each of 16 columns.
// CHECK-LABEL: func.func private @matmul
// CHECK: %[[BUFFER:.*]] = memref.alloca() {alignment = 64 : i64} : memref<256xf32>
// CHECK-NOT: alloc
// CHECK: %[[SUMS:.*]]:16 = scf.for {{.*}} iter_args({{(%[^,]*, ){15}%[^,]*}}) -> (vector<16xf32>, {{.*}}) {
// CHECK-COUNT-2: vector.load {{.*}}, vector<32xbf16>
// CHECK: %[[PAIR:.*]] = vector.load {{.*}}, vector<2xbf16>
// CHECK-NEXT: %[[BITS:.*]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
// CHECK-NEXT: vector.broadcast %[[BITS]] : vector<1xi32> to vector<16xi32>
// CHECK-COUNT-16: x86.avx512.dot %{{.*}} : vector<32xbf16> -> vector<16xf32>
// CHECK-NEXT: scf.yield
// CHECK: vector.store %[[SUMS]]#0, %[[BUFFER]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func private @matmul(%a: tensor<16x256xbf16>, %b: tensor<256x32xbf16>) -> tensor<16x32xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<16x256xbf16>, tensor<256x32xbf16>) outs(%i : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
