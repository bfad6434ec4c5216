// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// A branch becomes scf.if, a loop scf.while; tuples are values of their own; one number is in the code of the kernel that uses it.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tuple
// CHECK: %[[W:.*]]:2 = scf.while (%[[I:.*]] = %arg0, %[[X:.*]] = %arg1) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
// CHECK-NEXT: %[[L:.*]] = func.call @fused_less(%[[I]])
// CHECK-NEXT: %[[E:.*]] = tensor.extract %[[L]][] : tensor<i8>
// CHECK-NEXT: %[[C:.*]] = arith.trunci %[[E]] : i8 to i1
// CHECK-NEXT: scf.condition(%[[C]]) %[[I]], %[[X]]
// CHECK: ^bb0(%[[J:.*]]: tensor<i32>, %[[Y:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[N:.*]] = func.call @fused_add(%[[J]])
// CHECK: scf.if
// CHECK-NEXT: %[[T:.*]] = func.call @fused_exp(%[[Y]])
// CHECK-NEXT: scf.yield %[[T]]
// CHECK: else
// CHECK-NEXT: scf.yield %[[Y]]
// CHECK: scf.yield %[[N]], %{{.*}} : tensor<i32>, tensor<4xf32>
// CHECK: return %[[W]]#1
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %0 = builtin.unrealized_conversion_cast %n, %x : tensor<i32>, tensor<4xf32> to tuple<tensor<i32>, tensor<4xf32>>
  %1 = "relay.while"(%0) ({
  ^bb0(%s: tuple<tensor<i32>, tensor<4xf32>>):
    %3 = "relay.tuple_get_item"(%s) {index = 0} : (tuple<tensor<i32>, tensor<4xf32>>) -> tensor<i32>
    %k = "relay.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %4 = "relay.less"(%3, %k) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "relay.yield"(%4) : (tensor<i1>) -> ()
  }, {
  ^bb0(%s: tuple<tensor<i32>, tensor<4xf32>>):
    %3 = "relay.tuple_get_item"(%s) {index = 0} : (tuple<tensor<i32>, tensor<4xf32>>) -> tensor<i32>
    %4 = "relay.tuple_get_item"(%s) {index = 1} : (tuple<tensor<i32>, tensor<4xf32>>) -> tensor<4xf32>
    %k = "relay.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %5 = "relay.add"(%3, %k) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %6 = "relay.if"(%c) ({
      %8 = "relay.exp"(%4) : (tensor<4xf32>) -> tensor<4xf32>
      "relay.yield"(%8) : (tensor<4xf32>) -> ()
    }, {
      "relay.yield"(%4) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    %7 = builtin.unrealized_conversion_cast %5, %6 : tensor<i32>, tensor<4xf32> to tuple<tensor<i32>, tensor<4xf32>>
    "relay.yield"(%7) : (tuple<tensor<i32>, tensor<4xf32>>) -> ()
  }) : (tuple<tensor<i32>, tensor<4xf32>>) -> tuple<tensor<i32>, tensor<4xf32>>
  %2 = "relay.tuple_get_item"(%1) {index = 1} : (tuple<tensor<i32>, tensor<4xf32>>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Functions of the program stay functions, the private ones marked; tuples among their arguments are arguments of their own.
// CHECK-LABEL: func.func private @pair(%arg0: tensor<4xf32> {relay.name = "p.0"}, %arg1: tensor<i8> {relay.name = "p.1"}) -> (tensor<i8>, tensor<4xf32>)
// CHECK-SAME: relay.input_dtypes = ["float32", "uint8"]
// CHECK-SAME: relay.program
// CHECK-NEXT: return %arg1, %arg0
// CHECK-LABEL: func.func @main
// CHECK-NOT: relay.program
// CHECK: %[[R:.*]]:2 = call @pair(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]#1
func.func private @pair(%p: tuple<tensor<4xf32>, tensor<ui8>> {relay.name = "p"}) -> tuple<tensor<ui8>, tensor<4xf32>> {
  %0 = "relay.tuple_get_item"(%p) {index = 0} : (tuple<tensor<4xf32>, tensor<ui8>>) -> tensor<4xf32>
  %1 = "relay.tuple_get_item"(%p) {index = 1} : (tuple<tensor<4xf32>, tensor<ui8>>) -> tensor<ui8>
  %2 = builtin.unrealized_conversion_cast %1, %0 : tensor<ui8>, tensor<4xf32> to tuple<tensor<ui8>, tensor<4xf32>>
  return %2 : tuple<tensor<ui8>, tensor<4xf32>>
}
func.func @main(%x: tensor<4xf32>, %n: tensor<ui8>) -> tensor<4xf32> {
  %0 = builtin.unrealized_conversion_cast %x, %n : tensor<4xf32>, tensor<ui8> to tuple<tensor<4xf32>, tensor<ui8>>
  %1 = call @pair(%0) : (tuple<tensor<4xf32>, tensor<ui8>>) -> tuple<tensor<ui8>, tensor<4xf32>>
  %2 = "relay.tuple_get_item"(%1) {index = 1} : (tuple<tensor<ui8>, tensor<4xf32>>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A packed function is declared with the types that it sees; a function of the te stage is called as it is, one of the tir stage by its
// declaration.
// CHECK: func.func private @sort_tir(%arg0: memref<4xi8>, %arg1: memref<4xi8>) attributes {relay.stage = "tir"}
// CHECK: func.func private @double(%arg0: tensor<4xf32>) -> tensor<4xf32> attributes {relay.stage = "te"}
// CHECK-DAG: func.func private @norm(tensor<4xf32>) -> tensor<i8> attributes {relay.input_dtypes = ["float32"], relay.output_dtypes = ["bool"], relay.packed = "my.norm"}
// CHECK-DAG: func.func private @sort(tensor<4xi8>) -> tensor<4xi8> attributes {relay.input_dtypes = ["uint8"], relay.output_dtypes = ["uint8"], relay.tir = @sort_tir}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[D:.*]] = call @double(%arg0)
// CHECK-NEXT: %[[N:.*]] = call @norm(%[[D]])
// CHECK-NEXT: %[[S:.*]] = call @sort(%arg1)
// CHECK-NEXT: return %[[N]], %[[S]]
func.func private @sort_tir(%x: memref<4xi8>, %y: memref<4xi8>) attributes {relay.stage = "tir"} {
  return
}
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> attributes {relay.stage = "te"} {
  return %x : tensor<4xf32>
}
func.func private @norm(tensor<4xf32>) -> tensor<i1> attributes {relay.packed = "my.norm"}
func.func private @twice(tensor<4xf32>) -> tensor<4xf32> attributes {relay.te = @double}
func.func private @sort(tensor<4xui8>) -> tensor<4xui8> attributes {relay.tir = @sort_tir}
func.func @main(%x: tensor<4xf32>, %u: tensor<4xui8>) -> (tensor<i1>, tensor<4xui8>) {
  %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @norm(%0) : (tensor<4xf32>) -> tensor<i1>
  %2 = call @sort(%u) : (tensor<4xui8>) -> tensor<4xui8>
  return %1, %2 : tensor<i1>, tensor<4xui8>
}

// -----

// A function that says that it is public is as public as one that says nothing.
// CHECK-LABEL: func.func @main
// CHECK-NOT: relay.program
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
