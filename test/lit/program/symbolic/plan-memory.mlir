// RUN: relayc-opt %s --passes plan-memory | filecheck %s

// Offsets and the size of the arena are expressions, computed when a call begins. %c is never alive with %a, and as large: it lies there. %b
// lies behind it, at any size.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg2: index {relay.symbol = "n"}, %arg3: memref<?xi8>, %arg4: memref<64xi8>
// CHECK-SAME: relay.arena = "max(128*((n + 15)//16), 64)"
// CHECK-NOT: memref.alloc
// CHECK: %[[A:.*]] = memref.view %arg3[%c0{{.*}}][%arg2] : memref<?xi8> to memref<?xf32>
// CHECK: call @k(%arg0, %[[A]], %arg2)
// CHECK: %[[B:.*]] = memref.view %arg3[%[[AT:[0-9a-z_]*]]][%arg2] : memref<?xi8> to memref<?xf32>
// CHECK: call @k(%[[A]], %[[B]], %arg2)
// CHECK: %[[C:.*]] = memref.view %arg3[%c0{{.*}}][%arg2] : memref<?xi8> to memref<?xf32>
// CHECK: call @k(%[[B]], %[[C]], %arg2)
func.func private @k(memref<?xf32>, memref<?xf32>, index)
func.func @main(%x: memref<?xf32>, %y: memref<?xf32>, %n: index {relay.symbol = "n"}) attributes {relay.tensors = (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>} {
  %four = arith.constant 4 : index
  %zero = arith.constant 0 : index
  %bytes = arith.muli %n, %four : index
  %a = memref.alloc(%bytes) : memref<?xi8>
  %av = memref.view %a[%zero][%n] : memref<?xi8> to memref<?xf32>
  call @k(%x, %av, %n) : (memref<?xf32>, memref<?xf32>, index) -> ()
  %b = memref.alloc(%bytes) : memref<?xi8>
  %bv = memref.view %b[%zero][%n] : memref<?xi8> to memref<?xf32>
  call @k(%av, %bv, %n) : (memref<?xf32>, memref<?xf32>, index) -> ()
  %c = memref.alloc(%bytes) : memref<?xi8>
  %cv = memref.view %c[%zero][%n] : memref<?xi8> to memref<?xf32>
  call @k(%bv, %cv, %n) : (memref<?xf32>, memref<?xf32>, index) -> ()
  call @k(%cv, %y, %n) : (memref<?xf32>, memref<?xf32>, index) -> ()
  return
}
