// RUN: relayc-opt %s --passes te-to-tir --config relay.max_recursion_depth=10 | filecheck %s

// Functions that call one another take how many calls may still nest. Each call passes on what follows the caller's own part of the arena (64
// bytes of f, 128 of g), so a call of f takes 64 + 10 * 128 bytes. Kernels are not inlined: their stack is not to nest.
// CHECK-DAG: func.func private @f_too_deep() attributes {relay.error = ["RecursionError", "f: expected at most 10 nested calls, found more"]}
// CHECK-DAG: func.func private @g_too_deep()
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> i32
// CHECK: %[[MOST:.*]] = arith.constant 10 : i64
// CHECK: %[[S:.*]] = call @f(%arg0, %arg1, %{{.*}}, %arg3, %[[MOST]])
// CHECK: %[[BAD:.*]] = arith.cmpi ne, %[[S]]
// CHECK: cf.cond_br %[[BAD]], ^[[FAILED:.*]], ^[[GOOD:.*]]
// CHECK: ^[[GOOD]]:
// CHECK: return %c0
// CHECK: ^[[FAILED]]:
// CHECK: return %c-1
// CHECK-LABEL: func.func private @f
// CHECK-SAME: %arg2: memref<1344xi8>, %arg3: memref<64xi8>, %arg4: i64) -> i32
// CHECK: call @k({{.*}}) {no_inline}
// CHECK: %[[AT:.*]] = arith.constant 64 : index
// CHECK: %[[REST:.*]] = memref.view %arg2[%[[AT]]][] : memref<1344xi8> to memref<1408xi8>
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %arg4, %c0
// CHECK: cf.cond_br %[[NONE]], ^[[DEEP:.*]], ^[[FURTHER:.*]]
// CHECK: ^[[DEEP]]:
// CHECK: call @g_too_deep()
// CHECK: ^[[FURTHER]]:
// CHECK: %[[LEFT:.*]] = arith.subi %arg4, %c1
// CHECK: call @g(%{{.*}}, %arg1, %[[REST]], %arg3, %[[LEFT]])
// CHECK-LABEL: func.func private @g
// CHECK-SAME: memref<1408xi8>
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {relay.program} {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @g(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {relay.program} {
  %0 = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @f(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
