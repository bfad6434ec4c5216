// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// Known dimensions reach the results, and the signature.
// CHECK-LABEL: func.func @signature
// CHECK-SAME: (%arg0: tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK: "relay.exp"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK: "relay.transpose"{{.*}} -> tensor<3x2xf32>
// CHECK: return {{.*}} : tensor<3x2xf32>
func.func @signature(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  %0 = "relay.exp"(%x) : (tensor<2x3xf32>) -> tensor<?x3xf32>
  %1 = "relay.transpose"(%0) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// What the program says beyond the type relation says what a size of an argument is, of which nothing else is known.
// CHECK-LABEL: func.func @refined(%arg0: tensor<2x3xf32>)
// CHECK: "relay.exp"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @refined(%x: tensor<?x3xf32>) -> tensor<2x3xf32> {
  %0 = "relay.exp"(%x) : (tensor<?x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Types reach into fusion groups and out of them.
// CHECK-LABEL: func.func @group
// CHECK: "relay.yield"(%{{.*}}) : (tensor<4xf32>) -> ()
func.func @group(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.fused"() ({
    %1 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<?xf32>
    "relay.yield"(%1) : (tensor<?xf32>) -> ()
  }) : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Results of a call are those of its callee, whose arguments are what all its calls agree on.
// CHECK-LABEL: func.func private @callee(%arg0: tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK: func.func @caller(%arg0: tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK: call @callee(%arg0) : (tensor<2x3xf32>) -> tensor<3x2xf32>
func.func private @callee(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  %0 = "relay.transpose"(%x) : (tensor<2x3xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @caller(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  %0 = call @callee(%x) : (tensor<2x3xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A loop carries on the type that it begins with; a tuple has the types of its fields.
// CHECK-LABEL: func.func @loop
// CHECK: ^bb0(%arg2: tuple<tensor<i1>, tensor<4xf32>>):
// CHECK: "relay.tuple_get_item"(%{{.*}}) {index = 1 : i64} : (tuple<tensor<i1>, tensor<4xf32>>) -> tensor<4xf32>
func.func @loop(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<?xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<?xf32>
  %1 = builtin.unrealized_conversion_cast %c, %0 : tensor<i1>, tensor<?xf32> to tuple<tensor<i1>, tensor<?xf32>>
  %2 = "relay.while"(%1) ({
  ^bb0(%s: tuple<tensor<i1>, tensor<?xf32>>):
    %3 = "relay.tuple_get_item"(%s) {index = 0} : (tuple<tensor<i1>, tensor<?xf32>>) -> tensor<i1>
    "relay.yield"(%3) : (tensor<i1>) -> ()
  }, {
  ^bb0(%s: tuple<tensor<i1>, tensor<?xf32>>):
    "relay.yield"(%s) : (tuple<tensor<i1>, tensor<?xf32>>) -> ()
  }) : (tuple<tensor<i1>, tensor<?xf32>>) -> tuple<tensor<i1>, tensor<?xf32>>
  %4 = "relay.tuple_get_item"(%2) {index = 1} : (tuple<tensor<i1>, tensor<?xf32>>) -> tensor<?xf32>
  return %4 : tensor<?xf32>
}
