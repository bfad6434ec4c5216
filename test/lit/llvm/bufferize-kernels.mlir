// RUN: relayc-opt %s --passes bufferize-kernels --split-input-file | filecheck %s

// Inputs, then destinations; enough work makes the outer loops parallel, the innermost stays sequential.
// CHECK-LABEL: func.func @relu
// CHECK-SAME: (%[[X:.*]]: memref<64x1000xf32>, %[[Y:.*]]: memref<64x1000xf32>)
// CHECK: scf.parallel (%[[I:.*]]) =
// CHECK: scf.for %[[J:.*]] =
// CHECK: memref.load %[[X]][%[[I]], %[[J]]]
// CHECK: arith.maximumf
// CHECK: memref.store %{{.*}}, %[[Y]][%[[I]], %[[J]]]
// CHECK-NOT: memref.alloc
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @relu(%x: tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x1000xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x1000xf32>) outs(%e : tensor<64x1000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.maximumf %a, %zero : f32
    linalg.yield %1 : f32
  } -> tensor<64x1000xf32>
  return %0 : tensor<64x1000xf32>
}

// -----

// Parts of a concatenation are written where they belong; a reshape of the result costs nothing.
// CHECK-LABEL: func.func @concat
// CHECK-SAME: (%[[A:.*]]: memref<2x4xf32>, %[[B:.*]]: memref<2x4xf32>, %[[R:.*]]: memref<16xf32>)
// CHECK-NOT: memref.alloc
// CHECK: memref.load %[[A]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK: memref.load %[[B]]
// CHECK: memref.store %{{.*}}, %[[R]]
func.func @concat(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<16xf32> {
  %0 = tensor.concat dim(0) %a, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  return %1 : tensor<16xf32>
}

// -----

// Tensors of symbolic size are flat buffers; what is computed in place of a temporary is written to the destination.
// CHECK-LABEL: func.func @running_sum
// CHECK-SAME: (%[[X:\w+]]: memref<?xf32>, %[[Y:\w+]]: memref<?xf32>, %[[M:\w+]]: index {relay.symbol = "m"}, %[[N:\w+]]: index {relay.symbol = "n"})
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} to %[[N]]
// CHECK: scf.for {{.*}} to %[[M]]
// CHECK: memref.load %[[X]]
// CHECK: memref.store %{{.*}}, %[[Y]]
func.func @running_sum(%x: tensor<?x?xf32, ["n", "m"]>, %m: index {relay.symbol = "m"}, %n: index {relay.symbol = "n"}) -> tensor<?x?xf32, ["n", "m"]> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n, %m) : tensor<?x?xf32, ["n", "m"]>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %e) -> (tensor<?x?xf32, ["n", "m"]>) {
    %0:2 = scf.for %j = %c0 to %m step %c1 iter_args(%u = %t, %sum = %zero) -> (tensor<?x?xf32, ["n", "m"]>, f32) {
      %1 = tensor.extract %x[%i, %j] : tensor<?x?xf32, ["n", "m"]>
      %2 = arith.addf %sum, %1 : f32
      %3 = tensor.insert %2 into %u[%i, %j] : tensor<?x?xf32, ["n", "m"]>
      scf.yield %3, %2 : tensor<?x?xf32, ["n", "m"]>, f32
    }
    scf.yield %0#0 : tensor<?x?xf32, ["n", "m"]>
  }
  return %r : tensor<?x?xf32, ["n", "m"]>
}

// -----

// Threads share the iterations of an outermost loop only.
// CHECK-LABEL: func.func @inner_loop
// CHECK-NOT: scf.parallel
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.parallel
func.func @inner_loop(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  %e = tensor.empty() : tensor<64x64xf32>
  %0 = scf.for %i = %zero to %n step %one iter_args(%rows = %e) -> tensor<64x64xf32> {
    %1 = scf.for %j = %zero to %n step %one iter_args(%row = %rows) -> tensor<64x64xf32> {
      %v = tensor.extract %x[%j, %i] : tensor<64x64xf32>
      %next = tensor.insert %v into %row[%i, %j] : tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    } {relay.distinct, relay.threads = 100000 : i64}
    scf.yield %1 : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}
