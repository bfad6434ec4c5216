// RUN: not relayc-opt %s --passes canonicalize-ops 2>&1 | filecheck %s

// CHECK: error: relay.call at {{.*}}: expected a function that does not call itself, found @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.call"(%x) {callee = "main"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
