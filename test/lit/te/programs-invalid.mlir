// RUN: not relayc-opt %s --passes outline-groups,relay-to-te --split-input-file 2>&1 | filecheck %s

// CHECK: error: @late: expected a function with a body, or one that is packed, found a declaration of neither
func.func private @late(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @late(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: relay.exp at {{.*}}: expected constants, reshapes, calls, branches and loops (run fuse-ops and outline-groups first)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: relay.fused at {{.*}}: expected a code generator of the name 'elsewhere' for the group, found none
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.fused"() ({
    %1 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%1) : (tensor<4xf32>) -> ()
  }) {compiler = "elsewhere"} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
