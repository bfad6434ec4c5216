// RUN: not relayc-opt %s --passes te-to-tir --split-input-file 2>&1 | filecheck %s

// CHECK: @main: arith.constant at {{.*}}: expected parameters, reshapes, concatenations, calls, scf.if and scf.while in a program
func.func @main() {
  %0 = arith.constant 1 : i32
  return
}

// -----

// CHECK: result 0 of main: expected the result of a kernel that stands there only (run materialize-results)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// CHECK: @main: scf.while at {{.*}}: expected scf.condition to forward the arguments of its block, in order
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<i8>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = scf.while (%a = %x, %b = %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %e = tensor.extract %c[] : tensor<i8>
    %p = arith.trunci %e : i8 to i1
    scf.condition(%p) %b, %a : tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    scf.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK: @main: scf.if at {{.*}}: expected a condition that arith.trunci makes of the element of a tensor<i8>
func.func @main(%p: i1) {
  scf.if %p {
  }
  return
}

// -----

// CHECK: @main: scf.if at {{.*}}: expected a condition that arith.trunci makes of the element of a tensor<i8>
func.func @main(%x: tensor<i64>) {
  %e = tensor.extract %x[] : tensor<i64>
  %p = arith.trunci %e : i64 to i1
  scf.if %p {
  }
  return
}

// -----

// CHECK: @k: expected a body, or the attribute relay.packed or relay.tir, found none
func.func private @k(tensor<4xf32>) -> tensor<4xf32>

// -----

// CHECK: @impl, which @k stands for: expected the type (memref<4xf32>, memref<4xf32>) -> (), found (memref<5xf32>, memref<4xf32>) -> ()
func.func private @impl(%x: memref<5xf32>, %y: memref<4xf32>) {
  return
}
func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {relay.tir = @impl}

// -----

// CHECK: @k: relay.tir: expected a private function over memrefs with a body, found no such @impl
func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {relay.tir = @impl}

// -----

// CHECK: @main: expected a program of one block, with scf.if and scf.while
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end
^end:
  return %x : tensor<4xf32>
}

// -----

// CHECK: @main: arith.index_cast at {{.*}}: expected an element of a tensor as a size
func.func @main(%n: i64) {
  %0 = arith.index_cast %n : i64 to index
  return
}

// -----

// CHECK: @main: arith.index_cast at {{.*}}: expected an element at constant indices
func.func @main(%x: tensor<4x4xi64>, %n: index) {
  %c = arith.constant 1 : index
  %e = tensor.extract %x[%c, %n] : tensor<4x4xi64>
  %0 = arith.index_cast %e : i64 to index
  return
}

// -----

// CHECK: @main: relay.constant at {{.*}}: expected the key of a parameter, found elements
func.func @main() {
  %0 = "relay.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  return
}
