// RUN: relayc-opt %s --passes emit-calls --split-input-file | filecheck %s

// A branch and a loop become blocks. A packed function gives a status; a program that calls it gives one too. Globals of parameters are gone.
// CHECK-NOT: memref.global
// CHECK: func.func private @p(memref<4xf32>) -> i32
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> i32
// CHECK: %[[P:.*]] = arith.trunci
// CHECK: cf.cond_br %[[P]], ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK: ^[[THEN]]:
// CHECK: %[[S:.*]] = call @p(%arg1)
// CHECK: %[[BAD:.*]] = arith.cmpi ne, %[[S]]
// CHECK: cf.cond_br %[[BAD]], ^[[FAILED:.*]], ^[[GOOD:.*]]
// CHECK: ^[[ELSE]]:
// CHECK: cf.br ^[[AFTER:.*]]
// CHECK: ^[[AFTER]]:
// CHECK: cf.br ^[[TEST:.*]]
// CHECK: ^[[GOOD]]:
// CHECK: cf.br ^[[AFTER]]
// CHECK: ^[[FAILED]]:
// CHECK: %[[MINUS:.*]] = arith.constant -1
// CHECK: return %[[MINUS]]
// CHECK: ^[[TEST]]:
// CHECK: %[[Q:.*]] = arith.trunci
// CHECK: cf.cond_br %[[Q]], ^[[BODY:.*]], ^[[END:.*]]
// CHECK: ^[[BODY]]:
// CHECK: call @k(%arg1)
// CHECK: cf.br ^[[TEST]]
// CHECK: ^[[END]]:
// CHECK: return %c0
memref.global "private" @w : memref<4xf32> {relay.offset = 0 : i64, relay.param = "w"}
func.func private @p(memref<4xf32>) attributes {relay.packed = "my.function", relay.tensors = () -> tensor<4xf32>}
func.func private @k(%y: memref<4xf32>) attributes {relay.bytes = 16 : i64, relay.flops = 0 : i64, relay.schedule = "tir", relay.tensors = () -> tensor<4xf32>} {
  return
}
func.func @main(%c: memref<i8>, %y: memref<4xf32>, %arena: memref<64xi8>, %params: memref<64xi8>) attributes {relay.tensors = (tensor<i1>) -> tensor<4xf32>} {
  %e = memref.load %c[] : memref<i8>
  %p = arith.trunci %e : i8 to i1
  scf.if %p {
    func.call @p(%y) : (memref<4xf32>) -> ()
  }
  scf.while : () -> () {
    %f = memref.load %c[] : memref<i8>
    %q = arith.trunci %f : i8 to i1
    scf.condition(%q)
  } do {
    func.call @k(%y) : (memref<4xf32>) -> ()
    scf.yield
  }
  return
}

// -----

// A kernel that asks which way to go takes it as one more argument where a loop calls it: the loop carries it, and turns it. Called by its
// own name it goes forwards.
// CHECK: func.func private @k.turn(%arg0: memref<4xi64>, %arg1: index)
// CHECK-NEXT: %[[WAY:.*]] = arith.index_cast %arg1
// CHECK-NEXT: memref.store %[[WAY]]
// CHECK: func.func private @k(%arg0: memref<4xi64>)
// CHECK-NEXT: %[[FORWARDS:.*]] = arith.constant 0
// CHECK-NEXT: call @k.turn(%arg0, %[[FORWARDS]])
// CHECK-NEXT: return
// CHECK-LABEL: func.func @main
// CHECK: call @k(%arg1)
// CHECK: %[[FIRST:.*]] = arith.constant 0
// CHECK: cf.br ^[[TEST:.*]](%[[FIRST]] : index)
// CHECK: ^[[TEST]](%[[TURN:.*]]: index):
// CHECK: call @k.turn(%arg1, %[[TURN]])
// CHECK: %[[NEXT:.*]] = arith.xori %[[TURN]]
// CHECK: cf.br ^[[TEST]](%[[NEXT]] : index)
func.func private @k(%y: memref<4xi64>) attributes {relay.bytes = 32 : i64, relay.flops = 0 : i64, relay.schedule = "tir", relay.tensors = () -> tensor<4xi64>, relay.turns} {
  %way = arith.constant {relay.turns} 0 : index
  %0 = arith.index_cast %way : index to i64
  memref.store %0, %y[%way] : memref<4xi64>
  return
}
func.func @main(%c: memref<i8>, %y: memref<4xi64>, %arena: memref<64xi8>, %params: memref<64xi8>) attributes {relay.tensors = (tensor<i1>) -> tensor<4xi64>} {
  func.call @k(%y) : (memref<4xi64>) -> ()
  scf.while : () -> () {
    %f = memref.load %c[] : memref<i8>
    %q = arith.trunci %f : i8 to i1
    scf.condition(%q)
  } do {
    func.call @k(%y) : (memref<4xi64>) -> ()
    scf.yield
  }
  return
}
