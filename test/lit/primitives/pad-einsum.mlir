// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: pad_einsum(block=sum, padding=[1, 4]): expected a sum of products, found arith.addf of memref.load in block sum
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x10xf32>) -> tensor<6xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"],
                         tir.axes = ["i", "k"]} ins(%x : tensor<6x10xf32>) outs(%f : tensor<6xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %o, %a : f32
      linalg.yield %s : f32
    } -> tensor<6xf32> loc("sum")
    return %0 : tensor<6xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.pad_einsum"(%main) {block = "sum", padding = [1, 4]} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// Ten steps become twelve: both factors have zeros behind, the product keeps its extents.
// CHECK: memref.alloc() {tir.buffer = "p0_pad"} : memref<6x12xf32>
// CHECK: memref.alloc() {tir.buffer = "p1_pad"} : memref<12x4xf32>
// CHECK: arith.cmpi ult
// CHECK: name = "p0_pad"
// CHECK: arith.cmpi ult
// CHECK: name = "p1_pad"
// CHECK: scf.for %{{.*}} = %c0 to %c12
// CHECK: extents = [6, 4, 12]
// CHECK: name = "product"
// CHECK: } {tir.loop = "k"}
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x10xf32>, %y: tensor<10x4xf32>) -> tensor<6x4xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<6x4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
    %0 = linalg.matmul {tir.axes = ["i", "j", "k"]} ins(%x, %y : tensor<6x10xf32>, tensor<10x4xf32>) outs(%f : tensor<6x4xf32>) -> tensor<6x4xf32>
      loc("product")
    return %0 : tensor<6x4xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.pad_einsum"(%main) {block = "product", padding = [1, 1, 4], results = ["p0_pad", "p1_pad"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
