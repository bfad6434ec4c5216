// RUN: relayc-opt %s --passes outline-groups --split-input-file | filecheck %s
// RUN: relayc-opt %s --passes outline-groups,relay-to-te --split-input-file | filecheck %s --check-prefix=TE

// Equal groups are one function. What a group uses from around it are the arguments; literals stand inside, and %w, which is a parameter
// at every call, says so.
// CHECK: func.func private @fused_multiply(%arg0: tensor<4xf32>)
// CHECK: %[[TWO:.*]] = "relay.constant"() {value = dense<2.{{0*}}e+00> : tensor<f32>}
// CHECK: "relay.multiply"(%arg0, %[[TWO]])
// CHECK: func.func private @fused_add(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relay.param}) -> tensor<4xf32> attributes {relay.ops = ["add"], relay.primitive
// CHECK: %[[R:.*]] = "relay.add"(%arg0, %arg1)
// CHECK: return %[[R]]
// CHECK-LABEL: func.func @main
// CHECK-NOT: dense<2
// CHECK: %[[A:.*]] = call @fused_add(%arg0, %[[W:.*]])
// CHECK: %[[B:.*]] = call @fused_add(%[[A]], %[[W]])
// CHECK: call @fused_multiply(%[[B]])
// TE: func.func private @fused_add
// TE: linalg.generic
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = "relay.constant"() {value = "w", shape = array<i64: 4>, dtype = "float32"} : () -> tensor<4xf32>
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %a = "relay.fused"() ({
    %r = "relay.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%r) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  %b = "relay.fused"() ({
    %r = "relay.add"(%a, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%r) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  %c = "relay.fused"() ({
    %r = "relay.multiply"(%b, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    "relay.yield"(%r) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

// The same operation is another function where other arguments are parameters.
// CHECK-DAG: func.func private @fused_add(%arg0: tensor<4xf32>, %arg1: tensor<4xf32> {relay.param})
// CHECK-DAG: func.func private @fused_add_1(%arg0: tensor<4xf32> {relay.param}, %arg1: tensor<4xf32>) -> tensor<4xf32> attributes
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = "relay.constant"() {value = "w", shape = array<i64: 4>, dtype = "float32"} : () -> tensor<4xf32>
  %a = "relay.fused"() ({
    %r = "relay.add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%r) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  %b = "relay.fused"() ({
    %r = "relay.add"(%w, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%r) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// A group that gives a tuple is a function that gives one, and in the te stage one of two tensors. A group in a branch is outlined too.
// CHECK: func.func private @fused_{{.*}}() -> tensor<{{.*}}>
// CHECK: func.func private @fused_split(%arg0: tensor<4xf32>) -> tuple<tensor<2xf32>, tensor<2xf32>>
// TE: func.func private @fused_split(%arg0: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<2xf32> {
  %t = "relay.fused"() ({
    %r = "relay.split"(%x) {indices_or_sections = 2 : i64, axis = 0 : i64} : (tensor<4xf32>) -> tuple<tensor<2xf32>, tensor<2xf32>>
    "relay.yield"(%r) : (tuple<tensor<2xf32>, tensor<2xf32>>) -> ()
  }) : () -> tuple<tensor<2xf32>, tensor<2xf32>>
  %a = "relay.tuple_get_item"(%t) {index = 1 : i64} : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
  %r = "relay.if"(%c) ({
    "relay.yield"(%a) : (tensor<2xf32>) -> ()
  }, {
    %o = "relay.fused"() ({
      %z = "relay.zeros"() {shape = array<i64: 2>, dtype = "float32"} : () -> tensor<2xf32>
      "relay.yield"(%z) : (tensor<2xf32>) -> ()
    }) : () -> tensor<2xf32>
    "relay.yield"(%o) : (tensor<2xf32>) -> ()
  }) : (tensor<i1>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
