// RUN: relayc-opt %s --passes plan-memory --split-input-file | filecheck %s

// Buffers that are never alive together share memory: %c lies where %a was. Of the buffers that are alive at once, the larger one comes
// first. A view within a buffer keeps its distance from the beginning.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: memref<16xf32>, %arg1: memref<16xf32>, %arg2: memref<192xi8>, %arg3: memref<64xi8>)
// CHECK-NOT: memref.alloc
// CHECK: %[[A:.*]] = memref.view %arg2[%c128{{.*}}][] : memref<192xi8> to memref<16xf32>
// CHECK: call @k(%arg0, %[[A]])
// CHECK: %[[B:.*]] = memref.view %arg2[%c64{{.*}}][] : memref<192xi8> to memref<16xf32>
// CHECK: call @k(%[[A]], %[[B]])
// CHECK: %[[C:.*]] = memref.view %arg2[%c128{{.*}}][] : memref<192xi8> to memref<16xf32>
// CHECK: call @k(%[[B]], %[[C]])
// CHECK: call @k(%[[C]], %arg1)
func.func private @k(memref<16xf32>, memref<16xf32>)
func.func @main(%x: memref<16xf32>, %y: memref<16xf32>) {
  %z = arith.constant 0 : index
  %a = memref.alloc() : memref<64xi8>
  %av = memref.view %a[%z][] : memref<64xi8> to memref<16xf32>
  call @k(%x, %av) : (memref<16xf32>, memref<16xf32>) -> ()
  %b = memref.alloc() : memref<128xi8>
  %half = arith.constant 64 : index
  %bv = memref.view %b[%half][] : memref<128xi8> to memref<16xf32>
  call @k(%av, %bv) : (memref<16xf32>, memref<16xf32>) -> ()
  %c = memref.alloc() : memref<64xi8>
  %cv = memref.view %c[%z][] : memref<64xi8> to memref<16xf32>
  call @k(%bv, %cv) : (memref<16xf32>, memref<16xf32>) -> ()
  call @k(%cv, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  return
}

// -----

// A buffer may have a type of its own. Parameters get their places in the order of their use; one key in one layout has one place.
// CHECK: memref.global "private" @a : memref<16xf32> {relay.offset = 64 : i64, relay.param = "a"}
// CHECK: memref.global "private" @b : memref<4xf32> {relay.offset = 0 : i64, relay.param = "b"}
// CHECK: memref.global "private" @b_again : memref<2x2xf32> {relay.offset = 0 : i64, relay.param = "b"}
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg1: memref<64xi8>, %arg2: memref<128xi8>)
// CHECK: %[[T:.*]] = memref.view %arg1[%c0{{.*}}][] : memref<64xi8> to memref<16xf32>
// CHECK: %[[B:.*]] = memref.view %arg2[%c0{{.*}}][] : memref<128xi8> to memref<4xf32>
// CHECK: call @first(%[[B]], %[[T]])
// CHECK: %[[C:.*]] = memref.view %arg2[%c0{{.*}}][] : memref<128xi8> to memref<2x2xf32>
// CHECK: %[[A:.*]] = memref.view %arg2[%c64{{.*}}][] : memref<128xi8> to memref<16xf32>
// CHECK: call @second(%[[C]], %[[A]], %[[T]], %arg0)
memref.global "private" @a : memref<16xf32> {relay.param = "a"}
memref.global "private" @b : memref<4xf32> {relay.param = "b"}
memref.global "private" @b_again : memref<2x2xf32> {relay.param = "b"}
func.func private @first(memref<4xf32>, memref<16xf32>)
func.func private @second(memref<2x2xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>)
func.func @main(%y: memref<16xf32>) {
  %t = memref.alloc() : memref<16xf32>
  %b = memref.get_global @b : memref<4xf32>
  call @first(%b, %t) : (memref<4xf32>, memref<16xf32>) -> ()
  %c = memref.get_global @b_again : memref<2x2xf32>
  %a = memref.get_global @a : memref<16xf32>
  call @second(%c, %a, %t, %y) : (memref<2x2xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
  return
}

// -----

// What is written before a loop and read in it lives until the loop ends, although the last read stands before %c is written. A program that
// is called gets a part of the arena.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg2: memref<192xi8>, %arg3: memref<64xi8>)
// CHECK: %[[W:.*]] = memref.view %arg2[%c0{{.*}}][] : memref<192xi8> to memref<16xf32>
// CHECK: scf.while
// CHECK: do
// CHECK: func.call @k(%[[W]], %[[B:[a-z_0-9]+]])
// CHECK: %[[C:.*]] = memref.view %arg2[%c128{{.*}}][] : memref<192xi8> to memref<16xf32>
// CHECK: func.call @k(%[[B]], %[[C]])
// CHECK: %[[P:.*]] = memref.view %arg2[%{{.*}}][] : memref<192xi8> to memref<64xi8>
// CHECK: func.call @f(%[[C]], %arg1, %[[P]], %arg3)
// CHECK-LABEL: func.func private @f
// CHECK-SAME: (%arg0: memref<16xf32>, %arg1: memref<16xf32>, %arg2: memref<64xi8>, %arg3: memref<64xi8>)
func.func private @k(memref<16xf32>, memref<16xf32>)
func.func @main(%c: memref<i8>, %y: memref<16xf32>) {
  %w = memref.alloc() : memref<16xf32>
  call @k(%y, %w) : (memref<16xf32>, memref<16xf32>) -> ()
  scf.while : () -> () {
    %e = memref.load %c[] : memref<i8>
    %p = arith.trunci %e : i8 to i1
    scf.condition(%p)
  } do {
    %b = memref.alloc() : memref<16xf32>
    func.call @k(%w, %b) : (memref<16xf32>, memref<16xf32>) -> ()
    %d = memref.alloc() : memref<16xf32>
    func.call @k(%b, %d) : (memref<16xf32>, memref<16xf32>) -> ()
    func.call @f(%d, %y) : (memref<16xf32>, memref<16xf32>) -> ()
    scf.yield
  }
  return
}
func.func private @f(%x: memref<16xf32>, %y: memref<16xf32>) attributes {relay.program} {
  %t = memref.alloc() : memref<16xf32>
  call @k(%x, %t) : (memref<16xf32>, memref<16xf32>) -> ()
  call @k(%t, %y) : (memref<16xf32>, memref<16xf32>) -> ()
  return
}
