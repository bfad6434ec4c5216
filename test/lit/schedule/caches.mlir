// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l1-bytes=32768 -l2-bytes=262144" | filecheck %s --check-prefix SMALL
// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l1-bytes=49152 -l2-bytes=2097152" | filecheck %s --check-prefix LARGE

// The caches of the target decide the blocks of a product, whatever machine this is. Chunks of a panel of 16 columns take half of the
// first-level cache: 256 steps of 32 KiB, 373 of 48 KiB. A block of sums, 24 rows, fills the rest: 256 columns of it, or all 512.
// SMALL: scf.parallel ({{%[a-z0-9]+, %[a-z0-9]+}}) = ({{.*}}) to (%c4, %c2)
// SMALL-NEXT: %alloca = memref.alloca() {alignment = 64 : i64} : memref<6144xf32>
// SMALL: scf.for [[STEP:%[a-z0-9]+]] = {{%[a-z0-9_]+}} to %c4096 step %c256 {
// SMALL-NEXT: [[END:%[a-z0-9]+]] = affine.apply {{#map[0-9]+}}([[STEP]])
// SMALL: scf.for {{%[a-z0-9]+}} = [[STEP]] to [[END]] step {{.*}} iter_args
// SMALL: return
// LARGE: scf.parallel ({{%[a-z0-9]+}}) = ({{.*}}) to (%c4)
// LARGE-NEXT: %alloca = memref.alloca() {alignment = 64 : i64} : memref<12288xf32>
// LARGE: scf.for [[STEP:%[a-z0-9]+]] = {{%[a-z0-9_]+}} to %c4096 step %c373 {
// LARGE-NEXT: [[LAST:%[a-z0-9]+]] = affine.apply {{#map[0-9]+}}([[STEP]])
// LARGE: [[END:%[a-z0-9]+]] = arith.minsi [[LAST]], {{%[a-z0-9_]+}} : index
// LARGE: scf.for {{%[a-z0-9]+}} = [[STEP]] to [[END]] step {{.*}} iter_args
// LARGE: return
func.func @main(%x: tensor<96x4096xf32>) -> tensor<96x512xf32> {
  %w = "relay.constant"() {value = "w", shape = array<i64: 512, 4096>, dtype = "float32"} : () -> tensor<512x4096xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<96x4096xf32>, tensor<512x4096xf32>) -> tensor<96x512xf32>
  return %0 : tensor<96x512xf32>
}
