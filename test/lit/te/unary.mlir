// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// One scalar function in a parallel generic.
// CHECK-LABEL: func.func private @fused_isfinite(
// CHECK: math.absf
// CHECK: arith.cmpf olt
// CHECK-LABEL: func.func private @fused_isinf(
// CHECK: math.absf
// CHECK: arith.cmpf oeq
// CHECK-LABEL: func.func private @fused_isnan(
// CHECK: arith.cmpf une, %in, %in
// CHECK: arith.extui
// CHECK-LABEL: func.func private @fused_sign(
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf ogt
// CHECK: arith.cmpf olt
// CHECK-LABEL: func.func private @fused_sigmoid(
// CHECK: arith.negf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK-LABEL: func.func private @fused_rsqrt(
// CHECK: math.sqrt
// CHECK: arith.divf
// CHECK-LABEL: func.func private @fused_negative(
// CHECK: arith.negf
// CHECK-LABEL: func.func private @fused_abs(
// CHECK: math.absf %in
// CHECK-LABEL: func.func private @fused_trunc(
// CHECK: math.trunc %in
// CHECK-LABEL: func.func private @fused_round(
// CHECK: math.roundeven %in
// CHECK-LABEL: func.func private @fused_floor(
// CHECK: math.floor %in
// CHECK-LABEL: func.func private @fused_ceil(
// CHECK: math.ceil %in
// CHECK-LABEL: func.func private @fused_erf(
// CHECK: math.erf %in
// CHECK-LABEL: func.func private @fused_atanh(
// CHECK: math.atanh %in
// CHECK-LABEL: func.func private @fused_acosh(
// CHECK: math.acosh %in
// CHECK-LABEL: func.func private @fused_asinh(
// CHECK: math.asinh %in
// CHECK-LABEL: func.func private @fused_tanh(
// CHECK: math.tanh %in
// CHECK-LABEL: func.func private @fused_cosh(
// CHECK: math.cosh %in
// CHECK-LABEL: func.func private @fused_sinh(
// CHECK: math.sinh %in
// CHECK-LABEL: func.func private @fused_atan(
// CHECK: math.atan %in
// CHECK-LABEL: func.func private @fused_acos(
// CHECK: math.acos %in
// CHECK-LABEL: func.func private @fused_asin(
// CHECK: math.asin %in
// CHECK-LABEL: func.func private @fused_tan(
// CHECK: math.tan %in
// CHECK-LABEL: func.func private @fused_cos(
// CHECK: math.cos %in
// CHECK-LABEL: func.func private @fused_sin(
// CHECK: math.sin %in
// CHECK-LABEL: func.func private @fused_sqrt(
// CHECK: math.sqrt %in
// CHECK-LABEL: func.func private @fused_log10(
// CHECK: math.log10 %in
// CHECK-LABEL: func.func private @fused_log2(
// CHECK: math.log2 %in
// CHECK-LABEL: func.func private @fused_log(
// CHECK: math.log %in
// CHECK-LABEL: func.func private @fused_exp(
// CHECK: math.exp %in
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.log"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "relay.log2"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "relay.log10"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "relay.sqrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "relay.sin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %6 = "relay.cos"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %7 = "relay.tan"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %8 = "relay.asin"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %9 = "relay.acos"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %10 = "relay.atan"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %11 = "relay.sinh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %12 = "relay.cosh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %13 = "relay.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %14 = "relay.asinh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %15 = "relay.acosh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %16 = "relay.atanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %17 = "relay.erf"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %18 = "relay.ceil"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %19 = "relay.floor"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %20 = "relay.round"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %21 = "relay.trunc"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %22 = "relay.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %23 = "relay.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %24 = "relay.rsqrt"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %25 = "relay.sigmoid"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %26 = "relay.sign"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %27 = "relay.isnan"(%x) : (tensor<4xf32>) -> tensor<4xi1>
  %28 = "relay.isinf"(%x) : (tensor<4xf32>) -> tensor<4xi1>
  %29 = "relay.isfinite"(%x) : (tensor<4xf32>) -> tensor<4xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}

// -----

// 16-bit floats: in f32 and back; what is exact in their own type stays in it.
// CHECK-LABEL: func.func private @fused_abs(
// CHECK-NOT: arith.extf
// CHECK: math.absf %in : f16
// CHECK-LABEL: func.func private @fused_floor(
// CHECK: arith.extf
// CHECK: math.floor
// CHECK: arith.truncf
// CHECK-LABEL: func.func private @fused_exp(
// CHECK: arith.extf %in : f16 to f32
// CHECK: math.exp
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @main(%x: tensor<4xf16>) -> (tensor<4xf16>, tensor<4xf16>, tensor<4xf16>) {
  %0 = "relay.exp"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  %1 = "relay.floor"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  %2 = "relay.abs"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return %0, %1, %2 : tensor<4xf16>, tensor<4xf16>, tensor<4xf16>
}

// -----

