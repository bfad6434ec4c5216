// RUN: relayc-opt %s --passes emulate-kernels | filecheck %s

// A kernel whose threads do not wait: blocks in parallel, threads in loops; memory is all of one kind.
// CHECK-LABEL: func.func private @k(
// CHECK: call @k.grid(%arg0, %arg1, %c1, %c1, %c64, %c1, %c1, %{{.*}}) :
// CHECK-LABEL: func.func private @k.grid(
// CHECK: scf.parallel (%[[B:.*]]) =
// CHECK: %[[S:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for %[[T:.*]] =
// CHECK: %[[V:.*]] = memref.load %arg0[%[[T]]]
// CHECK: memref.store %[[V]], %[[S]][%[[T]]] : memref<64xf32>
// CHECK-NOT: gpu.
module attributes {gpu.container_module} {
  func.func private @k(%x: memref<64xf32>, %n: index) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @kernels::@k blocks in (%n, %c1, %c1) threads in (%c64, %c1, %c1) args(%x : memref<64xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%x: memref<64xf32>) workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<64xf32>
      memref.store %v, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
}
