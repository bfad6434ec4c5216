// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

// Every convolution keeps its sums in registers over its window and its channels, and neither copies its data nor compares indices with the
// bounds of it: the loops over the window end where the padding begins.

// One spatial dimension.
// CHECK-LABEL: func.func private @fused_conv1d(
// CHECK-NOT: memref.alloc
// CHECK-NOT: arith.select
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Data and result in blocks of 8 channels: lanes run along the block.
// CHECK-LABEL: func.func private @fused_conv2d_5({{.*}}: memref<1x2x14x14x8xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: arith.select
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Groups, each of which is a convolution of its own.
// CHECK-LABEL: func.func private @fused_conv2d_4(
// CHECK-NOT: memref.alloc
// CHECK-NOT: arith.select
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Dilation.
// CHECK-LABEL: func.func private @fused_conv2d_3(
// CHECK-NOT: memref.alloc
// CHECK-NOT: arith.select
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// A window of one element is a matrix product.
// CHECK-LABEL: func.func private @fused_conv2d_2(
// CHECK-NOT: memref.alloc
// CHECK-NOT: arith.select
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Stride 2.
// CHECK-LABEL: func.func private @fused_conv2d_1(
// CHECK-NOT: memref.alloc
// CHECK-NOT: arith.select
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

// Padding: the rows of the window are bounded by it.
// CHECK-LABEL: func.func private @fused_conv2d({{.*}}: memref<1x16x14x14xf32>, %{{.*}}: memref<{{[0-9]+}}x3x3x16x{{[0-9]+}}xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: arith.select
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: vector.fma {{.*}}vector<8xf32>
// CHECK-NOT: {{memref|vector}}.store
// CHECK: scf.yield {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK-NOT: memref.{{alloc|copy}}
// CHECK: return

func.func @main(%x: tensor<1x16x14x14xf32>, %b: tensor<1x2x14x14x8xf32>, %l: tensor<1x16x50xf32>)
    -> (tensor<1x32x14x14xf32>, tensor<1x32x6x6xf32>, tensor<1x48x14x14xf32>, tensor<1x32x10x10xf32>, tensor<1x32x12x12xf32>, tensor<1x4x12x12x8xf32>, tensor<1x24x50xf32>) {
  %k = "relay.constant"() {value = "k", shape = array<i64: 32, 16, 3, 3>, dtype = "float32"} : () -> tensor<32x16x3x3xf32>
  %p = "relay.constant"() {value = "p", shape = array<i64: 48, 16, 1, 1>, dtype = "float32"} : () -> tensor<48x16x1x1xf32>
  %g = "relay.constant"() {value = "g", shape = array<i64: 32, 4, 3, 3>, dtype = "float32"} : () -> tensor<32x4x3x3xf32>
  %t = "relay.constant"() {value = "t", shape = array<i64: 24, 16, 5>, dtype = "float32"} : () -> tensor<24x16x5xf32>
  %0 = "relay.nn_conv2d"(%x, %k) {padding = array<i64: 1, 1, 1, 1>} : (tensor<1x16x14x14xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x14x14xf32>
  %1 = "relay.nn_conv2d"(%x, %k) {strides = array<i64: 2, 2>} : (tensor<1x16x14x14xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x6x6xf32>
  %2 = "relay.nn_conv2d"(%x, %p) : (tensor<1x16x14x14xf32>, tensor<48x16x1x1xf32>) -> tensor<1x48x14x14xf32>
  %3 = "relay.nn_conv2d"(%x, %k) {dilation = array<i64: 2, 2>} : (tensor<1x16x14x14xf32>, tensor<32x16x3x3xf32>) -> tensor<1x32x10x10xf32>
  %4 = "relay.nn_conv2d"(%x, %g) {groups = 4 : i64} : (tensor<1x16x14x14xf32>, tensor<32x4x3x3xf32>) -> tensor<1x32x12x12xf32>
  %5 = "relay.nn_conv2d"(%b, %k) {data_layout = "NCHW8c", out_layout = "NCHW8c"} : (tensor<1x2x14x14x8xf32>, tensor<32x16x3x3xf32>) -> tensor<1x4x12x12x8xf32>
  %6 = "relay.nn_conv1d"(%l, %t) {padding = array<i64: 2, 2>} : (tensor<1x16x50xf32>, tensor<24x16x5xf32>) -> tensor<1x24x50xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<1x32x14x14xf32>, tensor<1x32x6x6xf32>, tensor<1x48x14x14xf32>, tensor<1x32x10x10xf32>, tensor<1x32x12x12xf32>, tensor<1x4x12x12x8xf32>, tensor<1x24x50xf32>
}
