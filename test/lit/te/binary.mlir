// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --opt-level 0 --split-input-file | filecheck %s

// One scalar function in a parallel generic.
// CHECK-LABEL: func.func private @fused_power(
// CHECK: math.powf
// CHECK-LABEL: func.func private @fused_floor_mod(
// CHECK: arith.remf
// CHECK: arith.addf
// CHECK: arith.select
// CHECK-LABEL: func.func private @fused_floor_divide(
// CHECK: arith.divf
// CHECK: math.floor
// CHECK-LABEL: func.func private @fused_mod(
// CHECK: arith.remf %in
// CHECK-LABEL: func.func private @fused_minimum(
// CHECK: arith.minimumf %in
// CHECK-LABEL: func.func private @fused_maximum(
// CHECK: arith.maximumf %in
// CHECK-LABEL: func.func private @fused_divide(
// CHECK: arith.divf %in
// CHECK-LABEL: func.func private @fused_multiply(
// CHECK: arith.mulf %in
// CHECK-LABEL: func.func private @fused_subtract(
// CHECK: arith.subf %in
// CHECK-LABEL: func.func private @fused_add(
// CHECK: arith.addf %in
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "relay.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.subtract"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "relay.multiply"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "relay.divide"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = "relay.maximum"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = "relay.minimum"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = "relay.mod"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = "relay.floor_divide"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = "relay.floor_mod"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %9 = "relay.power"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Comparisons give i8.
// CHECK-LABEL: func.func private @fused_greater_equal(
// CHECK: arith.cmpf oge,
// CHECK-LABEL: func.func private @fused_greater(
// CHECK: arith.cmpf ogt,
// CHECK-LABEL: func.func private @fused_less_equal(
// CHECK: arith.cmpf ole,
// CHECK-LABEL: func.func private @fused_less(
// CHECK: arith.cmpf olt,
// CHECK-LABEL: func.func private @fused_not_equal(
// CHECK: arith.cmpf une,
// CHECK-LABEL: func.func private @fused_equal(
// CHECK: arith.cmpf oeq,
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %0 = "relay.equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = "relay.not_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = "relay.less"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = "relay.less_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %4 = "relay.greater"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %5 = "relay.greater_equal"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0, %1, %2, %3, %4, %5 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}

// -----

// Integers.
// CHECK-LABEL: func.func private @fused_right_shift(
// CHECK: arith.minui
// CHECK: arith.shrsi
// CHECK-LABEL: func.func private @fused_left_shift(
// CHECK: arith.cmpi ult
// CHECK: arith.shli
// CHECK: arith.select
// CHECK-LABEL: func.func private @fused_floor_mod(
// CHECK: arith.remsi
// CHECK: arith.addi
// CHECK: arith.select
// CHECK-LABEL: func.func private @fused_floor_divide(
// CHECK: arith.divsi
// CHECK: arith.subi
// CHECK: arith.remsi
// CHECK: arith.select
// CHECK-LABEL: func.func private @fused_mod(
// CHECK: arith.select
// CHECK: arith.remsi
// CHECK-LABEL: func.func private @fused_divide(
// CHECK: arith.cmpi eq, %in_0, %c0_i32
// CHECK: arith.select
// CHECK: arith.divsi
// CHECK-LABEL: func.func private @fused_greater_equal(
// CHECK: arith.cmpi sge,
// CHECK-LABEL: func.func private @fused_less(
// CHECK: arith.cmpi slt,
// CHECK-LABEL: func.func private @fused_equal(
// CHECK: arith.cmpi eq,
// CHECK-LABEL: func.func private @fused_bitwise_xor(
// CHECK: arith.xori %in
// CHECK-LABEL: func.func private @fused_bitwise_or(
// CHECK: arith.ori %in
// CHECK-LABEL: func.func private @fused_bitwise_and(
// CHECK: arith.andi %in
// CHECK-LABEL: func.func private @fused_minimum(
// CHECK: arith.minsi %in
// CHECK-LABEL: func.func private @fused_maximum(
// CHECK: arith.maxsi %in
// CHECK-LABEL: func.func private @fused_multiply(
// CHECK: arith.muli %in
// CHECK-LABEL: func.func private @fused_subtract(
// CHECK: arith.subi %in
// CHECK-LABEL: func.func private @fused_add(
// CHECK: arith.addi %in
func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
  %0 = "relay.add"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = "relay.subtract"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %2 = "relay.multiply"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %3 = "relay.maximum"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %4 = "relay.minimum"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %5 = "relay.bitwise_and"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %6 = "relay.bitwise_or"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %7 = "relay.bitwise_xor"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %8 = "relay.equal"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %9 = "relay.less"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %10 = "relay.greater_equal"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %11 = "relay.divide"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %12 = "relay.mod"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %13 = "relay.floor_divide"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %14 = "relay.floor_mod"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %15 = "relay.left_shift"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %16 = "relay.right_shift"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
}

// -----

// Unsigned integers; a power by squares.
// CHECK-LABEL: func.func private @fused_power(
// CHECK: arith.andi
// CHECK: arith.select
// CHECK: arith.muli
// CHECK-NOT: math.ipowi
// CHECK-LABEL: func.func private @fused_right_shift(
// CHECK: arith.cmpi ult
// CHECK: arith.shrui
// CHECK-LABEL: func.func private @fused_floor_divide(
// CHECK: arith.divui
// CHECK-NOT: arith.select
// CHECK: linalg.yield
// CHECK-LABEL: func.func private @fused_mod(
// CHECK: arith.remui
// CHECK-LABEL: func.func private @fused_divide(
// CHECK: arith.divui
// CHECK-LABEL: func.func private @fused_maximum(
// CHECK: arith.maxui
// CHECK-LABEL: func.func private @fused_greater(
// CHECK: arith.cmpi ugt,
// CHECK-LABEL: func.func private @fused_less_equal(
// CHECK: arith.cmpi ule,
// CHECK-LABEL: func.func private @fused_not_equal(
// CHECK: arith.cmpi ne,
func.func @main(%x: tensor<4xui8>, %y: tensor<4xui8>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>) {
  %0 = "relay.not_equal"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  %1 = "relay.less_equal"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  %2 = "relay.greater"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  %3 = "relay.maximum"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %4 = "relay.divide"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %5 = "relay.mod"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %6 = "relay.floor_divide"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %7 = "relay.right_shift"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %8 = "relay.power"(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>, tensor<4xui8>
}

// -----

// Bools.
// CHECK-LABEL: func.func private @fused_logical_xor(
// CHECK: arith.xori
// CHECK-LABEL: func.func private @fused_logical_or(
// CHECK: arith.ori
// CHECK-LABEL: func.func private @fused_logical_and(
// CHECK: arith.andi
func.func @main(%x: tensor<4xi1>, %y: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %0 = "relay.logical_and"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %1 = "relay.logical_or"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %2 = "relay.logical_xor"(%x, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return %0, %1, %2 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}

// -----

// Broadcasting is in the maps.
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func private @fused_where(
// CHECK: arith.cmpi ne, %in, %c0_i8
// CHECK: arith.select
// CHECK-LABEL: func.func private @fused_add(
// CHECK: linalg.generic {indexing_maps = [#[[COLUMN]], #[[ROW]], #{{.*}}], iterator_types = ["parallel", "parallel"]}
func.func @main(%x: tensor<3x1xf32>, %y: tensor<4xf32>, %c: tensor<i1>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = "relay.add"(%x, %y) : (tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = "relay.where"(%c, %x, %y) : (tensor<i1>, tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}
