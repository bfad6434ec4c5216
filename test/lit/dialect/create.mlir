// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.full"{{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: %{{.*}} = "relay.full"{{.*}} -> tensor<4xi8>
// CHECK-NEXT: %{{.*}} = "relay.zeros"() {dtype = "float32", shape = array<i64: 2>} : () -> tensor<2xf32>
// CHECK-NEXT: %{{.*}} = "relay.ones"{{.*}} -> tensor<i1>
// CHECK-NEXT: %{{.*}} = "relay.arange"{{.*}} -> tensor<4xf32>
// CHECK-NEXT: %{{.*}} = "relay.arange"{{.*}} -> tensor<3xi64>
// CHECK-NEXT: %{{.*}} = "relay.arange"{{.*}} -> tensor<0xi64>
// CHECK-NEXT: %{{.*}} = "relay.shape_of"{{.*}} -> tensor<3xi32>
func.func @main(%v: tensor<f32>, %x: tensor<?x3x?xf16>) {
  %0 = "relay.full"(%v) {shape = array<i64: 2, 3>} : (tensor<f32>) -> tensor<?x?xf32>
  %1 = "relay.full"(%v) {shape = array<i64: 4>, dtype = "int8"} : (tensor<f32>) -> tensor<?xi8>
  %2 = "relay.zeros"() {dtype = "float32", shape = array<i64: 2>} : () -> tensor<?xf32>
  %3 = "relay.ones"() {shape = array<i64>, dtype = "bool"} : () -> tensor<i1>
  %4 = "relay.arange"() {stop = 1.0, step = 0.3} : () -> tensor<?xf32>
  %5 = "relay.arange"() {start = 7.0, stop = 1.0, step = -2.0, dtype = "int64"} : () -> tensor<?xi64>
  %6 = "relay.arange"() {start = 7.0, stop = 1.0, dtype = "int64"} : () -> tensor<?xi64>
  %7 = "relay.shape_of"(%x) : (tensor<?x3x?xf16>) -> tensor<?xi32>
  return
}
