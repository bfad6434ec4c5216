// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=sapphirerapids" | filecheck %s

func.func @main() {
  return
}

// Two by two tiles of sums are carried by the loop over the reduction; A is read where it lies, B from pairs. The sums leave through a
// small buffer, on whose rows the epilogue is computed.
// CHECK-LABEL: func.func private @matmul
// CHECK: %[[BUFFER:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK-NOT: alloc
// CHECK-COUNT-4: x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
// CHECK: %[[SUMS:.*]]:4 = scf.for {{.*}} iter_args({{(%[^,]*, ){3}%[^,]*}}) -> (!x86.amx.tile<16x16xf32>, {{.*}}) {
// CHECK-COUNT-2: x86.amx.tile_load %{{.*}} : memref<16384xbf16> into !x86.amx.tile<16x32xbf16>
// CHECK: x86.amx.tile_load %{{.*}} : memref<8192xbf16> into !x86.amx.tile<16x32xbf16>
// CHECK-COUNT-2: x86.amx.tile_mulf
// CHECK: x86.amx.tile_load %{{.*}} : memref<8192xbf16> into !x86.amx.tile<16x32xbf16>
// CHECK-COUNT-2: x86.amx.tile_mulf
// CHECK-NEXT: scf.yield
// CHECK: x86.amx.tile_store %[[BUFFER]]{{.*}}%[[SUMS]]#0
// CHECK: x86.amx.tile_store %[[BUFFER]]{{.*}}%[[SUMS]]#3
// CHECK: vector.load %[[BUFFER]]{{.*}} : memref<1024xf32>, vector<16xf32>
// CHECK-NEXT: arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK: vector.store
// CHECK-NOT: memref.copy
// CHECK: return
func.func private @matmul(%a: tensor<64x256xbf16>, %b: tensor<256x32xbf16>) -> tensor<64x32xbf16> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<64x256xbf16>, tensor<256x32xbf16>) outs(%i : tensor<64x32xf32>) -> tensor<64x32xf32>
  %f = tensor.empty() : tensor<64x32xbf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<64x32xf32>) outs(%f : tensor<64x32xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %t = arith.truncf %x : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<64x32xbf16>
  return %1 : tensor<64x32xbf16>
}

// A convolution in blocks of 32 channels: the image is copied with its border once, and a row of a tile is the channels of one pixel of it.
// CHECK-LABEL: func.func private @convolution
// CHECK: memref.view {{.*}} to memref<41472xbf16>
// CHECK: scf.for
// CHECK: vector.store {{.*}} : memref<41472xbf16>, vector<32xbf16>
// CHECK-COUNT-4: x86.amx.tile_zero
// CHECK-COUNT-3: scf.for {{.*}} iter_args
// CHECK: x86.amx.tile_load {{.*}} : memref<41472xbf16> into !x86.amx.tile<16x32xbf16>
// CHECK-COUNT-4: x86.amx.tile_mulf
// CHECK-NEXT: scf.yield
func.func private @convolution(%x: tensor<1x4x16x16x32xbf16>, %w: tensor<64x128x3x3xbf16>) -> tensor<1x64x16x16xf32> {
  %pad = arith.constant 0.0 : bf16
  %p = tensor.pad %x low[0, 0, 1, 1, 0] high[0, 0, 1, 1, 0] {
  ^bb0(%n: index, %cb: index, %h: index, %v: index, %c: index):
    tensor.yield %pad : bf16
  } : tensor<1x4x16x16x32xbf16> to tensor<1x4x18x18x32xbf16>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x16x16xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x64x16x16xf32>) -> tensor<1x64x16x16xf32>
  %0 = linalg.generic {indexing_maps = [
      affine_map<(n, o, h, w, cb, c, kh, kw) -> (n, cb, h + kh, w + kw, c)>,
      affine_map<(n, o, h, w, cb, c, kh, kw) -> (o, cb * 32 + c, kh, kw)>,
      affine_map<(n, o, h, w, cb, c, kh, kw) -> (n, o, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<1x4x18x18x32xbf16>, tensor<64x128x3x3xbf16>) outs(%i : tensor<1x64x16x16xf32>) {
  ^bb0(%a: bf16, %b: bf16, %s: f32):
    %u = arith.extf %a : bf16 to f32
    %v = arith.extf %b : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  } -> tensor<1x64x16x16xf32>
  return %0 : tensor<1x64x16x16xf32>
}
