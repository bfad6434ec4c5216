// RUN: relayc-opt %s --passes combine-parallel-dense,combine-parallel-conv2d | filecheck %s

// Products and convolutions of one symbolic tensor become one, and slices of its channels.
// CHECK-LABEL: func.func @dense
// CHECK: "relay.nn_dense"(%arg0, %{{.*}} : (tensor<?x?x4xf32, ["b", "s"]>, tensor<12x4xf32>) -> tensor<?x?x12xf32, ["b", "s"]>
// CHECK-NOT: nn_dense
// CHECK: "relay.strided_slice"({{.*}}begin = array<i64: 4>, end = array<i64: 8>{{.*}} -> tensor<?x?x4xf32, ["b", "s"]>
func.func @dense(%x: tensor<?x?x4xf32, ["b", "s"]>) -> (tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>) {
  %u = "relay.constant"() {value = dense<1.0> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %v = "relay.constant"() {value = dense<2.0> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %w = "relay.constant"() {value = dense<3.0> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %0 = "relay.nn_dense"(%x, %u) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<4x4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
  %1 = "relay.nn_dense"(%x, %v) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<4x4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
  %2 = "relay.nn_dense"(%x, %w) : (tensor<?x?x4xf32, ["b", "s"]>, tensor<4x4xf32>) -> tensor<?x?x4xf32, ["b", "s"]>
  return %0, %1, %2 : tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>, tensor<?x?x4xf32, ["b", "s"]>
}

// CHECK-LABEL: func.func @conv
// CHECK: "relay.nn_conv2d"(%arg0, %{{.*}} -> tensor<?x6x?x?xf32, ["n", "h", "w"]>
// CHECK-NOT: nn_conv2d
// CHECK: "relay.add"({{.*}}tensor<1x6x1x1xf32>) -> tensor<?x6x?x?xf32, ["n", "h", "w"]>
// CHECK: "relay.strided_slice"({{.*}}begin = array<i64: 2>, end = array<i64: 4>{{.*}} -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
func.func @conv(%x: tensor<?x4x?x?xf32, ["n", "h", "w"]>) -> (tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<?x2x?x?xf32, ["n", "h", "w"]>) {
  %u = "relay.constant"() {value = dense<1.0> : tensor<2x4x1x1xf32>} : () -> tensor<2x4x1x1xf32>
  %v = "relay.constant"() {value = dense<2.0> : tensor<2x4x1x1xf32>} : () -> tensor<2x4x1x1xf32>
  %w = "relay.constant"() {value = dense<3.0> : tensor<2x4x1x1xf32>} : () -> tensor<2x4x1x1xf32>
  %b = "relay.constant"() {value = dense<0.5> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %0 = "relay.nn_conv2d"(%x, %u) : (tensor<?x4x?x?xf32, ["n", "h", "w"]>, tensor<2x4x1x1xf32>) -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
  %1 = "relay.nn_conv2d"(%x, %v) : (tensor<?x4x?x?xf32, ["n", "h", "w"]>, tensor<2x4x1x1xf32>) -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
  %2 = "relay.nn_conv2d"(%x, %w) : (tensor<?x4x?x?xf32, ["n", "h", "w"]>, tensor<2x4x1x1xf32>) -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
  %3 = "relay.add"(%0, %b) : (tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<2x1x1xf32>) -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
  %4 = "relay.add"(%1, %b) : (tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<2x1x1xf32>) -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
  %5 = "relay.add"(%2, %b) : (tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<2x1x1xf32>) -> tensor<?x2x?x?xf32, ["n", "h", "w"]>
  return %3, %4, %5 : tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<?x2x?x?xf32, ["n", "h", "w"]>, tensor<?x2x?x?xf32, ["n", "h", "w"]>
}
