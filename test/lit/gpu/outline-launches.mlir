// RUN: relayc-opt %s --passes outline-launches | filecheck %s

// Views, constants and what is computed of constants go in; sizes stay the host's, buffers of unknown size get one.
// CHECK: func.func private @k
// CHECK: %[[SIZE:.*]] = arith.muli %arg2, %c32
// CHECK: scf.if
// CHECK: gpu.launch_func @kernels::@k_0 blocks in (%arg2, %c1{{.*}}, %c1{{.*}}) threads in (%c32{{.*}}) args(%arg0 : memref<8x4xf32>, %arg1 : memref<1099511627776xf32>, %[[SIZE]] : index)
// CHECK: gpu.launch_func @kernels::@k_1 {{.*}} args(%arg1 : memref<1099511627776xf32>)
// CHECK: gpu.module @kernels
// CHECK: gpu.func @k_0(%[[X:.*]]: memref<8x4xf32>, %[[Y:.*]]: memref<1099511627776xf32>, %[[N:.*]]: index) workgroup(%[[S:.*]] : memref<32xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>}
// CHECK: %[[T:.*]] = gpu.thread_id x
// CHECK: %[[C4:.*]] = arith.constant 4 : index
// CHECK: %[[C8:.*]] = arith.addi %[[C4]], %[[C4]]
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[X]]
// CHECK: %[[V:.*]] = memref.load %[[FLAT]][%[[T]]]
// CHECK: memref.store %[[V]], %[[Y]][%[[N]]]
// CHECK: memref.store %[[V]], %[[S]][%[[C8]]]
// CHECK: gpu.func @k_1(%{{.*}}: memref<1099511627776xf32>) kernel
func.func private @k(%x: memref<8x4xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.addi %c4, %c4 : index
  %c32 = arith.constant 32 : index
  %size = arith.muli %n, %c32 : index
  %flat = memref.collapse_shape %x [[0, 1]] : memref<8x4xf32> into memref<32xf32>
  %some = arith.cmpi sgt, %n, %c0 : index
  scf.if %some {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
        workgroup(%s : memref<32xf32, #gpu.address_space<workgroup>>) {
      %v = memref.load %flat[%tx] : memref<32xf32>
      memref.store %v, %y[%size] : memref<?xf32>
      memref.store %v, %s[%c8] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.terminator
    }
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %v = memref.load %y[%tx] : memref<?xf32>
    memref.store %v, %y[%bx] : memref<?xf32>
    gpu.terminator
  }
  return
}

// The one launch of a function has its name.
// CHECK: gpu.func @one(%{{.*}}: memref<4xf32>) kernel attributes {known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 1, 1, 1>}
func.func private @one(%y: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %y[%tx] : memref<4xf32>
    memref.store %v, %y[%bx] : memref<4xf32>
    gpu.terminator
  }
  return
}