// Integers.
// CHECK-LABEL: func.func private @fused_floor(
// CHECK-NEXT: return %arg0
// CHECK-LABEL: func.func private @fused_bitwise_not(
// CHECK: arith.constant -1 : i32
// CHECK: arith.xori
// CHECK-LABEL: func.func private @fused_sign(
// CHECK: arith.cmpi sgt
// CHECK: arith.cmpi slt
// CHECK-LABEL: func.func private @fused_negative(
// CHECK: arith.subi
// CHECK-LABEL: func.func private @fused_abs(
// CHECK: math.absi
func.func @main(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
  %0 = "relay.abs"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  %1 = "relay.negative"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  %2 = "relay.sign"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  %3 = "relay.bitwise_not"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  %4 = "relay.floor"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return %0, %1, %2, %3, %4 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
}

// -----

// Unsigned integers.
// CHECK-LABEL: func.func private @fused_clip(
// CHECK: arith.constant 0 : i8
// CHECK: arith.maxui
// CHECK: arith.constant -56 : i8
// CHECK: arith.minui
// CHECK-LABEL: func.func private @fused_sign(
// CHECK: arith.cmpi ugt
// CHECK-NOT: arith.cmpi ult
// CHECK: linalg.yield
// CHECK-LABEL: func.func private @fused_abs(
// CHECK: linalg.yield %in
func.func @main(%x: tensor<4xui8>) -> (tensor<4xui8>, tensor<4xui8>, tensor<4xui8>) {
  %0 = "relay.abs"(%x) : (tensor<4xui8>) -> tensor<4xui8>
  %1 = "relay.sign"(%x) : (tensor<4xui8>) -> tensor<4xui8>
  %2 = "relay.clip"(%x) {a_min = -3.0, a_max = 200.0} : (tensor<4xui8>) -> tensor<4xui8>
  return %0, %1, %2 : tensor<4xui8>, tensor<4xui8>, tensor<4xui8>
}

// -----

// Bools are 0 or 1 in an i8.
// CHECK-LABEL: func.func private @fused_cast(
// CHECK: arith.extui %in : i8 to i32
// CHECK-LABEL: func.func private @fused_bitwise_not(
// CHECK: arith.constant 1 : i8
// CHECK: arith.xori
// CHECK-LABEL: func.func private @fused_logical_not(
// CHECK: arith.constant 1 : i8
// CHECK: arith.xori
func.func @main(%x: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi32>) {
  %0 = "relay.logical_not"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  %1 = "relay.bitwise_not"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  %2 = "relay.cast"(%x) {dtype = "int32"} : (tensor<4xi1>) -> tensor<4xi32>
  return %0, %1, %2 : tensor<4xi1>, tensor<4xi1>, tensor<4xi32>
}

// -----

// clip passes NaN on; a side left open costs nothing.
// CHECK-LABEL: func.func private @fused_clip_1(
// CHECK-NOT: arith.maximumf
// CHECK: arith.minimumf
// CHECK-LABEL: func.func private @fused_clip(
// CHECK: arith.maximumf
// CHECK: arith.minimumf
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relay.clip"(%x) {a_min = 0.0, a_max = 6.0} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.clip"(%x) {a_max = 6.0} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Casts: towards zero, non-zero is true, the signedness of the operand widens.
// CHECK-LABEL: func.func private @fused_cast_4(
// CHECK: arith.truncf %in : f64 to f32
// CHECK: arith.ori
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK-LABEL: func.func private @fused_cast_3(
// CHECK: arith.uitofp
// CHECK-LABEL: func.func private @fused_cast_2(
// CHECK: arith.extui %in : i8 to i64
// CHECK-LABEL: func.func private @fused_cast_1(
// CHECK: arith.cmpf une
// CHECK-LABEL: func.func private @fused_cast(
// CHECK: arith.fptosi %in : f32 to i32
func.func @main(%x: tensor<4xf32>, %n: tensor<4xui8>, %d: tensor<4xf64>) -> (tensor<4xi32>, tensor<4xi1>, tensor<4xi64>, tensor<4xf32>, tensor<4xbf16>) {
  %0 = "relay.cast"(%x) {dtype = "int32"} : (tensor<4xf32>) -> tensor<4xi32>
  %1 = "relay.cast"(%x) {dtype = "bool"} : (tensor<4xf32>) -> tensor<4xi1>
  %2 = "relay.cast"(%n) {dtype = "int64"} : (tensor<4xui8>) -> tensor<4xi64>
  %3 = "relay.cast"(%n) {dtype = "float32"} : (tensor<4xui8>) -> tensor<4xf32>
  %4 = "relay.cast"(%d) {dtype = "bfloat16"} : (tensor<4xf64>) -> tensor<4xbf16>
  return %0, %1, %2, %3, %4 : tensor<4xi32>, tensor<4xi1>, tensor<4xi64>, tensor<4xf32>, tensor<4xbf16>
}
