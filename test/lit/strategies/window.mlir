// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

func.func @main() {
  return
}

// A depthwise convolution with padding, in parallel over channels: rows are copied with the padding around them; tiles hold their sums in
// registers over all taps, and the epilogue follows before the one store. Nothing is compared with the bounds.
// CHECK-LABEL: func.func private @depthwise
// CHECK: scf.parallel
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}xf32>
// CHECK-NOT: arith.cmpi
// CHECK: vector.store %{{.*}} vector<8xf32>
// CHECK-NOT: scf.if
// CHECK: arith.mulf %{{.*}} fastmath<contract> : vector<8xf32>
// CHECK-NEXT: arith.addf %{{.*}} fastmath<contract> : vector<8xf32>
// CHECK: arith.maximumf %{{.*}} : vector<8xf32>
// CHECK: vector.store %{{.*}} : memref<16384xf32>, vector<8xf32>
// CHECK: scf.reduce
func.func private @depthwise(%a: tensor<1x16x32x32xf32>, %w: tensor<16x3x3xf32>) -> tensor<1x16x32x32xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x32x32xf32>
  %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  } : tensor<1x16x32x32xf32> to tensor<1x16x34x34xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%p, %w : tensor<1x16x34x34xf32>, tensor<16x3x3xf32>) outs(%i : tensor<1x16x32x32xf32>) -> tensor<1x16x32x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<1x16x32x32xf32>) outs(%e : tensor<1x16x32x32xf32>) {
  ^bb0(%x: f32, %o: f32):
    %m = arith.maximumf %x, %z : f32
    linalg.yield %m : f32
  } -> tensor<1x16x32x32xf32>
  return %r : tensor<1x16x32x32xf32>
}

// Maps narrower than a vector: whole rows of the output as vectors, through a second buffer.
// CHECK-LABEL: func.func private @narrow
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}xf32>
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<57xf32>
// CHECK: vector.store %{{.*}} : memref<57xf32>, vector<8xf32>
// CHECK: vector.load %{{.*}} : memref<57xf32>, vector<8xf32>
// CHECK: vector.store %{{.*}} : memref<98xf32>, vector<8xf32>
// CHECK: return
func.func private @narrow(%a: tensor<1x2x7x7xf32>, %w: tensor<2x3x3xf32>) -> tensor<1x2x7x7xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x7x7xf32>
  %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %z : f32
  } : tensor<1x2x7x7xf32> to tensor<1x2x9x9xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x2x7x7xf32>) -> tensor<1x2x7x7xf32>
  %c = linalg.depthwise_conv_2d_nchw_chw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%p, %w : tensor<1x2x9x9xf32>, tensor<2x3x3xf32>) outs(%i : tensor<1x2x7x7xf32>) -> tensor<1x2x7x7xf32>
  return %c : tensor<1x2x7x7xf32>
}

// A pooling of stride 2: even and odd columns lie apart in the buffer, so that taps are contiguous. Around the map is what it starts from.
// CHECK-LABEL: func.func private @max_pool
// CHECK: arith.constant 0xFF800000 : f32
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 9, 11, 13, 15]
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 9, 11, 13, 15]
// CHECK: arith.maximumf %{{.*}} : vector<8xf32>
// CHECK-NOT: vector.shuffle
// CHECK: vector.store %{{.*}} : memref<512xf32>, vector<8xf32>
// CHECK: return
func.func private @max_pool(%a: tensor<1x2x32x32xf32>) -> tensor<1x2x16x16xf32> {
  %z = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x2x16x16xf32>
  %k = tensor.empty() : tensor<3x3xf32>
  %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k0: index, %l: index):
    tensor.yield %z : f32
  } : tensor<1x2x32x32xf32> to tensor<1x2x34x34xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  %c = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%p, %k : tensor<1x2x34x34xf32>, tensor<3x3xf32>) outs(%i : tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  return %c : tensor<1x2x16x16xf32>
}

// Windows side by side share nothing, so nothing is copied.
// CHECK-LABEL: func.func private @halving
// CHECK-NOT: memref.alloca
// CHECK: vector.shuffle
// CHECK: arith.maximumf %{{.*}} : vector<8xf32>
// CHECK: return
func.func private @halving(%a: tensor<1x2x32x32xf32>) -> tensor<1x2x16x16xf32> {
  %z = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x2x16x16xf32>
  %k = tensor.empty() : tensor<2x2xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  %c = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%a, %k : tensor<1x2x32x32xf32>, tensor<2x2xf32>) outs(%i : tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  return %c : tensor<1x2x16x16xf32>
}
