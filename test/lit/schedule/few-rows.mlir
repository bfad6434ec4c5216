// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l1-bytes=32768 -l2-bytes=524288" | filecheck %s

// Only a call knows how many rows there are. Tiles of 6 rows go over the whole depth, as panels stream from the second-level cache; what
// is left, and few rows, are one tile of 5 or of 3 rows, which reads a panel once, the latter in two places at once. Their sums wait in
// memory for one epilogue of a row.
// Rows of 4096 bytes are read where they lie.
// CHECK-LABEL: func.func private @fused_dense_relu(
// CHECK-NOT: memref.view
// CHECK: scf.parallel
// CHECK: %[[SUMS:.*]] = memref.alloca
// CHECK-NOT: vector.fma
// CHECK: scf.for %{{.*}} = %c0{{[_0-9]*}} to %c1024{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args(
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for %{{.*}} = %c0{{[_0-9]*}} to %c1024{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args(
// CHECK-COUNT-10: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for %{{.*}} = %c0{{[_0-9]*}} to %c512{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args(
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-NOT: vector.fma
// CHECK: vector.load %[[SUMS]]
// CHECK-COUNT-2: arith.maximumf
// CHECK-NOT: arith.maximumf
// CHECK: return
func.func @main(%x: tensor<?x1024xf32, ["n"]>) -> tensor<?x1024xf32, ["n"]> {
  %w = "relay.constant"() {value = "w", shape = array<i64: 1024, 1024>, dtype = "float32"} : () -> tensor<1024x1024xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<?x1024xf32, ["n"]>, tensor<1024x1024xf32>) -> tensor<?x1024xf32, ["n"]>
  %1 = "relay.nn_relu"(%0) : (tensor<?x1024xf32, ["n"]>) -> tensor<?x1024xf32, ["n"]>
  return %1 : tensor<?x1024xf32, ["n"]>
}
