// RUN: relayc-opt %s --passes bufferize-kernels | filecheck %s

func.func @main() {
  return
}

// Arguments are flat and the symbols stay last. The result is written in place, under its shape; nobody asks a buffer for its size.
// CHECK-LABEL: func.func private @running(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[OUT:.*]]: memref<?xf32>, %[[N:.*]]: index {relay.symbol = "n"})
// CHECK-NOT: memref.dim
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} to %[[N]]
// CHECK: memref.store {{.*}}%[[OUT]]
func.func private @running(%x: tensor<?xf32, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<?xf32, ["n"]> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty(%n) : tensor<?xf32, ["n"]>
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %t = %e) -> (f32, tensor<?xf32, ["n"]>) {
    %v = tensor.extract %x[%i] : tensor<?xf32, ["n"]>
    %s = arith.addf %sum, %v : f32
    %u = tensor.insert %s into %t[%i] : tensor<?xf32, ["n"]>
    scf.yield %s, %u : f32, tensor<?xf32, ["n"]>
  }
  return %0#1 : tensor<?xf32, ["n"]>
}
