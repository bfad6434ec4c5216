// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,materialize-results | filecheck %s
// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,materialize-results,te-to-tir

// The inner loop begins with a copy of the outer loop's argument %b, and gives the next %b: the copy reads %b where it would write it, so
// that the result is copied once more. Copies of symbolic sizes read their operand through a cast.
// CHECK: scf.while (%{{.*}} = %{{.*}}, %[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK: } do {
// CHECK: %[[SAME:.*]] = tensor.cast %[[B]]
// CHECK: %[[COPY:.*]] = func.call @fused_copy_1(%[[SAME]]
// CHECK: %[[INNER:.*]]:4 = scf.while
// CHECK: %[[GIVEN:.*]] = tensor.cast %[[INNER]]#3
// CHECK: %[[LAST:.*]] = func.call @fused_copy_1(%[[GIVEN]]
// CHECK: %[[NEXT:.*]] = tensor.cast %[[LAST]]
// CHECK: scf.yield %{{.*}}, %[[A]], %[[NEXT]]
func.func @main(%c0: tensor<i32>, %x: tensor<?x31xf32, ["n"]>, %m: tensor<i32>) -> tensor<?x31xf32, ["n"]> {
  %init = builtin.unrealized_conversion_cast %c0, %x, %x : tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]> to tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>
  %0 = "relay.while"(%init) ({
  ^bb0(%c: tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>):
    %i = "relay.tuple_get_item"(%c) {index = 0} : (tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<i32>
    %1 = "relay.less"(%i, %m) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "relay.yield"(%1) : (tensor<i1>) -> ()
  }, {
  ^bb0(%c: tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>):
    %i = "relay.tuple_get_item"(%c) {index = 0} : (tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<i32>
    %a = "relay.tuple_get_item"(%c) {index = 1} : (tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<?x31xf32, ["n"]>
    %b = "relay.tuple_get_item"(%c) {index = 2} : (tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<?x31xf32, ["n"]>
    %init2 = builtin.unrealized_conversion_cast %c0, %i, %x, %b : tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]> to tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>
    %2 = "relay.while"(%init2) ({
    ^bb0(%d: tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>):
      %j = "relay.tuple_get_item"(%d) {index = 0} : (tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<i32>
      %3 = "relay.less"(%j, %m) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "relay.yield"(%3) : (tensor<i1>) -> ()
    }, {
    ^bb0(%d: tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>):
      %j = "relay.tuple_get_item"(%d) {index = 0} : (tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<i32>
      %e = "relay.tuple_get_item"(%d) {index = 2} : (tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<?x31xf32, ["n"]>
      %f = "relay.tuple_get_item"(%d) {index = 3} : (tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<?x31xf32, ["n"]>
      %g = "relay.add"(%e, %f) : (tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>) -> tensor<?x31xf32, ["n"]>
      %one = "relay.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %k = "relay.add"(%j, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %next2 = builtin.unrealized_conversion_cast %k, %k, %g, %g : tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]> to tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>
      "relay.yield"(%next2) : (tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> ()
    }) : (tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>
    %h = "relay.tuple_get_item"(%2) {index = 3} : (tuple<tensor<i32>, tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<?x31xf32, ["n"]>
    %one = "relay.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %l = "relay.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %next = builtin.unrealized_conversion_cast %l, %a, %h : tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]> to tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>
    "relay.yield"(%next) : (tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> ()
  }) : (tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>
  %r = "relay.tuple_get_item"(%0) {index = 1} : (tuple<tensor<i32>, tensor<?x31xf32, ["n"]>, tensor<?x31xf32, ["n"]>>) -> tensor<?x31xf32, ["n"]>
  return %r : tensor<?x31xf32, ["n"]>
}
