// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

// The last panel of columns that are copied chunk by chunk is narrower: the copy has zeros after its last column, and of the sums, which
// wait in memory between chunks, the epilogue reads only the columns that there are.
// CHECK-LABEL: func.func private @fused_matmul
// CHECK: [[ZERO:%[a-z_0-9]+]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK: [[PANEL:%[a-z_0-9]+]] = memref.alloca
// CHECK: [[SUMS:%[a-z_0-9]+]] = memref.alloca
// CHECK-NOT: vector.store {{.*}}, [[SUMS]]
// CHECK: vector.store [[ZERO]], [[PANEL]]
// CHECK: vector.load [[SUMS]]
// CHECK: vector.store {{.*}}, [[SUMS]]
// CHECK: return

// A tile of one row reads its panel once, in four places at once, in each of which the core reads ahead by itself.
// CHECK-LABEL: func.func private @fused_dense_2(
// CHECK-NOT: memref.prefetch
// CHECK: scf.for %{{.*}} = %c0{{[_0-9]*}} to %c1024{{[_0-9]*}} step %c1{{[_0-9]*}} iter_args(
// CHECK-COUNT-8: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-NOT: memref.prefetch
// CHECK: return

// What fits the second-level cache is not asked for.
// CHECK-LABEL: func.func private @fused_dense_1(
// CHECK-NOT: memref.prefetch
// CHECK: return

// A tile of six rows has one sum an element: each step asks for every cache line of a step that is some way ahead.
// CHECK-LABEL: func.func private @fused_dense(
// CHECK: scf.for {{.*}} iter_args(
// CHECK: memref.prefetch {{.*}}, read, locality<2>, data : memref<{{[0-9]+}}xf32>
// CHECK: vector.fma
// CHECK: scf.yield

func.func @main(%x: tensor<6x4096xf32>, %y: tensor<1x4096xf32>, %a: tensor<60x16384xf32>, %b: tensor<16384x1004xf32>) -> (tensor<6x1024xf32>, tensor<6x8xf32>, tensor<1x1024xf32>, tensor<60x1004xf32>) {
  %w = "relay.constant"() {value = "w", shape = array<i64: 1024, 4096>, dtype = "float32"} : () -> tensor<1024x4096xf32>
  %v = "relay.constant"() {value = "v", shape = array<i64: 8, 4096>, dtype = "float32"} : () -> tensor<8x4096xf32>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<6x4096xf32>, tensor<1024x4096xf32>) -> tensor<6x1024xf32>
  %1 = "relay.nn_dense"(%x, %v) : (tensor<6x4096xf32>, tensor<8x4096xf32>) -> tensor<6x8xf32>
  %3 = "relay.nn_dense"(%y, %w) : (tensor<1x4096xf32>, tensor<1024x4096xf32>) -> tensor<1x1024xf32>
  %2 = "relay.nn_matmul"(%a, %b) : (tensor<60x16384xf32>, tensor<16384x1004xf32>) -> tensor<60x1004xf32>
  return %0, %1, %3, %2 : tensor<6x1024xf32>, tensor<6x8xf32>, tensor<1x1024xf32>, tensor<60x1004xf32>
}
