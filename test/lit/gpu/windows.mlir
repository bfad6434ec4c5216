// RUN: relayc-opt %s --passes te-to-tir --config "target=cuda -arch=sm_80" | filecheck %s

func.func @main() {
  return
}

#data = affine_map<(n, y, x, c, i, j) -> (n, y + i, x + j, c)>
#weight = affine_map<(n, y, x, c, i, j) -> (c, i, j)>
#out = affine_map<(n, y, x, c, i, j) -> (n, y, x, c)>

// A thread has four channels of neighbouring columns. Channels are the last dimension of packed weights. An element that may be in the
// padding is replaced; no comparison is made for the second row and column of taps.
// CHECK-LABEL: func.func private @depthwise(%arg0: memref<128x28x28x64xf32>, %arg1: memref<3x3x64xf32>
// CHECK: gpu.launch
// CHECK: %[[ABOVE:.*]] = arith.cmpi ult
// CHECK: %[[LEFT:.*]] = arith.cmpi ult
// CHECK: %[[INSIDE:.*]] = arith.andi %[[ABOVE]], %[[LEFT]]
// CHECK: arith.maxsi
// CHECK-NEXT: arith.minsi
// CHECK: %[[X:.*]] = vector.load %{{.*}} : memref<6422528xf32>, vector<4xf32>
// CHECK-NEXT: %[[E:.*]] = arith.select %[[INSIDE]], %[[X]]
// CHECK: %[[W:.*]] = vector.load %{{.*}} : memref<576xf32>, vector<4xf32>
// CHECK-NEXT: arith.mulf %[[E]], %[[W]]
// CHECK: %[[Y:.*]] = vector.load
// CHECK-NEXT: arith.select %[[ABOVE]], %[[Y]]
// CHECK: arith.select %[[LEFT]]
// CHECK: %[[Z:.*]] = vector.load %{{.*}} : memref<6422528xf32>, vector<4xf32>
// CHECK-NEXT: arith.mulf %[[Z]]
// CHECK: vector.store {{.*}} : memref<6422528xf32>, vector<4xf32>
func.func private @depthwise(%d: tensor<128x28x28x64xf32>, %w: tensor<64x3x3xf32> {relay.param}) -> tensor<128x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %d low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %e: index):
    tensor.yield %zero : f32
  } : tensor<128x28x28x64xf32> to tensor<128x30x30x64xf32>
  %e = tensor.empty() : tensor<128x28x28x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<128x28x28x64xf32>) -> tensor<128x28x28x64xf32>
  %0 = linalg.generic {indexing_maps = [#data, #weight, #out],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%padded, %w : tensor<128x30x30x64xf32>, tensor<64x3x3xf32>) outs(%init : tensor<128x28x28x64xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<128x28x28x64xf32>
  return %0 : tensor<128x28x28x64xf32>
}
