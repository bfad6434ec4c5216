// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

// Every product keeps its sums in registers: they are values that the loop over the reduction carries, and nothing is stored, allocated or
// copied within.

// bfloat16 is widened as it is loaded, and summed in float32.
// CHECK-LABEL: func.func private @fused_dense_1(
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// One row: the weights, packed in blocks of columns when the program is compiled, are read in order.
// CHECK-LABEL: func.func private @fused_dense({{.*}}: memref<1x512xf32>, %{{.*}}: memref<{{[0-9]+}}x512x{{[0-9]+}}xf32>
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// A batch of one is read for every entry of the other. Columns that are rows of the operand: a panel of them is turned into scratch
// memory on the stack, taken once per thread.
// CHECK-LABEL: func.func private @fused_batch_matmul_1({{.*}}: memref<4x33x16xf32>, %{{.*}}: memref<1x48x16xf32>
// CHECK: memref.alloca
// CHECK: vector.store
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Likewise with a batch of both.
// CHECK-LABEL: func.func private @fused_batch_matmul({{.*}}: memref<4x48x16xf32>, %{{[a-z0-9]+}}: memref<4x33x48xf32>)
// CHECK: memref.alloca
// CHECK: vector.store
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Transposed from the left: elements of A are read where they lie.
// CHECK-LABEL: func.func private @fused_matmul_2({{.*}}: memref<64x100xf32>, %{{.*}}: memref<64x40xf32>, %{{.*}}: memref<100x40xf32>)
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Transposed from the right.
// CHECK-LABEL: func.func private @fused_matmul_1(
// CHECK: memref.alloca
// CHECK: vector.store
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Neither: B is read in place.
// CHECK-LABEL: func.func private @fused_matmul({{.*}}: memref<100x64xf32>, %{{.*}}: memref<64x40xf32>, %{{.*}}: memref<100x40xf32>)
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

func.func @main(%x: tensor<100x64xf32>, %xt: tensor<64x100xf32>, %y: tensor<64x40xf32>, %z: tensor<40x64xf32>, %b: tensor<4x33x16xf32>, %c: tensor<4x48x16xf32>, %d: tensor<1x48x16xf32>, %v: tensor<1x512xf32>, %h: tensor<8x64xbf16>)
    -> (tensor<100x40xf32>, tensor<100x40xf32>, tensor<100x40xf32>, tensor<4x33x48xf32>, tensor<4x33x48xf32>, tensor<1x96xf32>, tensor<8x48xbf16>) {
  %w = "relay.constant"() {value = "w", shape = array<i64: 96, 512>, dtype = "float32"} : () -> tensor<96x512xf32>
  %k = "relay.constant"() {value = "k", shape = array<i64: 48, 64>, dtype = "bfloat16"} : () -> tensor<48x64xbf16>
  %0 = "relay.nn_matmul"(%x, %y) : (tensor<100x64xf32>, tensor<64x40xf32>) -> tensor<100x40xf32>
  %1 = "relay.nn_matmul"(%x, %z) {transpose_b = true} : (tensor<100x64xf32>, tensor<40x64xf32>) -> tensor<100x40xf32>
  %2 = "relay.nn_matmul"(%xt, %y) {transpose_a = true} : (tensor<64x100xf32>, tensor<64x40xf32>) -> tensor<100x40xf32>
  %3 = "relay.nn_batch_matmul"(%b, %c) : (tensor<4x33x16xf32>, tensor<4x48x16xf32>) -> tensor<4x33x48xf32>
  %4 = "relay.nn_batch_matmul"(%b, %d) : (tensor<4x33x16xf32>, tensor<1x48x16xf32>) -> tensor<4x33x48xf32>
  %5 = "relay.nn_dense"(%v, %w) : (tensor<1x512xf32>, tensor<96x512xf32>) -> tensor<1x96xf32>
  %6 = "relay.nn_dense"(%h, %k) : (tensor<8x64xbf16>, tensor<48x64xbf16>) -> tensor<8x48xbf16>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<100x40xf32>, tensor<100x40xf32>, tensor<100x40xf32>, tensor<4x33x48xf32>, tensor<4x33x48xf32>, tensor<1x96xf32>, tensor<8x48xbf16>
}
