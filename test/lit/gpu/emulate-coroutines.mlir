// RUN: relayc-opt %s --passes emulate-kernels | filecheck %s

// A kernel whose threads wait: a coroutine that is left at the barrier, and a function that runs the grid and gives a status.
// CHECK-LABEL: func.func private @k(
// CHECK: %[[STATUS:.*]] = memref.alloca() {{.*}} : memref<i32>
// CHECK: scf.if
// CHECK: %[[FOUND:.*]] = func.call @k.grid(
// CHECK: memref.store %[[FOUND]], %[[STATUS]][]
// CHECK: return %{{.*}} : i32

// CHECK-LABEL: func.func private @k.thread(
// CHECK-SAME: relay.coroutine
// CHECK: %[[LOCAL:.*]] = memref.alloca() : memref<4xf32>
// CHECK: llvm.intr.coro.id
// CHECK: llvm.intr.coro.size
// CHECK: cf.cond_br %{{.*}}, ^[[RETURN:.*]], ^[[BEGIN:.*]]
// CHECK: ^[[BEGIN]]:
// CHECK: llvm.intr.coro.begin
// CHECK: memref.view
// CHECK: llvm.intr.coro.save
// CHECK: llvm.intr.coro.suspend
// CHECK: cf.cond_br %{{.*}}, ^[[ON:.*]], ^[[END:.*]]
// CHECK: ^[[ON]]:
// CHECK: ^[[END]]:
// CHECK: llvm.intr.coro.end
// CHECK: ^[[RETURN]]:
// CHECK: return %{{.*}} : i64

// CHECK-LABEL: func.func private @k.grid(
// CHECK: scf.parallel
// CHECK: call @k.thread(
// CHECK: func.call @__relayc_gpu.run(
// CHECK: call @__relayc_gpu.raise(
module attributes {gpu.container_module} {
  func.func private @k(%x: memref<64xf32>, %n: index) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @kernels::@k blocks in (%n, %c1, %c1) threads in (%c64, %c1, %c1) args(%x : memref<64xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%x: memref<64xf32>) workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %t = gpu.thread_id x
      scf.for %i = %c0 to %c4 step %c1 {
        %p = memref.alloca() : memref<4xf32>
        %v = memref.load %x[%t] : memref<64xf32>
        memref.store %v, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %v, %p[%i] : memref<4xf32>
        gpu.barrier
      }
      gpu.return
    }
  }
}
