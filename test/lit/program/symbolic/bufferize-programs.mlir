// RUN: relayc-opt %s --passes bufferize-programs --split-input-file | filecheck %s

// Memory of a size that the program's symbols say is bytes of that size, viewed flat; a result is flat memory of the caller.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: memref<?xf32>, %arg1: memref<?xf32>, %arg2: index {relay.symbol = "n"})
// CHECK-SAME: relay.tensors = (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
// CHECK: %[[BYTES:.*]] = arith.muli %arg2, %c16
// CHECK: %[[T:.*]] = memref.alloc(%[[BYTES]]) : memref<?xi8>
// CHECK: %[[V:.*]] = memref.view %[[T]][%c0{{.*}}][%[[ELEMENTS:.*]]] : memref<?xi8> to memref<?xf32>
// CHECK: call @k(%arg0, %[[V]], %arg2)
// CHECK: call @k(%{{.*}}, %arg1, %arg2)
// CHECK-NOT: relay.heap
func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>, %n: index {relay.symbol = "n"}) {
  return
}
func.func private @k.te(tensor<?x4xf32, ["n"]>, index {relay.symbol = "n"}) -> tensor<?x4xf32, ["n"]> attributes {relay.tir = @k}
func.func @main(%x: tensor<?x4xf32, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<?x4xf32, ["n"]> {
  %0 = call @k.te(%x, %n) : (tensor<?x4xf32, ["n"]>, index) -> tensor<?x4xf32, ["n"]>
  %1 = call @k.te(%0, %n) : (tensor<?x4xf32, ["n"]>, index) -> tensor<?x4xf32, ["n"]>
  return %1 : tensor<?x4xf32, ["n"]>
}

// -----

// A size that data say: its tensors are memory of the heap. What the program gives, it gives with the size; what it does not, it frees. The
// product of two sizes may be more than 64 bits hold, which is asked of a float.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (memref<?xi8>, index {relay.symbol = "k"})
// CHECK: %[[K:.*]] = arith.index_cast
// CHECK: "relay.require"(%[[K]], %{{.*}}) {message = "k: expected 0 or more, found %lld", predicate = "ge"}
// CHECK: arith.mulf
// CHECK: "relay.require"(%{{.*}}, %{{.*}}) {message = "expected a tensor of at most %lld bytes, found more", predicate = "ge"}
// CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) {relay.heap} : memref<?xi8>
// CHECK: call @zeros
// CHECK: %[[B:.*]] = memref.alloc(%{{.*}}) {relay.heap} : memref<?xi8>
// CHECK: call @k
// CHECK: memref.dealloc %[[A]] {relay.heap}
// CHECK: return %[[B]], %[[K]]
func.func private @zeros(%y: memref<?xf32>, %k: index {relay.symbol = "k"}) {
  return
}
func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>, %k: index {relay.symbol = "k"}) {
  return
}
func.func private @zeros.te(index {relay.symbol = "k"}) -> tensor<?x?xf32, ["k", "k"]> attributes {relay.tir = @zeros}
func.func private @k.te(tensor<?x?xf32, ["k", "k"]>, index {relay.symbol = "k"}) -> tensor<?x?xf32, ["k", "k"]> attributes {relay.tir = @k}
func.func @main(%c: tensor<i64>) -> (tensor<?x?xf32, ["k", "k"]>, index {relay.symbol = "k"}) {
  %e = tensor.extract %c[] : tensor<i64>
  %k = arith.index_cast %e {relay.symbol = "k"} : i64 to index
  %zero = arith.constant 0 : index
  "relay.require"(%k, %zero) {message = "k: expected 0 or more, found %lld", predicate = "ge"} : (index, index) -> ()
  %0 = call @zeros.te(%k) : (index) -> tensor<?x?xf32, ["k", "k"]>
  %1 = call @k.te(%0, %k) : (tensor<?x?xf32, ["k", "k"]>, index) -> tensor<?x?xf32, ["k", "k"]>
  return %1, %k : tensor<?x?xf32, ["k", "k"]>, index
}
