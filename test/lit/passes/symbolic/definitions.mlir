// RUN: relayc-opt %s --passes eliminate-common-subexpr,dead-code-elimination | filecheck %s
// RUN: relayc-opt %s --passes canonicalize-ops,simplify-expr,sink-reshapes,dead-code-elimination | filecheck %s --check-prefix RULES
// RUN: relayc-opt %s --passes fuse-ops | filecheck %s --check-prefix FUSE

// What defines symbols, or checks sizes, is neither removed nor merged, though nothing uses its result.
// CHECK-LABEL: func.func @definitions
// CHECK: "relay.define_sizes"(%arg1) {names = ["k"]}
// CHECK: "relay.match_shape"(%arg0) {shape = ["m"]}
// CHECK: "relay.match_shape"(%arg0) {shape = ["m"]}
// CHECK: %[[Z:.*]] = "relay.zeros"() {{.*}}shape = ["m + k"]
// CHECK: return %[[Z]]
// RULES-LABEL: func.func @definitions
// RULES: "relay.define_sizes"(%arg1) {names = ["k"]}
// RULES: "relay.match_shape"(%arg0) {shape = ["m"]}
// RULES: "relay.match_shape"(%arg0) {shape = ["m"]}
// FUSE-LABEL: func.func @definitions
// FUSE: "relay.define_sizes"(%arg1) {names = ["k"]}
// FUSE-NEXT: "relay.match_shape"(%arg0) {shape = ["m"]}
func.func @definitions(%x: tensor<?xf32, ["n"]>, %c: tensor<i64>) -> tensor<?xf32, ["m + k"]> {
  "relay.define_sizes"(%c) {names = ["k"]} : (tensor<i64>) -> ()
  %0 = "relay.match_shape"(%x) {shape = ["m"]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m"]>
  %1 = "relay.match_shape"(%x) {shape = ["m"]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m"]>
  %2 = "relay.zeros"() {shape = ["m + k"], dtype = "float32"} : () -> tensor<?xf32, ["m + k"]>
  return %2 : tensor<?xf32, ["m + k"]>
}

// A shape that is stated, and is what the type says already, is no statement.
// RULES-LABEL: func.func @known
// RULES-NEXT: %[[E:.*]] = "relay.exp"(%arg0)
// RULES-NEXT: return %[[E]]
func.func @known(%x: tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]> {
  %0 = "relay.match_shape"(%x) {shape = ["n", 4]} : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  %1 = "relay.exp"(%0) : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  return %1 : tensor<?x4xf32, ["n"]>
}

// A branch whose result has a size that stands nowhere before it defines that; one that does not may go.
// CHECK-LABEL: func.func @branches
// CHECK: "relay.if"(%arg2)
// CHECK-NOT: "relay.if"
// CHECK: "relay.zeros"() {{.*}}shape = ["k"]
func.func @branches(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>, %c: tensor<i1>) -> tensor<?xf32, ["k"]> {
  %0 = "relay.if"(%c) ({
    "relay.yield"(%x) : (tensor<?xf32, ["n"]>) -> ()
  }, {
    "relay.yield"(%y) : (tensor<?xf32, ["m"]>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32, ["k"]>
  %1 = "relay.if"(%c) ({
    %3 = "relay.exp"(%x) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    "relay.yield"(%3) : (tensor<?xf32, ["n"]>) -> ()
  }, {
    "relay.yield"(%x) : (tensor<?xf32, ["n"]>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32, ["n"]>
  %2 = "relay.zeros"() {shape = ["k"], dtype = "float32"} : () -> tensor<?xf32, ["k"]>
  return %2 : tensor<?xf32, ["k"]>
}

// The branch that a constant takes states the size that the result had.
// RULES-LABEL: func.func @taken
// RULES-NEXT: %[[E:.*]] = "relay.exp"(%arg0)
// RULES-NEXT: %[[M:.*]] = "relay.match_shape"(%[[E]]) {shape = ["k"]}
// RULES-NEXT: return %[[M]]
func.func @taken(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["k"]> {
  %c = "relay.constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %0 = "relay.if"(%c) ({
    %1 = "relay.exp"(%x) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    "relay.yield"(%1) : (tensor<?xf32, ["n"]>) -> ()
  }, {
    "relay.yield"(%y) : (tensor<?xf32, ["m"]>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32, ["k"]>
  return %0 : tensor<?xf32, ["k"]>
}

// A statement of a shape is a view, and stands between groups.
// FUSE-LABEL: func.func @between
// FUSE: "relay.exp"
// FUSE-NEXT: "relay.yield"
// FUSE: "relay.match_shape"
// FUSE: "relay.add"
// FUSE-NEXT: "relay.yield"
func.func @between(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]> {
  %0 = "relay.exp"(%x) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %1 = "relay.match_shape"(%0) {shape = ["m"]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m"]>
  %2 = "relay.add"(%1, %y) : (tensor<?xf32, ["m"]>, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
  return %2 : tensor<?xf32, ["m"]>
}
