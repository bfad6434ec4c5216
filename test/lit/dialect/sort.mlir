// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// Sorting and scans keep the shape; topk cuts its axis to k.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.sort"{{.*}} -> tensor<3x?xf32, ["arg0_1"]>
// CHECK-NEXT: %{{.*}} = "relay.argsort"{{.*}} -> tensor<3x?xi64, ["arg0_1"]>
// CHECK-NEXT: %{{.*}} = "relay.argsort_rows"{{.*}} -> tensor<3xi64>
// CHECK-NEXT: %{{.*}} = "relay.topk"{{.*}} -> (tensor<2x?xf32, ["arg0_1"]>, tensor<2x?xi32, ["arg0_1"]>)
// CHECK-NEXT: %{{.*}} = "relay.topk"{{.*}} -> tensor<3x4xui16>
// CHECK-NEXT: %{{.*}} = "relay.topk"{{.*}} -> tensor<3x?xf32, ["arg0_1"]>
// CHECK-NEXT: %{{.*}} = "relay.cumsum"{{.*}} -> tensor<3x?xf32, ["arg0_1"]>
// CHECK-NEXT: %{{.*}} = "relay.cumprod"{{.*}} -> tensor<?xf64, ["3*arg0_1"]>
func.func @main(%x: tensor<3x?xf32>) {
  %0 = "relay.sort"(%x) : (tensor<3x?xf32>) -> tensor<?x?xf32>
  %1 = "relay.argsort"(%x) {dtype = "int64"} : (tensor<3x?xf32>) -> tensor<?x?xi64>
  %7 = "relay.argsort_rows"(%x) : (tensor<3x?xf32>) -> tensor<?xi64>
  %2:2 = "relay.topk"(%x) {k = 2, axis = 0} : (tensor<3x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
  %3 = "relay.topk"(%x) {k = 4, ret_type = "indices", dtype = "uint16"} : (tensor<3x?xf32>) -> tensor<?x?xui16>
  %4 = "relay.topk"(%x) {k = 0, ret_type = "values"} : (tensor<3x?xf32>) -> tensor<?x?xf32>
  %5 = "relay.cumsum"(%x) {axis = 1} : (tensor<3x?xf32>) -> tensor<?x?xf32>
  %6 = "relay.cumprod"(%x) {dtype = "float64"} : (tensor<3x?xf32>) -> tensor<?xf64>
  return
}
