// RUN: relayc-opt %s --passes check-indices | filecheck %s

// One pass over the indices as they lie in memory, once for the axis of two tables of the same size.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = "relay.worst_index"(%arg1) {size = "n", times = {{.*}}} : (tensor<?xi32, ["k"]>) -> tensor<i64>
// CHECK-NEXT: "relay.check_index"(%[[W]]) {size = "n", what = "axis 0 of tensor<?x4xf32, [\22n\22]>"}
// CHECK-NOT: worst_index
// CHECK: relay.take
// CHECK: relay.take
// Positions are checked by the sizes that they follow from.
// CHECK-NEXT: "relay.arange"
// CHECK-NEXT: "relay.check_sizes"() {expected = "max(1, n) - 1", found = "k*min(1, k) - min(1, k)", message = {{.*}}, predicate = "le"}
// CHECK-NEXT: relay.take
// Nothing is asked where the range is proved, or the operator says what an index out of range is.
// CHECK-NEXT: relay.argmax
// CHECK-NEXT: relay.take
// CHECK-NEXT: relay.take
func.func @main(%x: tensor<?x4xf32, ["n"]>, %i: tensor<?xi32, ["k"]>, %y: tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["k"]> {
  %0 = "relay.cast"(%i) {dtype = "int64"} : (tensor<?xi32, ["k"]>) -> tensor<?xi64, ["k"]>
  %1 = "relay.take"(%x, %0) {axis = 0 : i64, mode = "raise"} : (tensor<?x4xf32, ["n"]>, tensor<?xi64, ["k"]>) -> tensor<?x4xf32, ["k"]>
  %2 = "relay.take"(%y, %0) {axis = 0 : i64, mode = "raise"} : (tensor<?x4xf32, ["n"]>, tensor<?xi64, ["k"]>) -> tensor<?x4xf32, ["k"]>
  %3 = "relay.arange"() {start = 0.0 : f64, stop = "k", step = 1.0 : f64, dtype = "int64"} : () -> tensor<?xi64, ["k"]>
  %4 = "relay.take"(%x, %3) {axis = 0 : i64, mode = "raise"} : (tensor<?x4xf32, ["n"]>, tensor<?xi64, ["k"]>) -> tensor<?x4xf32, ["k"]>
  %5 = "relay.argmax"(%x) {axis = array<i64: 1>} : (tensor<?x4xf32, ["n"]>) -> tensor<?xi32, ["n"]>
  %6 = "relay.take"(%4, %5) {axis = 1 : i64, mode = "raise"} : (tensor<?x4xf32, ["k"]>, tensor<?xi32, ["n"]>) -> tensor<?x?xf32, ["k", "n"]>
  %7 = "relay.take"(%x, %0) {axis = 0 : i64, mode = "clip"} : (tensor<?x4xf32, ["n"]>, tensor<?xi64, ["k"]>) -> tensor<?x4xf32, ["k"]>
  return %7 : tensor<?x4xf32, ["k"]>
}

// The least index is as low as an axis of 4 has: only the largest is checked.
// CHECK-LABEL: func.func @least
// CHECK-NEXT: relay.arange
// CHECK-NEXT: "relay.check_sizes"() {{.*}}predicate = "le"}
// CHECK-NEXT: relay.take
func.func @least(%x: tensor<4x3xf32>, %y: tensor<?xf32, ["k"]>) -> tensor<?x3xf32, ["k"]> {
  %0 = "relay.arange"() {start = -4.0 : f64, stop = "k - 4", step = 1.0 : f64, dtype = "int64"} : () -> tensor<?xi64, ["k"]>
  %1 = "relay.take"(%x, %0) {axis = 0 : i64, mode = "raise"} : (tensor<4x3xf32>, tensor<?xi64, ["k"]>) -> tensor<?x3xf32, ["k"]>
  return %1 : tensor<?x3xf32, ["k"]>
}

// The same indices are checked once for each size.
// CHECK-LABEL: func.func @tables
// CHECK: "relay.check_index"({{.*}}) {size = "n", {{.*}}
// CHECK: relay.take
// CHECK: "relay.check_index"({{.*}}) {size = "m", {{.*}}
// CHECK: relay.take
func.func @tables(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>, %i: tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>) {
  %0 = "relay.take"(%x, %i) {axis = 0 : i64, mode = "raise"} : (tensor<?xf32, ["n"]>, tensor<5xi64>) -> tensor<5xf32>
  %1 = "relay.take"(%y, %i) {axis = 0 : i64, mode = "raise"} : (tensor<?xf32, ["m"]>, tensor<5xi64>) -> tensor<5xf32>
  return %0, %1 : tensor<5xf32>, tensor<5xf32>
}
