// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l1-bytes=32768 -l2-bytes=524288" | filecheck %s

// Only a call knows how many rows there are. Most are in tiles of 5 rows, each of which asks for a share of the next panel. What is
// left, and few rows, are tiles of 2: their elements have three sums, each of which goes over a third of the steps, so that the panel is
// read in three places at once. Nothing is asked for then. All sums wait in memory for one epilogue of a row.
// CHECK-LABEL: func.func private @fused_dense_relu(
// CHECK: scf.parallel
// CHECK: %[[SUMS:.*]] = memref.alloca
// CHECK: scf.for %{{.*}} = %[[LOW:.*]] to %{{.*}} iter_args(
// CHECK: memref.prefetch
// CHECK-COUNT-10: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-NOT: memref.prefetch
// CHECK: scf.for %{{.*}} = %[[LOW]] to %c341 {{.*}} iter_args(
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for {{.*}} iter_args(
// CHECK-COUNT-4: vector.fma
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
