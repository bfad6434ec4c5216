// RUN: not relayc-opt %s --passes lower-to-te --split-input-file 2>&1 | filecheck %s

// CHECK: error: argument: expected a shape of numbers and symbols, found tensor<?xf32>
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "relay.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
