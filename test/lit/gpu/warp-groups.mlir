// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cuda -arch=sm_90a" | filecheck %s

// Products by warp groups: one thread brings tiles, by maps of the operands that the host makes, and groups of four warps multiply them.

// A convolution whose channels are last: a turn is a tap and a line of channels, of which copies bring the pixels that the tap reads.
// CHECK-LABEL: func.func private @fused_conv2d(
// CHECK: relay.tensor_map{{.*}} {box = array<i64: 64, [[ROWS:[0-9]+]]>, swizzle = 128 : i64, window = array<i64: -1, -1, -1, -1, 1, 1>}
// CHECK: relay.tensor_map{{.*}} {box = array<i64: 64, 1, [[COLUMNS:[0-9]+]]>, swizzle = 128 : i64, window = array<i64>}
// CHECK: gpu.launch
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} im2col[{{.*}}] {mode = #nvvm.tma_load_mode<im2col>}
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}n = [[COLUMNS]], k = 16>
// CHECK: return

// Neither operand lies along the depth: boxes are of 64 rows or columns by 64 steps, and products transpose.
// CHECK-LABEL: func.func private @fused_matmul(
// CHECK-COUNT-2: relay.tensor_map{{.*}} {box = array<i64: 64, 64, 1>
// CHECK: gpu.launch
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} A[<f16>, {{.*}}, <col>], B[<f16>, {{.*}}, <row>]
// CHECK: return

// Of 8-bit integers 128 steps of the depth are in a line, 32 in an instruction. Parts of a long depth are tiles, which a second launch adds.
// CHECK-LABEL: func.func private @fused_dense_1(
// CHECK-SAME: memref<{{[0-9]+}}xi8>) attributes {{.*}}relay.schedule = "wgmma {{.*}}splits={{[2-9]}}
// CHECK: relay.tensor_map{{.*}} {box = array<i64: 128, [[ROWS:[0-9]+]], 1>
// CHECK: relay.tensor_map{{.*}} {box = array<i64: 128, [[COLUMNS:[0-9]+]], 1>
// CHECK: gpu.launch
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}n = [[COLUMNS]], k = 32>, D[<s32>, {{.*}}, <wrapped>], A[<s8>, {{.*}}, <row>], B[<s8>, {{.*}}, <col>]
// CHECK: gpu.launch
// CHECK-NOT: wgmma
// CHECK: return

// Both operands lie along the depth, 64 steps of which are in a line of a stage.
// CHECK-LABEL: func.func private @fused_dense(
// CHECK: relay.tensor_map{{.*}} {box = array<i64: 64, [[ROWS:[0-9]+]], 1>, swizzle = 128
// CHECK: relay.tensor_map{{.*}} {box = array<i64: 64, [[COLUMNS:[0-9]+]], 1>, swizzle = 128
// CHECK: gpu.launch
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}n = [[COLUMNS]], k = 16>, D[<f32>, {{.*}}], A[<bf16>, {{.*}}, <row>], B[<bf16>, {{.*}}, <col>]
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: return

func.func @main(%x: tensor<1024x512xbf16>, %w: tensor<512x512xbf16>, %i: tensor<128x4096xi8>, %j: tensor<256x4096xi8>,
    %a: tensor<512x1024xf16>, %b: tensor<512x512xf16>, %images: tensor<8x28x28x128xf16>)
    -> (tensor<1024x512xbf16>, tensor<128x256xi32>, tensor<1024x512xf16>, tensor<8x28x28x128xf16>) {
  %k = "relay.constant"() {value = "k", shape = array<i64: 128, 128, 3, 3>, dtype = "float16"} : () -> tensor<128x128x3x3xf16>
  %0 = "relay.nn_dense"(%x, %w) : (tensor<1024x512xbf16>, tensor<512x512xbf16>) -> tensor<1024x512xbf16>
  %1 = "relay.nn_dense"(%i, %j) {out_dtype = "int32"} : (tensor<128x4096xi8>, tensor<256x4096xi8>) -> tensor<128x256xi32>
  %2 = "relay.nn_matmul"(%a, %b) {transpose_a = true} : (tensor<512x1024xf16>, tensor<512x512xf16>) -> tensor<1024x512xf16>
  %3 = "relay.nn_conv2d"(%images, %k) {padding = array<i64: 1, 1, 1, 1>, data_layout = "NHWC"}
    : (tensor<8x28x28x128xf16>, tensor<128x128x3x3xf16>) -> tensor<8x28x28x128xf16>
  return %0, %1, %2, %3 : tensor<1024x512xbf16>, tensor<128x256xi32>, tensor<1024x512xf16>, tensor<8x28x28x128xf16>
}
