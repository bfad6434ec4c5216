// RUN: not relayc-opt %s --passes emit-calls --split-input-file 2>&1 | filecheck %s

// CHECK: @main: expected the attribute relay.tensors (its type as callers see it), found none
func.func @main(%x: memref<4xf32>, %arena: memref<64xi8>, %params: memref<64xi8>) {
  return
}

// -----

// CHECK: @main: expected inputs, outputs, symbols, the arena and the parameters (run plan-memory)
func.func @main(%x: memref<4xf32>) attributes {relay.tensors = () -> tensor<4xf32>} {
  return
}

// -----

// CHECK: @main: scf.if at {{.*}}: expected a condition that arith.trunci makes of an element of a memref<i8>
func.func @main(%arena: memref<64xi8>, %params: memref<64xi8>) attributes {relay.tensors = () -> ()} {
  %p = arith.constant true
  scf.if %p {
  }
  return
}

// -----

// CHECK: @main: expected views of arguments as operands of a call, found %{{.*}} = memref.subview {{.*}}(run plan-memory)
func.func private @k(memref<4xf32>) attributes {relay.tensors = (tensor<4xf32>) -> ()}
func.func @main(%x: memref<8xf32>, %arena: memref<64xi8>, %params: memref<64xi8>) attributes {relay.tensors = (tensor<8xf32>) -> ()} {
  %a = memref.subview %x[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %b = memref.cast %a : memref<4xf32, strided<[1]>> to memref<4xf32>
  call @k(%b) : (memref<4xf32>) -> ()
  return
}
