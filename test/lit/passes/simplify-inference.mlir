// RUN: relayc-opt %s --passes simplify-inference,fold-constant --split-input-file | filecheck %s

// batch_norm with constant statistics: one multiplication, one addition. scale = 2 / sqrt(4), shift = 0.5 - 3 * scale.
// CHECK-LABEL: func.func @batch_norm
// CHECK: %[[SCALE:.*]] = "relay.constant"() {value = dense<1.000000e+00> : tensor<2x1x1xf32>}
// CHECK: %[[MUL:.*]] = "relay.multiply"(%arg0, %[[SCALE]])
// CHECK: %[[SHIFT:.*]] = "relay.constant"() {value = dense<-2.500000e+00> : tensor<2x1x1xf32>}
// CHECK: %[[ADD:.*]] = "relay.add"(%[[MUL]], %[[SHIFT]])
// CHECK: return %[[ADD]]
func.func @batch_norm(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %gamma = "relay.constant"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %beta = "relay.constant"() {value = dense<0.5> : tensor<2xf32>} : () -> tensor<2xf32>
  %mean = "relay.constant"() {value = dense<3.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %var = "relay.constant"() {value = dense<4.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %0:3 = "relay.nn_batch_norm"(%x, %gamma, %beta, %mean, %var) {epsilon = 0.0} : (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<1x2x4x4xf32>
}

// -----

// Without scale and center, gamma and beta are not read; the last axis needs no expansion.
// CHECK-LABEL: func.func @batch_norm_without_affine
// CHECK-NOT: relay.expand_dims
// CHECK: "relay.sqrt"
// CHECK: "relay.divide"(%{{.*}}, %{{.*}}) : (tensor<f32>, tensor<2xf32>)
// CHECK: "relay.multiply"(%arg0, %{{.*}}) : (tensor<4x2xf32>, tensor<2xf32>)
// CHECK-NOT: %arg1
func.func @batch_norm_without_affine(%x: tensor<4x2xf32>, %v: tensor<2xf32>, %mean: tensor<2xf32>, %var: tensor<2xf32>) -> tensor<4x2xf32> {
  %0:3 = "relay.nn_batch_norm"(%x, %v, %v, %mean, %var) {center = false, scale = false} : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<4x2xf32>
}

// -----

// dropout is its operand; a copy too.
// CHECK-LABEL: func.func @dropout
// CHECK-NEXT: return %arg0
func.func @dropout(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = "relay.nn_dropout"(%x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %1 = "relay.copy"(%0#0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// So is one of unknown sizes; its mask, where used, is not written out.
// CHECK-LABEL: func.func @dropout_of_unknown_sizes
// CHECK-NEXT: relay.nn_dropout
func.func @dropout_of_unknown_sizes(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0:2 = "relay.nn_dropout"(%x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %0#1 : tensor<?xf32>
}

// -----

// The mask of a dropout, where used, is ones.
// CHECK-LABEL: func.func @dropout_mask
// CHECK: "relay.constant"() {value = dense<1.000000e+00> : tensor<8xf32>}
// CHECK-NEXT: return
func.func @dropout_mask(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = "relay.nn_dropout"(%x) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#1 : tensor<8xf32>
}
