// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The result has the operand's type.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.abs"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.negative"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.sign"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.ceil"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.floor"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.round"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.trunc"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.exp"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.log"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.log2"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.log10"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.sqrt"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.rsqrt"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.sigmoid"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.sin"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.cos"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.tan"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.asin"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.acos"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.atan"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.sinh"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.cosh"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.tanh"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.asinh"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.acosh"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.atanh"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.erf"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
// CHECK-NEXT: %{{.*}} = "relay.copy"(%arg0) : (tensor<?x3xf32, ["arg0_0"]>) -> tensor<?x3xf32, ["arg0_0"]>
func.func @main(%x: tensor<?x3xf32>) {
  %0 = "relay.abs"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %1 = "relay.negative"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %2 = "relay.sign"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %3 = "relay.ceil"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %4 = "relay.floor"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %5 = "relay.round"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %6 = "relay.trunc"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %7 = "relay.exp"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %8 = "relay.log"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %9 = "relay.log2"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %10 = "relay.log10"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %11 = "relay.sqrt"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %12 = "relay.rsqrt"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %13 = "relay.sigmoid"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %14 = "relay.sin"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %15 = "relay.cos"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %16 = "relay.tan"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %17 = "relay.asin"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %18 = "relay.acos"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %19 = "relay.atan"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %20 = "relay.sinh"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %21 = "relay.cosh"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %22 = "relay.tanh"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %23 = "relay.asinh"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %24 = "relay.acosh"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %25 = "relay.atanh"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %26 = "relay.erf"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  %27 = "relay.copy"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
  return
}

// -----

// Integers, signed and unsigned.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.abs"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: %{{.*}} = "relay.negative"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: %{{.*}} = "relay.sign"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: %{{.*}} = "relay.ceil"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: %{{.*}} = "relay.floor"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: %{{.*}} = "relay.round"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: %{{.*}} = "relay.trunc"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: %{{.*}} = "relay.bitwise_not"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: %{{.*}} = "relay.copy"(%arg0) : (tensor<4xui8>) -> tensor<4xui8>
func.func @main(%x: tensor<4xui8>) {
  %0 = "relay.abs"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  %1 = "relay.negative"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  %2 = "relay.sign"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  %3 = "relay.ceil"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  %4 = "relay.floor"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  %5 = "relay.round"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  %6 = "relay.trunc"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  %7 = "relay.bitwise_not"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  %8 = "relay.copy"(%x) : (tensor<4xui8>) -> tensor<?xui8>
  return
}

// -----

// Tests give bools; casts the type that they name; clip keeps the operand's and may leave a side open.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = "relay.isnan"(%arg0) : (tensor<4xf16>) -> tensor<4xi1>
// CHECK-NEXT: %{{.*}} = "relay.isinf"(%arg0) : (tensor<4xf16>) -> tensor<4xi1>
// CHECK-NEXT: %{{.*}} = "relay.isfinite"(%arg0) : (tensor<4xf16>) -> tensor<4xi1>
// CHECK-NEXT: %{{.*}} = "relay.logical_not"(%arg1) : (tensor<i1>) -> tensor<i1>
// CHECK-NEXT: %{{.*}} = "relay.cast"(%arg0) {dtype = "uint16"} : (tensor<4xf16>) -> tensor<4xui16>
// CHECK-NEXT: %{{.*}} = "relay.cast"(%arg1) {dtype = "bfloat16"} : (tensor<i1>) -> tensor<bf16>
// CHECK-NEXT: %{{.*}} = "relay.clip"(%arg0) {a_max = 6.000000e+00 : f64, a_min = 0.000000e+00 : f64} : (tensor<4xf16>) -> tensor<4xf16>
// CHECK-NEXT: %{{.*}} = "relay.clip"(%arg0) {a_max = 6.000000e+00 : f64} : (tensor<4xf16>) -> tensor<4xf16>
func.func @main(%x: tensor<4xf16>, %b: tensor<i1>) {
  %0 = "relay.isnan"(%x) : (tensor<4xf16>) -> tensor<?xi1>
  %1 = "relay.isinf"(%x) : (tensor<4xf16>) -> tensor<?xi1>
  %2 = "relay.isfinite"(%x) : (tensor<4xf16>) -> tensor<?xi1>
  %3 = "relay.logical_not"(%b) : (tensor<i1>) -> tensor<i1>
  %4 = "relay.cast"(%x) {dtype = "uint16"} : (tensor<4xf16>) -> tensor<?xui16>
  %5 = "relay.cast"(%b) {dtype = "bfloat16"} : (tensor<i1>) -> tensor<bf16>
  %6 = "relay.clip"(%x) {a_min = 0.0, a_max = 6.0} : (tensor<4xf16>) -> tensor<?xf16>
  %7 = "relay.clip"(%x) {a_max = 6.0} : (tensor<4xf16>) -> tensor<?xf16>
  return
}
