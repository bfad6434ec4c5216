// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -l2-bytes=262144" | filecheck %s

// Rows that are a page apart share a few sets of the cache: they are copied tile by tile, into memory that the caller plans. Columns that
// are far apart likewise, on the stack.
// CHECK-LABEL: func.func private @fused_matmul
// CHECK-SAME: memref<60x1024xf32>, %{{[a-z0-9]+}}: memref<1024x1024xf32>, %{{[a-z0-9]+}}: memref<60x1024xf32>, %{{[a-z0-9]+}}: memref<245760xi8>)
// CHECK: memref.view
// CHECK: vector.shuffle
// CHECK: vector.store {{.*}}: memref<61440xf32>
// CHECK: memref.alloca
// CHECK: vector.fma
// CHECK: return

// A deep reduction goes in chunks: the sums of a task wait in scratch memory between them, and only there: the first chunk does not read
// them, and the last one finishes them. Within a chunk they are values that the loop over its steps carries, each of which asks for its
// share of the next panel of the weights.
// CHECK-LABEL: func.func private @fused_dense
// CHECK-SAME: memref<96x4096xf32>
// CHECK: scf.parallel
// CHECK: scf.parallel
// CHECK: [[SUMS:%[a-z_0-9]+]] = memref.alloca() {alignment = 64 : i64} : memref<[[SIZE:[0-9]+]]xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: vector.store
// CHECK: [[IS_BEGUN:%[a-z_0-9]+]] = arith.cmpi ne, {{.*}}, %c0
// CHECK: [[IS_DONE:%[a-z_0-9]+]] = arith.cmpi eq, {{.*}}, %c4096
// CHECK: scf.if [[IS_BEGUN]]
// CHECK: vector.load [[SUMS]]
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: memref.prefetch {{.*}}, read, locality<2>, data : memref<{{[0-9]+}}xf32>
// CHECK-NOT: memref.prefetch
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK: scf.if [[IS_DONE]]
// CHECK-NOT: [[SUMS]]
// CHECK: arith.maximumf
// CHECK: } else {
// CHECK: vector.store {{.*}}, [[SUMS]]
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

func.func @main(%x: tensor<96x4096xf32>, %a: tensor<60x1024xf32>, %b: tensor<1024x1024xf32>) -> (tensor<96x512xf32>, tensor<60x1024xf32>) {
  %w = "relay.constant"() {value = "w", shape = array<i64: 512, 4096>, dtype = "float32"} : () -> tensor<512x4096xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<96x4096xf32>, tensor<512x4096xf32>) -> tensor<96x512xf32>
  %1 = "relay.nn_relu"(%0) : (tensor<96x512xf32>) -> tensor<96x512xf32>
  %2 = "relay.nn_matmul"(%a, %b) : (tensor<60x1024xf32>, tensor<1024x1024xf32>) -> tensor<60x1024xf32>
  return %1, %2 : tensor<96x512xf32>, tensor<60x1024xf32>
}
