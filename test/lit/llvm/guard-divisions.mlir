// RUN: relayc-opt %s --passes guard-divisions --split-input-file | filecheck %s

// An unsigned divisor of which nothing is known: 1 in place of 0.
// CHECK-LABEL: func.func @unsigned
// CHECK-SAME: (%[[A:.*]]: index, %[[B:.*]]: index)
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : index
// CHECK: %[[D:.*]] = arith.select %[[ZERO]], %{{.*}}, %[[B]] : index
// CHECK: arith.divui %[[A]], %[[D]] : index
func.func @unsigned(%a: index, %b: index) -> index {
  %0 = arith.divui %a, %b : index
  return %0 : index
}

// -----

// A signed one: the lowest integer divided by -1 traps too. Vectors are divided likewise.
// CHECK-LABEL: func.func @signed
// CHECK-SAME: (%[[A:.*]]: vector<4xi32>, %[[B:.*]]: vector<4xi32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : vector<4xi32>
// CHECK-DAG: %[[LOWEST:.*]] = arith.cmpi eq, %[[A]], %{{.*}} : vector<4xi32>
// CHECK-DAG: %[[MINUS:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : vector<4xi32>
// CHECK: %[[OVER:.*]] = arith.andi %[[LOWEST]], %[[MINUS]]
// CHECK: %[[TRAPS:.*]] = arith.ori %[[ZERO]], %[[OVER]]
// CHECK: %[[D:.*]] = arith.select %[[TRAPS]], %{{.*}}, %[[B]]
// CHECK: arith.remsi %[[A]], %[[D]]
func.func @signed(%a: vector<4xi32>, %b: vector<4xi32>) -> vector<4xi32> {
  %0 = arith.remsi %a, %b : vector<4xi32>
  return %0 : vector<4xi32>
}

// -----

// Divisors that are proven safe stay: constants, sizes of at least 1, and those that a select has made safe.
// CHECK-LABEL: func.func @proven
// CHECK-NOT: arith.cmpi
// CHECK-NOT: arith.select
// CHECK: return
func.func @proven(%a: index, %n: index, %x: i32) -> (index, index, index, i32) {
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c64 = arith.constant 64 : index
  %minus = arith.constant -3 : i32
  %0 = arith.divui %a, %c7 : index
  %1 = arith.maxsi %n, %c1 : index
  %2 = arith.remsi %a, %1 : index
  %3 = arith.minsi %1, %c64 : index
  %4 = arith.ceildivsi %3, %c7 : index
  %5 = arith.muli %3, %4 : index
  %6 = arith.floordivsi %a, %5 : index
  %7 = arith.divsi %x, %minus : i32
  return %0, %2, %6, %7 : index, index, index, i32
}

// -----

// CHECK-LABEL: func.func @selected
// CHECK: arith.select
// CHECK-NOT: arith.select
// CHECK: return
func.func @selected(%a: i8, %b: i8) -> i8 {
  %c0 = arith.constant 0 : i8
  %c1 = arith.constant 1 : i8
  %minus = arith.constant -1 : i8
  %lowest = arith.constant -128 : i8
  %0 = arith.cmpi eq, %b, %c0 : i8
  %1 = arith.cmpi eq, %a, %lowest : i8
  %2 = arith.cmpi eq, %b, %minus : i8
  %3 = arith.andi %1, %2 : i1
  %4 = arith.ori %0, %3 : i1
  %5 = arith.select %4, %c1, %b : i8
  %6 = arith.divsi %a, %5 : i8
  return %6 : i8
}

// -----

// What rounds down to 0, a product that may wrap, a divisor that is selected where another number is 0, and a signed divisor that may be
// -1 are not proven.
// CHECK-LABEL: func.func @unproven
// CHECK-COUNT-5: arith.select %{{.*}}, %{{.*}}, %{{.*}} : i64
// CHECK: return
func.func @unproven(%a: i64, %n: i64) -> (i64, i64, i64, i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c1024 = arith.constant 1024 : i64
  %0 = arith.maxsi %n, %c1 : i64
  %1 = arith.divui %c1024, %0 : i64
  %2 = arith.divui %a, %1 : i64
  %3 = arith.muli %0, %0 : i64
  %4 = arith.divui %a, %3 : i64
  %5 = arith.cmpi eq, %a, %c0 : i64
  %6 = arith.select %5, %c1, %n : i64
  %7 = arith.divui %a, %6 : i64
  %8 = arith.ori %n, %c1 : i64
  %9 = arith.divsi %a, %8 : i64
  return %2, %4, %7, %9 : i64, i64, i64, i64
}
