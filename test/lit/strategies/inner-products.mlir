// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l1-bytes=32768 -l2-bytes=524288" | filecheck %s

// Two columns: lanes run along the depth. The small operand is copied so that it is contiguous there, too; the large one is read where it
// lies, four rows at a time, and the eight vectors of sums become one by additions across lanes. The last four steps are masked.
// CHECK-LABEL: func.func private @fused_batch_matmul(
// CHECK: memref.store
// CHECK: scf.for {{.*}} iter_args(
// CHECK-COUNT-6: vector.load
// CHECK-NOT: vector.load
// CHECK: scf.yield
// CHECK: scf.for {{.*}} iter_args(
// CHECK-COUNT-6: vector.maskedload
// CHECK-NOT: vector.maskedload
// CHECK: scf.yield
// CHECK-COUNT-7: arith.addf
// CHECK-NOT: arith.addf
// CHECK: vector.store
func.func @main(%x: tensor<3x64x100xf32>, %y: tensor<3x100x2xf32>) -> tensor<3x64x2xf32> {
  %0 = "relay.nn_batch_matmul"(%x, %y) {transpose_b = false} : (tensor<3x64x100xf32>, tensor<3x100x2xf32>) -> tensor<3x64x2xf32>
  return %0 : tensor<3x64x2xf32>
}
