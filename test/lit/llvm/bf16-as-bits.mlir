// RUN: relayc-opt %s --passes tir-to-llvm | filecheck %s

// Moves of bf16 are moves of i16; constants are their bits.
// CHECK-LABEL: llvm.func @clamp
// CHECK-NOT: bf16
// CHECK: llvm.mlir.constant(-128 : i16) : i16
// CHECK-NOT: bf16
// CHECK: llvm.load {{.*}} : !llvm.ptr -> i16
// CHECK-NOT: bf16
// CHECK: llvm.select {{.*}} : i1, i16
// CHECK-NOT: bf16
// CHECK: llvm.store {{.*}} : i16, !llvm.ptr
// CHECK-NOT: bf16
func.func @clamp(%x: memref<4xbf16>, %y: memref<4xbf16>, %c: memref<4xi1>) {
  %i = arith.constant 2 : index
  %low = arith.constant 0xFF80 : bf16
  %v = memref.load %x[%i] : memref<4xbf16>
  %f = memref.load %c[%i] : memref<4xi1>
  %s = arith.select %f, %v, %low : bf16
  memref.store %s, %y[%i] : memref<4xbf16>
  return
}

// CHECK-LABEL: llvm.func @widen
// CHECK-NOT: bf16
// CHECK: llvm.fpext {{.*}} : f32 to f64
// CHECK-NOT: bf16
func.func @widen(%x: memref<4xbf16>, %y: memref<4xf64>) {
  %i = arith.constant 2 : index
  %v = memref.load %x[%i] : memref<4xbf16>
  %w = arith.extf %v : bf16 to f64
  memref.store %w, %y[%i] : memref<4xf64>
  return
}
