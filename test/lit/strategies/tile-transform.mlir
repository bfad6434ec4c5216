// RUN: relayc-opt %s --passes graph-pipeline,outline-groups,relay-to-te,te-to-tir | filecheck %s

// The matrices of the transform are in the code: no loop over them, no multiplication by 0 or 1, and the tile stays in registers.
// CHECK-LABEL: func.func private @fused_winograd_input_transform
// CHECK-NOT: memref.alloc
// CHECK: scf.parallel
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: math.fma {{.*}} : vector<
// CHECK: vector.store
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x8x32x32x8xf32>) -> tensor<1x288x8x8x8xf32> {
  %0 = "relay.nn_winograd_input_transform"(%x) : (tensor<1x8x32x32x8xf32>) -> tensor<1x288x8x8x8xf32>
  return %0 : tensor<1x288x8x8x8xf32>
}
