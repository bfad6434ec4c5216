// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

func.func @main() {
  return
}

// Each operand of a concatenation is computed where it belongs in the result.
// CHECK-LABEL: func.func private @concat
// CHECK: scf.for
// CHECK: arith.addf %{{.*}} : vector<8xf32>
// CHECK: vector.store
// CHECK: scf.for
// CHECK-NOT: arith.addf
// CHECK: vector.load %{{.*}} : memref<64xf32>, vector<8xf32>
// CHECK: vector.store %{{.*}} : memref<96xf32>, vector<8xf32>
// CHECK-NOT: arith.select
// CHECK-NOT: memref.copy
// CHECK: return
func.func private @concat(%a: tensor<4x8xf32>, %b: tensor<4x16xf32>) -> tensor<4x24xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %1 = tensor.concat dim(1) %0, %b : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<4x24xf32>
  return %1 : tensor<4x24xf32>
}

// The inside of a padding is copied, then its border filled: no element is compared with the bounds.
// CHECK-LABEL: func.func private @pad
// CHECK: %[[BORDER:.*]] = arith.constant dense<1.{{0*}}e+00> : vector<8xf32>
// CHECK-NOT: arith.cmpi
// CHECK: vector.load %{{.*}} : memref<64xf32>, vector<8xf32>
// CHECK: vector.store %{{.*}} : memref<200xf32>, vector<8xf32>
// CHECK: vector.store %[[BORDER]], %{{.*}} : memref<200xf32>, vector<8xf32>
// CHECK-NOT: arith.select
// CHECK: return
func.func private @pad(%a: tensor<4x16xf32>) -> tensor<10x20xf32> {
  %z = arith.constant 1.0 : f32
  %0 = tensor.pad %a low[3, 2] high[3, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x16xf32> to tensor<10x20xf32>
  return %0 : tensor<10x20xf32>
}
