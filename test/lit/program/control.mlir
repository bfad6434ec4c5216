// RUN: relayc-opt %s --passes te-to-tir --split-input-file | filecheck %s

// Branches become blocks without arguments: both write what the branch gives where the function returns it. Tensors of the two branches
// share memory.
// CHECK-LABEL: func.func @branch
// CHECK-SAME: %arg2: memref<4xf32>, %arg3: memref<64xi8>, %arg4: memref<64xi8>)
// CHECK: %[[E:.*]] = memref.load %arg1[] : memref<i8>
// CHECK: %[[P:.*]] = arith.trunci %[[E]] : i8 to i1
// CHECK: cf.cond_br %[[P]], ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK: ^[[THEN]]:
// CHECK: %[[T:.*]] = memref.view %arg3[%c0
// CHECK: call @k(%arg0, %[[T]])
// CHECK: call @k(%{{.*}}, %arg2)
// CHECK: cf.br ^[[END:.*]]
// CHECK: ^[[ELSE]]:
// CHECK: %[[T:.*]] = memref.view %arg3[%c0
// CHECK: call @j(%arg0, %[[T]])
// CHECK: call @j(%{{.*}}, %arg2)
// CHECK: cf.br ^[[END]]
// CHECK: ^[[END]]:
// CHECK-NEXT: return
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @j(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.mul ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @branch(%x: tensor<4xf32>, %c: tensor<i8>) -> tensor<4xf32> {
  %e = tensor.extract %c[] : tensor<i8>
  %p = arith.trunci %e : i8 to i1
  %r = scf.if %p -> (tensor<4xf32>) {
    %0 = func.call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %0 = func.call @j(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @j(%0) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A loop: the condition is computed in a block of its own, and what is carried stays where it is. %w, from before the loop, is alive until the
// loop ends: the tensors of the loop (%c, %0) lie beside it, one in the place of the other.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: %arg1: memref<4xf32>, %arg2: memref<128xi8>,
// CHECK: %[[W:.*]] = memref.view %arg2[%[[AT:.*]]][] : memref<128xi8> to memref<4xf32>
// CHECK: call @k(%arg0, %[[W]])
// CHECK: call @k(%arg0, %arg1)
// CHECK: cf.br ^[[TEST:.*]]
// CHECK: ^[[TEST]]:
// CHECK: call @positive(%arg1, %[[C:.*]])
// CHECK: memref.load
// CHECK: cf.cond_br %{{.*}}, ^[[BODY:.*]], ^[[END:.*]]
// CHECK: ^[[BODY]]:
// CHECK: call @add(%arg1, %{{.*}}, %{{.*}})
// CHECK: call @k(%{{.*}}, %arg1)
// CHECK: cf.br ^[[TEST]]
// CHECK: ^[[END]]:
// CHECK-NEXT: return
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @add(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @positive(%x: tensor<4xf32>) -> tensor<i8> {
  %i = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %0 = tensor.extract %x[%i] : tensor<4xf32>
  %1 = arith.cmpf ogt, %0, %z : f32
  %2 = arith.extui %1 : i1 to i8
  %e = tensor.empty() : tensor<i8>
  %3 = tensor.insert %2 into %e[] : tensor<i8>
  return %3 : tensor<i8>
}
func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %i = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %r = scf.while (%a = %i) : (tensor<4xf32>) -> tensor<4xf32> {
    %c = func.call @positive(%a) : (tensor<4xf32>) -> tensor<i8>
    %e = tensor.extract %c[] : tensor<i8>
    %p = arith.trunci %e : i8 to i1
    scf.condition(%p) %a : tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>):
    %0 = func.call @add(%a, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
