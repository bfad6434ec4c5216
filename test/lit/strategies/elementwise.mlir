// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=x86-64-v3" | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#reversed = affine_map<(d0, d1) -> (d0, -d1 + 31)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

func.func @main() {
  return
}

// Loops that every access walks as one are one: vectors side by side, then the rest, without a scalar loop.
// CHECK-LABEL: func.func private @collapsed
// CHECK-COUNT-2: memref.collapse_shape
// CHECK: vector.load %{{.*}} : memref<40xf32>, vector<8xf32>
// CHECK-COUNT-4: arith.addf %{{.*}} : vector<8xf32>
// CHECK-COUNT-4: vector.store
// CHECK: vector.store {{.*}} vector<8xf32>
// CHECK-NOT: scf.for
// CHECK: return
func.func private @collapsed(%a: tensor<4x10xf32>) -> tensor<4x10xf32> {
  %e = tensor.empty() : tensor<4x10xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x10xf32>) outs(%e : tensor<4x10xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<4x10xf32>
  return %0 : tensor<4x10xf32>
}

// A broadcast operand is read by the loop it has; a tail shorter than a vector is halved.
// CHECK-LABEL: func.func private @broadcast
// CHECK: scf.for
// CHECK: vector.load %{{.*}} : memref<84xf32>, vector<8xf32>
// CHECK: vector.load %arg1{{.*}} : memref<21xf32>, vector<8xf32>
// CHECK: vector.store %{{.*}} : memref<84xf32>, vector<8xf32>
// CHECK: vector.store %{{.*}} : memref<84xf32>, vector<4xf32>
// CHECK: memref.store %{{.*}} : memref<84xf32>
func.func private @broadcast(%a: tensor<4x21xf32>, %b: tensor<21xf32>) -> tensor<4x21xf32> {
  %e = tensor.empty() : tensor<4x21xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<4x21xf32>, tensor<21xf32>) outs(%e : tensor<4x21xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<4x21xf32>
  return %0 : tensor<4x21xf32>
}

// Reads backwards are vectors turned around.
// CHECK-LABEL: func.func private @reversed
// CHECK: vector.load %{{.*}} : memref<128xf32>, vector<8xf32>
// CHECK-NEXT: vector.shuffle {{.*}} [7, 6, 5, 4, 3, 2, 1, 0]
// CHECK-NOT: memref.load
// CHECK: return
func.func private @reversed(%a: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %e = tensor.empty() : tensor<4x32xf32>
  %0 = linalg.generic {indexing_maps = [#reversed, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x32xf32>) outs(%e : tensor<4x32xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// Every other element: two vectors, of which the second ends at the last element that is needed.
// CHECK-LABEL: func.func private @every_other
// CHECK: vector.load
// CHECK: vector.load
// CHECK-NEXT: vector.shuffle {{.*}} [0, 2, 4, 6, 9, 11, 13, 15]
// CHECK-NOT: memref.load
// CHECK: return
func.func private @every_other(%a: tensor<4x31xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<4x16xf32>
  %s = tensor.extract_slice %a[0, 0] [4, 16] [1, 2] : tensor<4x31xf32> to tensor<4x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// A transposition: blocks of 8 vectors, turned in registers, by whole cache lines on both sides. The last ones start early.
// CHECK-LABEL: func.func private @transpose
// CHECK: scf.for
// CHECK: arith.minsi
// CHECK-COUNT-8: vector.load %{{.*}} : memref<800xf32>, vector<8xf32>
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: vector.store %{{.*}} : memref<800xf32>, vector<8xf32>
// CHECK-COUNT-8: vector.load %{{.*}} : memref<800xf32>, vector<8xf32>
// CHECK-NOT: memref.load
// CHECK: return
func.func private @transpose(%a: tensor<20x40xf32>) -> tensor<40x20xf32> {
  %e = tensor.empty() : tensor<40x20xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<20x40xf32>) outs(%e : tensor<40x20xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<40x20xf32>
  return %0 : tensor<40x20xf32>
}

// Enough work for threads: blocks of a multiple of vectors in parallel, and what is left over after them.
// CHECK-LABEL: func.func private @parallel
// CHECK: scf.parallel
// CHECK: vector.store %{{.*}} : memref<100003xf32>, vector<8xf32>
// CHECK: scf.reduce
// CHECK: memref.store
// CHECK: return
func.func private @parallel(%a: tensor<100003xf32>) -> tensor<100003xf32> {
  %e = tensor.empty() : tensor<100003xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%a : tensor<100003xf32>) outs(%e : tensor<100003xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<100003xf32>
  return %0 : tensor<100003xf32>
}
