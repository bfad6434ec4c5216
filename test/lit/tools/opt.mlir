// RUN: relayc-opt %s | filecheck %s --check-prefix PLAIN
// RUN: relayc-opt %s --passes "canonicalize{max-iterations=1},eliminate-common-subexpr" | filecheck %s --check-prefix BOTH
// RUN: relayc-opt - --passes "builtin.module(func.func(cse)),dead-code-elimination" < %s | filecheck %s --check-prefix STDIN
// RUN: relayc-opt %s --passes dead-code-elimination -o %t && filecheck %s --check-prefix STDIN --input-file %t
// RUN: relayc-opt %s --passes infer-type,fuse-ops --dump-ir %t.d && filecheck %s --check-prefix PLAIN --input-file %t.d/relay/001-infer-type.mlir
// RUN: filecheck %s --check-prefix FUSED --input-file %t.d/relay/002-fuse-ops.mlir
// RUN: relayc-opt --list-passes | filecheck %s --check-prefix LIST

// PLAIN: "relay.exp"
// PLAIN: "relay.exp"
// PLAIN: "relay.add"

// BOTH: %[[E:.*]] = "relay.exp"(%arg0)
// BOTH: return %[[E]]

// STDIN: "relay.exp"
// STDIN-NOT: "relay.add"

// FUSED: "relay.fused"

// LIST: dead-code-elimination {{.*}}Removes operations without uses
// LIST: fuse-ops
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relay.add"(%0, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
