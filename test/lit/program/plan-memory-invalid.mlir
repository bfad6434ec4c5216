// RUN: not relayc-opt %s --passes plan-memory --split-input-file 2>&1 | filecheck %s

// CHECK: @main: memref.alloc at {{.*}}: expected a buffer whose size is a number or of symbols, found memref<?xi8>
func.func private @k(memref<16xf32>, memref<16xf32>)
func.func @main(%x: memref<16xf32>, %y: memref<16xf32>, %n: index) {
  %z = arith.constant 0 : index
  %a = memref.alloc(%n) : memref<?xi8>
  %v = memref.view %a[%z][] : memref<?xi8> to memref<16xf32>
  call @k(%x, %v) : (memref<16xf32>, memref<16xf32>) -> ()
  call @k(%v, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  return
}

// -----

// CHECK: @w: expected a parameter (with the attribute relay.param), found memref.global
memref.global "private" @w : memref<16xf32> = dense<1.0>
func.func private @k(memref<16xf32>, memref<16xf32>)
func.func @main(%y: memref<16xf32>) {
  %w = memref.get_global @w : memref<16xf32>
  call @k(%w, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  return
}

// -----

// CHECK: @main: memref.alloc at {{.*}}: expected views of its bytes, found func.call
func.func private @q(memref<?xi8>)
func.func @main(%n: index {relay.symbol = "n"}) {
  %a = memref.alloc(%n) : memref<?xi8>
  call @q(%a) : (memref<?xi8>) -> ()
  return
}
