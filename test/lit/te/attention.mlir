// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// Loops are batch, head of the key, head of the query within its group, query, key and element; the query comes in [batch, sequence, head].
// CHECK-DAG: #[[QUERY:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1 * 2 + d2, d5)>
// CHECK-DAG: #[[KEY:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
// CHECK-DAG: #[[SCORES:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>
// CHECK-DAG: #[[MASK:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d3, d4)>
// CHECK-DAG: #[[CONTEXT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d2, d5)>
// CHECK: func.func private @fused_attention(
// CHECK: %[[SCALED:.*]] = linalg.generic
// CHECK: arith.mulf %{{.*}}, %cst{{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#[[QUERY]], #[[KEY]], #[[SCORES]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%[[SCALED]], %{{.*}})
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[MASK]], #{{.*}}]
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK: linalg.index 3
// CHECK: arith.addi %{{.*}}, %{{.*}} : index
// CHECK: linalg.index 4
// CHECK: arith.cmpi sle
// CHECK: arith.select
// CHECK: arith.maximumf
// CHECK: arith.subf
// CHECK-NEXT: math.exp
// CHECK: arith.addf
// CHECK: linalg.generic {indexing_maps = [#[[SCORES]], #[[KEY]], #[[CONTEXT]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "parallel"]}
// CHECK: arith.divf
// CHECK: arith.mulf
// CHECK: tensor.{{.*}} into tensor<1x5x4x8xf32>
func.func @main(%q: tensor<1x5x4x8xf32>, %k: tensor<1x2x7x8xf32>, %v: tensor<1x2x7x8xf32>, %m: tensor<1x5x7xf32>) -> tensor<1x5x4x8xf32> {
  %0 = "relay.nn_attention"(%q, %k, %v, %m) {scale = 0.25 : f64, is_causal = true, causal_offset = 2 : i64, query_layout = "BSHD", out_layout = "BSHD"} : (tensor<1x5x4x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x5x7xf32>) -> tensor<1x5x4x8xf32>
  return %0 : tensor<1x5x4x8xf32>
}

// -----

// 16-bit floats are computed in f32; a bool mask chooses, NaN becomes 0.
// CHECK: func.func private @fused_attention(
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: math.tanh
// CHECK: arith.cmpi ne
// CHECK: arith.select {{.*}} : f32
// CHECK: arith.cmpf ogt
// CHECK: arith.select {{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @main(%q: tensor<1x2x5x8xbf16>, %k: tensor<1x2x7x8xbf16>, %v: tensor<1x2x7x8xbf16>, %m: tensor<5x7xi1>) -> tensor<1x2x5x8xbf16> {
  %0 = "relay.nn_attention"(%q, %k, %v, %m) {scale = 0.25 : f64, softcap = 5.0 : f64, nan_to_zero = true} : (tensor<1x2x5x8xbf16>, tensor<1x2x7x8xbf16>, tensor<1x2x7x8xbf16>, tensor<5x7xi1>) -> tensor<1x2x5x8xbf16>
  return %0 : tensor<1x2x5x8xbf16>
}

// -----

// The log-sum-exp of each query, of the largest score and the total.
// CHECK: func.func private @fused_attention_lse(
// CHECK: arith.maximumf
// CHECK: %[[TOTAL:.*]] = linalg.generic {{.*}} "reduction"]
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[TOTAL]]
// CHECK: math.log
// CHECK-NEXT: arith.addf
// CHECK: tensor.{{.*}} into tensor<1x4x5xf32>
func.func @main(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x7x8xf32>, %v: tensor<1x2x7x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>) {
  %0:2 = "relay.nn_attention_lse"(%q, %k, %v) {scale = 0.25 : f64} : (tensor<1x4x5x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return %0#0, %0#1 : tensor<1x4x5x8xf32>, tensor<1x4x5xf32>
}

// -----

// Derivatives: five products, of which those of key and value sum over the queries and the heads that share a key.
// CHECK: func.func private @fused_attention_grad(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
// CHECK: arith.cmpf oeq
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
// CHECK: linalg.generic
// CHECK: arith.subf
// CHECK: arith.mulf %{{.*}}, %cst
// CHECK-NEXT: arith.mulf
// CHECK-COUNT-2: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction", "parallel", "parallel"]}
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "parallel"]}
func.func @main(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x7x8xf32>, %g: tensor<1x4x5x8xf32>, %l: tensor<1x4x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>) {
  %0:3 = "relay.nn_attention_grad"(%q, %k, %k, %g, %l, %l) {scale = 0.25 : f64} : (tensor<1x4x5x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x4x5x8xf32>, tensor<1x4x5xf32>, tensor<1x4x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x4x5x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>
}
