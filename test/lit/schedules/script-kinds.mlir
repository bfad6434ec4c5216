// RUN: relayc-opt %s --passes te-to-blocks --print-script | filecheck %s

// Kinds of loops, memory of a thread, orders and what has no form of its own.
// CHECK: def main(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
// CHECK-NEXT:     c_local = T.alloc_buffer((8,), "float32", scope="local", name="c.local")
// CHECK-NEXT:     for i in T.parallel(2):
// CHECK-NEXT:         for j in T.vectorized(4, annotations={"hint": 3}):
// CHECK-NEXT:             with T.block("c"):
// CHECK-NEXT:                 vi = T.axis.opaque(8, i * 4 + j)
// CHECK-NEXT:                 T.block_attr({"note": "x"})
// CHECK-NEXT:                 c_local[vi] = T.op("math.fma", a[vi], a[7 - vi], T.float32(2.0))
module {
  func.func @main(%a: memref<8xf32> {tir.buffer = "a"}, %b: memref<8xf32> {tir.buffer = "b", tir.output}) attributes {tir.blocks} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %two = arith.constant 2.0 : f32
    %c = memref.alloc() {tir.buffer = "c.local", tir.scope = "local"} : memref<8xf32>
    scf.for %i = %c0 to %c2 step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        %p = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)>(%i, %j)
        "tir.block"(%p) ({}, {
        ^bb0(%v: index):
          %m = affine.apply affine_map<(d0) -> (-d0 + 7)>(%v)
          %x = memref.load %a[%v] : memref<8xf32>
          %y = memref.load %a[%m] : memref<8xf32>
          %z = math.fma %x, %y, %two : f32
          memref.store %z, %c[%v] : memref<8xf32>
        }) {name = "c", iterators = ["opaque"], extents = [8], tir.annotations = {note = "x"}} : (index) -> ()
      } {tir.loop = "j", tir.kind = "vectorized", tir.annotations = {hint = 3}}
    } {tir.loop = "i", tir.kind = "parallel"}
    scf.for %i = %c0 to %c8 step %c1 {
      "tir.block"(%i) ({}, {
      ^bb0(%v: index):
        %x = memref.load %c[%v] : memref<8xf32>
        memref.store %x, %b[%v] : memref<8xf32>
      }) {name = "b", iterators = ["parallel"], extents = [8]} : (index) -> ()
    } {tir.loop = "i2"}
    return
  }
}
