// RUN: relayc-opt %s --passes outline-launches,lower-kernels --config "target=cuda -arch=sm_90a" | filecheck %s

// Functions of the host keep their launches. Buffers are bare pointers, aligned and apart as the calls say; numbers are i64.
// CHECK: func.func private @rows
// CHECK: gpu.launch_func @kernels::@rows
// CHECK: gpu.module @kernels
// CHECK: llvm.mlir.global private @rows_shared_0() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<32 x f32>
// CHECK: llvm.func @rows(%[[X:.*]]: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}, %[[Y:.*]]: !llvm.ptr {llvm.align = 4 : i64, llvm.noalias}, %{{.*}}: i64)
// CHECK-SAME: gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>, relay.dynamic_shared_bytes = 0 : i64, relay.static_shared_bytes = 128 : i64, relay.threads = 32 : i64
// CHECK: nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK: nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
// CHECK: nvvm.shfl.sync bfly %{{.*}} : f32 -> f32
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier
func.func private @rows(%x: memref<8x32xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
      workgroup(%s : memref<32xf32, #gpu.address_space<workgroup>>) {
    %v = memref.load %x[%bx, %tx] : memref<8x32xf32>
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %other, %valid = gpu.shuffle xor %v, %one, %width : f32
    memref.store %other, %s[%tx] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %first = memref.load %s[%c0] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %first, %y[%n] : memref<?xf32>
    gpu.terminator
  }
  return
}

// More than 48 KiB of shared memory are parts of one variable whose size the launch says: the larger ones first, at multiples of 1024.
// CHECK: llvm.mlir.global external @tiles_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @tiles
// CHECK-SAME: relay.dynamic_shared_bytes = 65600 : i64, relay.static_shared_bytes = 0 : i64
// CHECK: %[[ALL:.*]] = llvm.mlir.addressof @tiles_shared : !llvm.ptr<3>
// CHECK: llvm.getelementptr %{{.*}}[65536]
func.func private @tiles(%y: memref<8xi64>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1)
      workgroup(%n : memref<8xi64, #gpu.address_space<workgroup>>, %s : memref<8192xi64, #gpu.address_space<workgroup>>) {
    %v = memref.load %s[%tx] : memref<8192xi64, #gpu.address_space<workgroup>>
    memref.store %v, %n[%tx] : memref<8xi64, #gpu.address_space<workgroup>>
    gpu.barrier
    %w = memref.load %n[%bx] : memref<8xi64, #gpu.address_space<workgroup>>
    memref.store %w, %y[%tx] : memref<8xi64>
    gpu.terminator
  }
  return
}

func.func @main(%x: memref<8x32xf32>, %arena: memref<?xi8>, %n: index) {
  %c16 = arith.constant 16 : index
  %c36 = arith.constant 36 : index
  %size = arith.muli %n, %c16 : index
  %at = arith.addi %size, %c36 : index
  %y = memref.view %arena[%at][%size] : memref<?xi8> to memref<?xf32>
  call @rows(%x, %y, %n) : (memref<8x32xf32>, memref<?xf32>, index) -> ()
  return
}
