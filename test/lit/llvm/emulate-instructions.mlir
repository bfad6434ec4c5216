// RUN: relayc-opt %s --passes emulate-instructions | filecheck %s

// Tiles become buffers; a loop that carries one works on it in place.
// CHECK-LABEL: func.func private @tiles
// CHECK-COUNT-3: memref.alloca() {alignment = 64 : i64} : memref<16x
// CHECK-NOT: memref.alloca
// CHECK-NOT: x86
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (memref<16x16xf32>) {
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30] : vector<32xbf16>
// CHECK-COUNT-2: vector.fma {{.*}} : vector<16xf32>
// CHECK: vector.store {{.*}}, %[[SUM]]
// CHECK: scf.yield %[[SUM]] : memref<16x16xf32>
// CHECK: return
func.func private @tiles(%a: memref<2048xbf16>, %b: memref<2048xbf16>, %c: memref<256xf32>) {
  %zero = arith.constant 0 : index
  %step = arith.constant 512 : index
  %end = arith.constant 2048 : index
  %columns = arith.constant 16 : index
  %stride = arith.constant 32 : index
  %0 = x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
  %1 = scf.for %i = %zero to %end step %step iter_args(%sum = %0) -> (!x86.amx.tile<16x16xf32>) {
    %x = x86.amx.tile_load %a[%i], %stride : memref<2048xbf16> into !x86.amx.tile<16x32xbf16>
    %y = x86.amx.tile_load %b[%i], %stride : memref<2048xbf16> into !x86.amx.tile<16x32xbf16>
    %2 = x86.amx.tile_mulf %x, %y, %sum : !x86.amx.tile<16x32xbf16>, !x86.amx.tile<16x32xbf16>, !x86.amx.tile<16x16xf32>
    scf.yield %2 : !x86.amx.tile<16x16xf32>
  }
  x86.amx.tile_store %c[%zero], %1, %columns : memref<256xf32>, !x86.amx.tile<16x16xf32>
  return
}

// CHECK-LABEL: func.func private @dot
// CHECK-COUNT-2: vector.fma {{.*}} : vector<16xf32>
// CHECK: return
func.func private @dot(%s: vector<16xf32>, %a: vector<32xbf16>, %b: vector<32xbf16>) -> vector<16xf32> {
  %0 = x86.avx512.dot %s, %a, %b : vector<32xbf16> -> vector<16xf32>
  return %0 : vector<16xf32>
}
