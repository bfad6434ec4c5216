// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

func.func @main() {
  return
}

// Sums of rows: lanes along the row, four vectors side by side carried by the loop, joined at the end.
// CHECK-LABEL: func.func private @rows
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4: arith.addf %{{.*}} : vector<8xf32>
// CHECK: scf.yield
// CHECK: vector.reduction <add>
// CHECK: memref.store
// CHECK-NOT: memref.alloc
// CHECK: return
func.func private @rows(%a: tensor<6x128xf32>) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<6xf32>
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<6x128xf32>) outs(%i : tensor<6xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// Sums of columns: lanes along the columns, so nothing is joined.
// CHECK-LABEL: func.func private @columns
// CHECK: scf.for {{.*}} iter_args{{.*}}vector<8xf32>
// CHECK: vector.load %{{.*}} : memref<12800xf32>, vector<8xf32>
// CHECK-NOT: vector.reduction
// CHECK: return
func.func private @columns(%a: tensor<100x128xf32>) -> tensor<128xf32> {
  %e = tensor.empty() : tensor<128xf32>
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>
  %0 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<100x128xf32>) outs(%i : tensor<128xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  return %0 : tensor<128xf32>
}

// Softmax: in one loop over rows the largest element, the exponentials (kept in the result), their sum and the quotients.
// CHECK-LABEL: func.func private @softmax
// CHECK: scf.for
// CHECK: arith.maximumf %{{.*}} : vector<8xf32>
// CHECK: vector.reduction <maximumf>
// CHECK: math.exp %{{.*}} : vector<8xf32>
// CHECK: vector.store %[[E:.*]], %[[OUT:.*]][
// CHECK: vector.load %[[OUT]][
// CHECK: vector.reduction <add>
// CHECK-NOT: math.exp
// CHECK: vector.load %[[OUT]][
// CHECK: arith.divf %{{.*}} : vector<8xf32>
// CHECK-NOT: memref.alloc
// CHECK: return
func.func private @softmax(%a: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %e = tensor.empty() : tensor<4x64xf32>
  %r = tensor.empty() : tensor<4xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %z = arith.constant 0.0 : f32
  %m0 = linalg.fill ins(%lowest : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %s0 = linalg.fill ins(%z : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x64xf32>) outs(%m0 : tensor<4xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %t = arith.maximumf %x, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %m : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %d = arith.subf %x, %y : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<4x64xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<4x64xf32>) outs(%s0 : tensor<4xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %t = arith.addf %x, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %q = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %t = arith.divf %x, %y : f32
    linalg.yield %t : f32
  } -> tensor<4x64xf32>
  return %q : tensor<4x64xf32>
}

// Rows less their mean: the mean is a register between two passes over the row.
// CHECK-LABEL: func.func private @centered
// CHECK: vector.reduction <add>
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: arith.subf %{{.*}} : vector<8xf32>
// CHECK: vector.store
// CHECK-NOT: memref.alloc
// CHECK: return
func.func private @centered(%a: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %e = tensor.empty() : tensor<4x64xf32>
  %r = tensor.empty() : tensor<4xf32>
  %z = arith.constant 0.0 : f32
  %n = arith.constant 0.015625 : f32
  %s0 = linalg.fill ins(%z : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x64xf32>) outs(%s0 : tensor<4xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %t = arith.addf %x, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %c = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %s : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%x: f32, %sum: f32, %o: f32):
    %mean = arith.mulf %sum, %n : f32
    %t = arith.subf %x, %mean : f32
    linalg.yield %t : f32
  } -> tensor<4x64xf32>
  return %c : tensor<4x64xf32>
}

// A window of 49 elements whose lanes lie apart is a loop: unrolled, it would be 49 times 8 loads for each vector.
// CHECK-LABEL: func.func private @strided_window
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-8: memref.load
// CHECK: return
#strided_in = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
#strided_out = affine_map<(d0, d1, d2) -> (d0)>
func.func private @strided_window(%a: tensor<7x7x64xf32>, %b: tensor<64x7x7xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#strided_in, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, #strided_out], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%a, %b : tensor<7x7x64xf32>, tensor<64x7x7xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %p = arith.addf %x, %y : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// A reduction of what another reduction of the same rows does not give: left to the fallback.
// CHECK-LABEL: func.func private @nested
// CHECK: scf.for
func.func private @nested(%a: tensor<4x64xf32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<f32>
  %z = arith.constant 0.0 : f32
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %j = linalg.fill ins(%z : f32) outs(%f : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x64xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%0 : tensor<4xf32>) outs(%j : tensor<f32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.maximumf %x, %acc : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %1 : tensor<f32>
}
