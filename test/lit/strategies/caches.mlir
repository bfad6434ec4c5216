// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l1-bytes=32768 -l2-bytes=262144" | filecheck %s --check-prefix SMALL
// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l1-bytes=49152 -l2-bytes=2097152" | filecheck %s --check-prefix LARGE

// The caches of the target decide the blocks of a product, whatever machine this is. A panel of 16 columns, 256 KiB, does not fit the
// first-level cache. A chunk takes three quarters of it at most: 373 steps of 24 KiB, or 512 of 36 KiB, between which the sums of 96 rows
// wait in memory. All rows go by in front of a panel.
// SMALL: scf.parallel ({{%[a-z0-9]+}}) = ({{.*}}) to (%c32)
// SMALL-NEXT: %alloca = memref.alloca() {alignment = 64 : i64} : memref<1536xf32>
// SMALL: scf.for [[STEP:%[a-z0-9]+]] = {{%[a-z0-9_]+}} to %c4096 step %c373 {
// SMALL: scf.for {{%[a-z0-9]+}} = {{.*}} to %c16 step
// SMALL: scf.for {{%[a-z0-9]+}} = [[STEP]] to {{%[a-z0-9]+}} step {{.*}} iter_args
// SMALL: return
// LARGE: scf.parallel ({{%[a-z0-9]+}}) = ({{.*}}) to (%c32)
// LARGE-NEXT: %alloca = memref.alloca() {alignment = 64 : i64} : memref<1536xf32>
// LARGE: scf.for [[STEP:%[a-z0-9]+]] = {{%[a-z0-9_]+}} to %c4096 step %c512 {
// LARGE: scf.for {{%[a-z0-9]+}} = {{.*}} to %c16 step
// LARGE: scf.for {{%[a-z0-9]+}} = [[STEP]] to {{%[a-z0-9]+}} step {{.*}} iter_args
// LARGE: return
func.func @main(%x: tensor<96x4096xf32>) -> tensor<96x512xf32> {
  %w = "relay.constant"() {value = "w", shape = array<i64: 512, 4096>, dtype = "float32"} : () -> tensor<512x4096xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<96x4096xf32>, tensor<512x4096xf32>) -> tensor<96x512xf32>
  return %0 : tensor<96x512xf32>
}
