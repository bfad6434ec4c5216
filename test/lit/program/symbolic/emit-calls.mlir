// RUN: relayc-opt %s --passes emit-calls | filecheck %s

// A requirement is a branch to an error, as is an allocation that finds no memory. What a branch gives of a call that may fail are the
// values that this call gives.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (i32, memref<?xi8>, index {relay.symbol = "m"})
// CHECK: %[[P:.*]] = arith.trunci
// CHECK: cf.cond_br %[[P]], ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK: ^[[THEN]]:
// CHECK: %[[ENOUGH:.*]] = arith.cmpi sge, %arg2, %c1
// CHECK: cf.cond_br %[[ENOUGH]], ^[[GO:.*]], ^[[BAD:.*]]
// CHECK: ^[[ELSE]]:
// CHECK: %[[H:.*]] = memref.alloc(%arg2) {relay.heap}
// CHECK: cf.cond_br %{{.*}}, ^[[THERE:.*]], ^{{.*}}
// CHECK: ^[[AFTER:.*]](%[[R:.*]]: memref<?xi8>, %[[M:.*]]: index):
// CHECK: return %{{.*}}, %[[R]], %[[M]] : i32, memref<?xi8>, index
// CHECK: ^[[GO]]:
// CHECK: %[[MADE:.*]]:3 = call @inner
// CHECK: cf.cond_br %{{.*}}, ^[[FAILED:.*]], ^[[GOOD:.*]]
// CHECK: ^[[BAD]]:
// CHECK: call @main_error(%arg2)
// CHECK: cf.br ^[[FAILED]]
// CHECK: ^[[FAILED]]:
// CHECK: %[[MINUS:.*]] = arith.constant -1
// CHECK: return %[[MINUS]]
// CHECK: ^[[GOOD]]:
// CHECK: cf.br ^[[AFTER]](%[[MADE]]#1, %[[MADE]]#2
// CHECK: ^[[THERE]]:
// CHECK: cf.br ^[[AFTER]](%[[H]], %arg2
func.func private @inner(%n: index {relay.symbol = "n"}, %arena: memref<64xi8>, %params: memref<64xi8>) -> (memref<?xi8>, index {relay.symbol = "m"}) attributes {relay.program, relay.tensors = () -> tensor<?xi8, ["m"]>} {
  %a = memref.alloc(%n) {relay.heap} : memref<?xi8>
  return %a, %n : memref<?xi8>, index
}
func.func @main(%c: memref<i8>, %x: memref<?xi8>, %n: index {relay.symbol = "n"}, %arena: memref<64xi8>, %params: memref<64xi8>) -> (memref<?xi8>, index {relay.symbol = "m"}) attributes {relay.tensors = (tensor<i1>, tensor<?xi8, ["n"]>) -> tensor<?xi8, ["m"]>} {
  %one = arith.constant 1 : index
  %e = memref.load %c[] : memref<i8>
  %p = arith.trunci %e : i8 to i1
  %r:2 = scf.if %p -> (memref<?xi8>, index) {
    "relay.require"(%n, %one) {message = "n: expected 1 or more, found %lld", predicate = "ge"} : (index, index) -> ()
    %m:2 = func.call @inner(%n, %arena, %params) : (index, memref<64xi8>, memref<64xi8>) -> (memref<?xi8>, index)
    scf.yield %m#0, %m#1 : memref<?xi8>, index
  } else {
    %a = memref.alloc(%n) {relay.heap} : memref<?xi8>
    scf.yield %a, %n : memref<?xi8>, index
  }
  return %r#0, %r#1 : memref<?xi8>, index
}
