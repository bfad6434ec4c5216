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
