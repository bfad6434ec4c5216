// RUN: relayc-opt %s --passes fuse-ops --opt-level 0 | filecheck %s --check-prefix LEVEL0
// RUN: relayc-opt %s --passes fuse-ops --config relay.FuseOps.max_depth=2 | filecheck %s --check-prefix DEPTH2
// RUN: relayc-opt %s --passes fuse-ops --print-locations | filecheck %s --check-prefix LOC

// Without fusion every operator is a group of its own.
// LEVEL0-COUNT-3: "relay.fused"
// LEVEL0-NOT: "relay.fused"

// DEPTH2: "relay.exp"
// DEPTH2-NEXT: "relay.yield"
// DEPTH2: "relay.negative"
// DEPTH2-NEXT: "relay.tanh"
// DEPTH2-NEXT: "relay.yield"

// Operators keep their locations; the group's is all of them.
// LOC: #[[A:.*]] = loc("first")
// LOC: #[[B:.*]] = loc("second")
// LOC: #[[C:.*]] = loc("third")
// LOC: #[[ALL:.*]] = loc(fused[#[[A]], #[[B]], #[[C]]])
// LOC: "relay.fused"
// LOC: "relay.exp"{{.*}} loc(#[[A]])
// LOC: }) : (tensor<4xf32>) -> tensor<4xf32> loc(#[[ALL]])
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %1 = "relay.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  %2 = "relay.tanh"(%1) : (tensor<4xf32>) -> tensor<4xf32> loc("third")
  return %2 : tensor<4xf32>
}
