// RUN: relayc-opt %s --passes fuse-ops --opt-level 0 | filecheck %s --check-prefix LEVEL0
// RUN: relayc-opt %s --passes fuse-ops --config relay.FuseOps.max_depth=2 | filecheck %s --check-prefix DEPTH2
// RUN: relayc-opt %s --passes fuse-ops --config relay.FuseOps.max_operands=1 | filecheck %s --check-prefix OPERANDS1
// RUN: relayc-opt %s --passes fuse-ops --print-locations | filecheck %s --check-prefix LOC
// RUN: not relayc-opt %s --passes fuse-ops --disable fuse-ops.nothing 2>&1 | filecheck %s --check-prefix UNKNOWN
// RUN: not relayc-opt %s --passes fuse-ops --config relay.FuseOps.disabled_rules=epilogue,one-result 2>&1 | filecheck %s --check-prefix REQUIRED

// Without fusion every operator is a group of its own.
// LEVEL0-COUNT-3: "relay.fused"
// LEVEL0-NOT: "relay.fused"

// DEPTH2: "relay.exp"
// DEPTH2-NEXT: "relay.yield"
// DEPTH2: "relay.add"
// DEPTH2-NEXT: "relay.tanh"
// DEPTH2-NEXT: "relay.yield"

// OPERANDS1: "relay.exp"
// OPERANDS1-NEXT: "relay.yield"
// OPERANDS1: "relay.add"
// OPERANDS1-NEXT: "relay.yield"
// OPERANDS1: "relay.tanh"

// Operators keep their locations; the group's is all of them.
// LOC: "relay.fused"
// LOC: "relay.exp"{{.*}} loc(#[[A:.*]])
// LOC: }) : () -> tensor<4xf32> loc(#[[ALL:.*]])
// LOC: #[[A]] = loc("first")
// LOC: #[[B:.*]] = loc("second")
// LOC: #[[C:.*]] = loc("third")
// LOC: #[[ALL]] = loc(fused[#[[A]], #[[B]], #[[C]]])

// UNKNOWN: FuseOps: expected rules out of elementwise-into-elementwise, epilogue, {{.*}}found nothing
// REQUIRED: (one-result, one-consumer always hold), found one-result
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %1 = "relay.add"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("second")
  %2 = "relay.tanh"(%1) : (tensor<4xf32>) -> tensor<4xf32> loc("third")
  return %2 : tensor<4xf32>
}
