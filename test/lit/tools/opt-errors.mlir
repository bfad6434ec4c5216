// RUN: not relayc-opt %s --split-input-file > %t 2>&1; filecheck %s --input-file %t
// RUN: not relayc-opt %s --split-input-file --passes no-such-pass 2>&1 | filecheck %s --check-prefix PASS
// RUN: not relayc-opt %s --config relay.Nothing=1 2>&1 | filecheck %s --check-prefix CONFIG
// RUN: not relayc-opt %t.absent 2>&1 | filecheck %s --check-prefix FILE

// PASS: error: no pass 'no-such-pass' in relayc or MLIR
// CONFIG: error: --config: expected KEY=VALUE with KEY one of
// FILE: error: {{.*}}No such file

// What is wrong in one program does not keep the others from being read.
// CHECK: error: relay.add at "node": rhs: expected the element type of lhs, float32, found tensor<4xi32>
// CHECK: unregistered operation 'relay.no_such_operator'
// CHECK: error: {{.*}}expected
// CHECK: "relay.exp"
func.func @wrong_operands(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<4xf32> {
  %0 = "relay.add"(%x, %y) : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32> loc("node")
  return %0 : tensor<4xf32>
}

// -----

func.func @wrong_operator(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.no_such_operator"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @wrong_text(%x: tensor<4xf32>) -> {

// -----

func.func @right(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
