// RUN: relayc-opt %s --passes tir-to-llvm --split-input-file | filecheck %s

// Buffers become bare pointers, a parallel loop one OpenMP region with as many threads as the runtime gives, which take iterations in turns;
// a buffer of the loop's body is allocated once per thread.
// CHECK-LABEL: llvm.func @parallel
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK: %[[TAKEN:.*]] = llvm.alloca %{{.*}} x i8
// CHECK: "llvm.intr.memset"(%[[TAKEN]]
// CHECK: omp.parallel {
// CHECK: llvm.alloca
// CHECK: llvm.call @__kmpc_bound_num_threads
// CHECK: llvm.call @__kmpc_bound_thread_num
// CHECK: llvm.call @__relayc_take(%[[TAKEN]]
// CHECK-NOT: llvm.intr.stacksave
// CHECK: llvm.return
func.func @parallel(%a: memref<4x8xf32>, %o: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %t = memref.alloca() : memref<8xf32>
    %x = vector.load %a[%i, %c0] : memref<4x8xf32>, vector<8xf32>
    vector.store %x, %t[%c0] : memref<8xf32>, vector<8xf32>
    %y = vector.load %t[%c0] : memref<8xf32>, vector<8xf32>
    vector.store %y, %o[%i, %c0] : memref<4x8xf32>, vector<8xf32>
    scf.reduce
  }
  return
}

// -----

// Where a condition does not hold the region is called like any function: the OpenMP runtime does not see it, and nobody is asked for a
// number of threads.
// CHECK-LABEL: llvm.func @parallel_if
// CHECK: omp.parallel if(%[[WORTH:.*]]) {
// CHECK: llvm.cond_br %[[WORTH]], ^[[ASKING:bb[0-9]+]], ^{{bb[0-9]+}}
// CHECK: ^[[ASKING]]:
// CHECK: llvm.call @__kmpc_bound_num_threads
// CHECK: llvm.call @__kmpc_bound_thread_num
// CHECK: llvm.return
// CHECK: llvm.func internal @__kmpc_fork_call_if({{.*}}, %[[REGION:[^:]*]]: !llvm.ptr, %[[CONDITION:[^:]*]]: i32, %[[VALUES:[^:]*]]: !llvm.ptr)
// CHECK: llvm.icmp "ne" %[[CONDITION]]
// CHECK: llvm.call @__kmpc_fork_call(
// CHECK: llvm.call %[[REGION]](%[[THREAD:[0-9]+]], %[[THREAD]], %[[VALUES]]) {no_inline}
func.func @parallel_if(%a: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %worth = arith.cmpi sge, %n, %c1000 : index
  "relay.parallel_if"(%worth) : (i1) -> ()
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %x = memref.load %a[%i] : memref<?xf32>
    %y = arith.addf %x, %x : f32
    memref.store %y, %a[%i] : memref<?xf32>
    scf.reduce
  }
  return
}

// -----

// Arithmetic of bf16 is that of f32.
// CHECK-LABEL: llvm.func @bf16
// CHECK: llvm.fadd %{{.*}} : vector<8xf32>
// CHECK-NOT: llvm.fptrunc
// CHECK: llvm.return
func.func @bf16(%a: memref<8xbf16>) {
  %c0 = arith.constant 0 : index
  %x = vector.load %a[%c0] : memref<8xbf16>, vector<8xbf16>
  %y = arith.addf %x, %x : vector<8xbf16>
  vector.store %y, %a[%c0] : memref<8xbf16>, vector<8xbf16>
  return
}

// -----

// A sum over a vector may be reassociated.
// CHECK-LABEL: llvm.func @sum
// CHECK: llvm.intr.vector.reduce.fadd"({{.*}}) <{fastmathFlags = #llvm.fastmath<reassoc>}>
func.func @sum(%a: memref<8xf32>, %o: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %x = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
  %s = vector.reduction <add>, %x : vector<8xf32> into f32
  memref.store %s, %o[%c0] : memref<1xf32>
  return
}
