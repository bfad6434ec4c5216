// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

func.func @main() {
  return
}

// A depthwise convolution in blocks of channels. Accumulators are vectors along the channels, in registers over all taps, which are unrolled
// where they all lie inside and a loop at the border; nothing is copied, and the epilogue precedes the one store.
// CHECK-LABEL: func.func private @depthwise
// CHECK-NOT: memref.alloc
// CHECK: scf.parallel
// CHECK: scf.if {{.*}} -> (vector<8xf32>
// CHECK: vector.load %{{.*}} vector<8xf32>
// CHECK: arith.mulf %{{.*}} fastmath<contract> : vector<8xf32>
// CHECK-NEXT: arith.addf %{{.*}} fastmath<contract> : vector<8xf32>
// CHECK: } else {
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>
// CHECK: arith.maximumf %{{.*}} : vector<8xf32>
// CHECK: vector.store %{{.*}} vector<8xf32>
// CHECK: scf.reduce
func.func private @depthwise(%a: tensor<1x4x32x32x8xf32>, %w: tensor<32x3x3xf32>) -> tensor<1x4x32x32x8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x32x32x8xf32>
  %p = tensor.pad %a low[0, 0, 1, 1, 0] high[0, 0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index, %m: index):
    tensor.yield %z : f32
  } : tensor<1x4x32x32x8xf32> to tensor<1x4x34x34x8xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x4x32x32x8xf32>) -> tensor<1x4x32x32x8xf32>
  %c = linalg.generic {indexing_maps = [
        affine_map<(n, o, h, w, c, y, x) -> (n, o, h + y, w + x, c)>, affine_map<(n, o, h, w, c, y, x) -> (o * 8 + c, y, x)>,
        affine_map<(n, o, h, w, c, y, x) -> (n, o, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %w : tensor<1x4x34x34x8xf32>, tensor<32x3x3xf32>) outs(%i : tensor<1x4x32x32x8xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %m = arith.mulf %x, %y : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<1x4x32x32x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, f) -> (a, b, c, d, f)>, affine_map<(a, b, c, d, f) -> (a, b, c, d, f)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<1x4x32x32x8xf32>) outs(%e : tensor<1x4x32x32x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %m = arith.maximumf %x, %z : f32
    linalg.yield %m : f32
  } -> tensor<1x4x32x32x8xf32>
  return %r : tensor<1x4x32x32x8xf32>
}

// Channels last, in a number that is no multiple of a vector: the last vector starts early. A tile takes two neighbouring vectors, the line
// of the cache that a pixel's channels lie in.
// CHECK-LABEL: func.func private @pooling
// CHECK-NOT: memref.alloc
// CHECK: affine.apply
// CHECK: arith.minsi
// CHECK: arith.maximumf %{{.*}} : vector<8xf32>
// CHECK: vector.store %{{.*}} : memref<{{.*}}>, vector<8xf32>
func.func private @pooling(%a: tensor<1x9x9x27xf32>) -> tensor<1x4x4x27xf32> {
  %z = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x4x4x27xf32>
  %v = tensor.empty() : tensor<3x3xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x4x4x27xf32>) -> tensor<1x4x4x27xf32>
  %c = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%a, %v : tensor<1x9x9x27xf32>, tensor<3x3xf32>) outs(%i : tensor<1x4x4x27xf32>) -> tensor<1x4x4x27xf32>
  return %c : tensor<1x4x4x27xf32>
}
