// RUN: relayc-opt %s --passes expand-math,canonicalize --split-input-file | filecheck %s

// A vector exponential is arithmetic and one shift into the exponent, without a call.
// CHECK-LABEL: func.func @exp
// CHECK-NOT: math.exp
// CHECK: arith.select
// CHECK: arith.mulf %{{.*}} fastmath<contract> : vector<8xf32>
// CHECK: arith.shli %{{.*}} : vector<8xi32>
// CHECK: arith.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
func.func @exp(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.exp %x : vector<8xf32>
  return %0 : vector<8xf32>
}

// -----

// The same on scalars.
// CHECK-LABEL: func.func @exp_scalar
// CHECK-NOT: math.exp
// CHECK: arith.shli %{{.*}} : i32
func.func @exp_scalar(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

// -----

// The larger of x and a constant needs no test for NaN.
// CHECK-LABEL: func.func @relu
// CHECK-SAME: (%[[X:.*]]: vector<8xf32>)
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK-NEXT: %[[FLAG:.*]] = arith.cmpf ogt, %[[ZERO]], %[[X]] : vector<8xf32>
// CHECK-NEXT: %[[R:.*]] = arith.select %[[FLAG]], %[[ZERO]], %[[X]]
// CHECK-NEXT: return %[[R]]
func.func @relu(%x: vector<8xf32>) -> vector<8xf32> {
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %0 = arith.maximumf %x, %zero : vector<8xf32>
  return %0 : vector<8xf32>
}

// -----

// Functions of f16 are computed in f32; rounding to an integer stays an instruction.
// CHECK-LABEL: func.func @floor
// CHECK: arith.extf %{{.*}} : vector<8xf16> to vector<8xf32>
// CHECK-NEXT: math.floor %{{.*}} : vector<8xf32>
// CHECK-NEXT: arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
func.func @floor(%x: vector<8xf16>) -> vector<8xf16> {
  %0 = math.floor %x : vector<8xf16>
  return %0 : vector<8xf16>
}

// -----

// A square is a product.
// CHECK-LABEL: func.func @square
// CHECK: arith.mulf %[[X:.*]], %[[X]]
// CHECK-NEXT: return
func.func @square(%x: vector<8xf32>) -> vector<8xf32> {
  %two = arith.constant dense<2.0> : vector<8xf32>
  %0 = math.powf %x, %two : vector<8xf32>
  return %0 : vector<8xf32>
}

// -----

// Products and sums may be contracted into fused multiply-adds.
// CHECK-LABEL: func.func @contract
// CHECK: arith.mulf %{{.*}} fastmath<contract>
// CHECK: arith.addf %{{.*}} fastmath<contract>
// CHECK-NOT: fastmath
func.func @contract(%x: f32, %y: f32) -> f32 {
  %0 = arith.mulf %x, %y : f32
  %1 = arith.addf %0, %x : f32
  %2 = arith.divf %1, %y : f32
  return %2 : f32
}
