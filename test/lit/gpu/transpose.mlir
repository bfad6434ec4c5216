// RUN: relayc-opt %s --passes te-to-tir --config "target=cuda -arch=sm_80" | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

func.func @main() {
  return
}

// Squares of four vectors: read along the operand, turned in registers, stored along the result.
// CHECK-LABEL: func.func private @squares
// CHECK: %[[A:.*]] = memref.collapse_shape %arg0
// CHECK: %[[R:.*]] = memref.collapse_shape %arg1
// CHECK: gpu.launch {{.*}} workgroup(%[[S:.*]] : memref<4352xf32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-4: vector.load %[[A]]{{.*}} : memref<16384xf32>, vector<4xf32>
// CHECK: vector.shuffle
// CHECK-COUNT-4: vector.store %{{.*}}, %[[S]]
// CHECK-NEXT: gpu.barrier
// CHECK-NOT: scf.if
// CHECK: vector.load %[[S]]
// CHECK: vector.store %{{.*}}, %[[R]]{{.*}} : memref<16384xf32>, vector<4xf32>
func.func private @squares(%a: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %e = tensor.empty() : tensor<128x128xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}

// Elements, in lines of 33 of which none meet at a bank. Reads behind the end are of the last elements, and not stored.
// CHECK-LABEL: func.func private @elements
// CHECK: %[[A:.*]] = memref.collapse_shape %arg0
// CHECK: %[[R:.*]] = memref.collapse_shape %arg1
// CHECK: gpu.launch {{.*}} workgroup(%[[S:.*]] : memref<1056xf32, #gpu.address_space<workgroup>>)
// CHECK: arith.minsi
// CHECK: memref.load %[[A]]
// CHECK: memref.store %{{.*}}, %[[S]]
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: memref.load %[[S]]
// CHECK: memref.store %{{.*}}, %[[R]]
func.func private @elements(%a: tensor<63x49xf32>) -> tensor<49x63xf32> {
  %e = tensor.empty() : tensor<49x63xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<63x49xf32>) outs(%e : tensor<49x63xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<49x63xf32>
  return %0 : tensor<49x63xf32>
}

// Another operand lies along the result: it is read there, and the one that is turned is in shared memory.
// CHECK-LABEL: func.func private @residual
// CHECK: %[[A:.*]] = memref.collapse_shape %arg0
// CHECK: %[[B:.*]] = memref.collapse_shape %arg1
// CHECK: %[[R:.*]] = memref.collapse_shape %arg2
// CHECK: gpu.launch
// CHECK: vector.load %[[A]]
// CHECK: gpu.barrier
// CHECK-NOT: vector.load %[[A]][
// CHECK: vector.load %[[B]]
// CHECK: arith.addf
// CHECK: vector.store %{{.*}}, %[[R]]
func.func private @residual(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
