// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cuda -arch=sm_80" --config schedule.flash_mma.warps=1 --config schedule.flash_mma.rows=16 --config schedule.flash_mma.keys=16 --config schedule.flash_mma.stages=2 | filecheck %s

// Two stages of 16 keys and their values. What the first product leaves in registers is rounded, and is the first operand of the second: the
// only stores are those of the result. The keys that all rows see have a loop of their own, without the mask.
// CHECK-LABEL: func.func private @fused_attention
// CHECK: gpu.launch {{.*}} workgroup(%{{.*}} : memref<4096xi8, #gpu.address_space<workgroup>>)
// CHECK-COUNT-8: vector.load %{{.*}} {alignment = 4 : i64} : memref<16384xf16>, vector<2xf16>
// CHECK-NOT: vector.load
// CHECK: scf.for
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK-COUNT-4: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>, num = 4
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>, num = 4
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: arith.cmpi sgt
// CHECK: math.exp2
// CHECK: %[[W:.*]] = arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
// CHECK: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>, num = 4
// CHECK-COUNT-2: nvvm.mma.sync A[%[[W]],
// CHECK-NOT: store
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: arith.cmpi sgt
// CHECK: arith.select
// CHECK-NOT: store
// CHECK: scf.yield
// CHECK: vector.store
func.func @main(%q: tensor<1x2x256x32xf16>, %k: tensor<1x2x256x32xf16>, %v: tensor<1x2x256x32xf16>) -> tensor<1x2x256x32xf16> {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 0.25 : f64, is_causal = true} : (tensor<1x2x256x32xf16>, tensor<1x2x256x32xf16>, tensor<1x2x256x32xf16>) -> tensor<1x2x256x32xf16>
  return %0 : tensor<1x2x256x32xf16>
}
