// RUN: relayc-opt %s --passes schedule-kernels --config "target=cpu -mcpu=x86-64-v4 -num-threads=1" --split-input-file | filecheck %s
// RUN: relayc-opt %s --passes schedule-kernels --config "target=cpu -mcpu=x86-64-v3 -num-threads=1" --split-input-file | filecheck %s --check-prefix=AVX2

// A loop of independent iterations reads, computes and writes neighbours in vectors; the last ones have a mask, or stay as they were.
// CHECK-LABEL: func.func private @along
// CHECK: scf.for
// CHECK: vector.create_mask %{{.*}} : vector<16xi1>
// CHECK: vector.maskedload {{.*}} vector<16xf32>
// CHECK: arith.mulf %{{.*}} : vector<16xf32>
// CHECK: vector.maskedstore
// CHECK-NOT: memref.store
// AVX2-LABEL: func.func private @along
// AVX2: vector.load {{.*}} vector<8xf32>
// AVX2: vector.store
// AVX2: memref.store
func.func private @along(%x: tensor<50x3xf32>, %f: tensor<3x50xf32>) -> tensor<3x50xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c50 = arith.constant 50 : index
  %e = tensor.empty() : tensor<3x50xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %e) -> tensor<3x50xf32> {
    %a = tensor.extract %x[%i, %i] : tensor<50x3xf32>
    %s = scf.for %j = %c0 to %c50 step %c1 iter_args(%u = %t) -> tensor<3x50xf32> {
      %b = tensor.extract %f[%i, %j] : tensor<3x50xf32>
      %c = arith.mulf %a, %b : f32
      %v = tensor.insert %c into %u[%i, %j] : tensor<3x50xf32>
      scf.yield %v : tensor<3x50xf32>
    } {relay.distinct}
    scf.yield %s : tensor<3x50xf32>
  }
  return %r : tensor<3x50xf32>
}

// -----

// Neighbours in an outer dimension are no vector.
// CHECK-LABEL: func.func private @across
// CHECK-NOT: vector.
// CHECK: memref.store
func.func private @across(%x: tensor<50x3xf32>) -> tensor<50xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  %e = tensor.empty() : tensor<50xf32>
  %r = scf.for %j = %c0 to %c50 step %c1 iter_args(%u = %e) -> tensor<50xf32> {
    %b = tensor.extract %x[%j, %c1] : tensor<50x3xf32>
    %c = arith.mulf %b, %b : f32
    %v = tensor.insert %c into %u[%j] : tensor<50xf32>
    scf.yield %v : tensor<50xf32>
  } {relay.distinct}
  return %r : tensor<50xf32>
}

// -----

// A loop that threads share is parallel where all of its iterations together are worth it, and each of them has memory of its own.
// CHECK-LABEL: func.func private @shared
// CHECK-NOT: memref.alloc
// CHECK: relay.parallel_if
// CHECK: scf.parallel
// CHECK: memref.alloc
// CHECK: memref.dealloc
// CHECK: scf.reduce
func.func private @shared(%x: tensor<?x8000xf32, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<?x8000xf32, ["n"]> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8000 = arith.constant 8000 : index
  %e = tensor.empty(%n) : tensor<?x8000xf32, ["n"]>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %e) -> tensor<?x8000xf32, ["n"]> {
    %w = tensor.empty() : tensor<8000xf32>
    %s = scf.for %j = %c0 to %c8000 step %c1 iter_args(%u = %w) -> tensor<8000xf32> {
      %b = tensor.extract %x[%i, %j] : tensor<?x8000xf32, ["n"]>
      %v = tensor.insert %b into %u[%j] : tensor<8000xf32>
      scf.yield %v : tensor<8000xf32>
    }
    %d = scf.for %j = %c0 to %c8000 step %c1 iter_args(%u = %t) -> tensor<?x8000xf32, ["n"]> {
      %k = arith.subi %c8000, %j : index
      %l = arith.subi %k, %c1 : index
      %b = tensor.extract %s[%l] : tensor<8000xf32>
      %v = tensor.insert %b into %u[%i, %j] : tensor<?x8000xf32, ["n"]>
      scf.yield %v : tensor<?x8000xf32, ["n"]>
    }
    scf.yield %d : tensor<?x8000xf32, ["n"]>
  } {relay.distinct, relay.threads = 8000 : i64}
  return %r : tensor<?x8000xf32, ["n"]>
}
