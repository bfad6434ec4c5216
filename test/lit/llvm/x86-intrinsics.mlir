// RUN: relayc-opt %s --passes tir-to-llvm --config "target=cpu -mcpu=sapphirerapids" | filecheck %s

// Rounding to bf16 is an instruction; around it bf16 is carried as its bits.
// CHECK-LABEL: llvm.func @round
// CHECK: %[[NARROW:.*]] = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%{{.*}}) : (vector<16xf32>) -> vector<16xbf16>
// CHECK-NEXT: %[[BITS:.*]] = llvm.bitcast %[[NARROW]] : vector<16xbf16> to vector<16xi16>
// CHECK: llvm.store %[[BITS]]
func.func @round(%a: memref<16xf32>, %b: memref<16xbf16>) {
  %zero = arith.constant 0 : index
  %0 = vector.load %a[%zero] : memref<16xf32>, vector<16xf32>
  %1 = arith.truncf %0 : vector<16xf32> to vector<16xbf16>
  vector.store %1, %b[%zero] : memref<16xbf16>, vector<16xbf16>
  return
}

// CHECK-LABEL: llvm.func @dot
// CHECK-COUNT-2: llvm.bitcast %{{.*}} : vector<32xi16> to vector<32xbf16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
func.func @dot(%a: memref<32xbf16>, %s: memref<16xf32>) {
  %zero = arith.constant 0 : index
  %0 = vector.load %a[%zero] : memref<32xbf16>, vector<32xbf16>
  %1 = vector.load %s[%zero] : memref<16xf32>, vector<16xf32>
  %2 = x86.avx512.dot %1, %0, %0 : vector<32xbf16> -> vector<16xf32>
  vector.store %2, %s[%zero] : memref<16xf32>, vector<16xf32>
  return
}

// A tile that a loop carries is a value of LLVM's tile type in its branches; a function with tiles is not inlined.
// CHECK-LABEL: llvm.func @tiles
// CHECK-SAME: no_inline
// CHECK: llvm.call_intrinsic "llvm.x86.tilezero.internal"
// CHECK: llvm.br ^[[LOOP:bb[0-9]+]](%{{.*}} : i64, !llvm.x86_amx)
// CHECK: ^[[LOOP]](%{{.*}}: i64, %[[SUM:.*]]: !llvm.x86_amx):
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"({{.*}}, %[[SUM]], {{.*}}) : (i16, i16, i16, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx)
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64.internal"({{.*}}, %[[SUM]])
func.func @tiles(%a: memref<2048xbf16>, %c: memref<256xf32>) {
  %zero = arith.constant 0 : index
  %step = arith.constant 512 : index
  %end = arith.constant 2048 : index
  %columns = arith.constant 16 : index
  %stride = arith.constant 32 : index
  %0 = x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
  %1 = scf.for %i = %zero to %end step %step iter_args(%sum = %0) -> (!x86.amx.tile<16x16xf32>) {
    %x = x86.amx.tile_load %a[%i], %stride : memref<2048xbf16> into !x86.amx.tile<16x32xbf16>
    %2 = x86.amx.tile_mulf %x, %x, %sum : !x86.amx.tile<16x32xbf16>, !x86.amx.tile<16x32xbf16>, !x86.amx.tile<16x16xf32>
    scf.yield %2 : !x86.amx.tile<16x16xf32>
  }
  x86.amx.tile_store %c[%zero], %1, %columns : memref<256xf32>, !x86.amx.tile<16x16xf32>
  return
}
