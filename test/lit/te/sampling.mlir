// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te --split-input-file | filecheck %s

// The coordinates of a position are inputs: along the last axis first. What is read there is extracted, where it is in bounds.
// CHECK-DAG: #[[X:\w+]] = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
// CHECK-DAG: #[[Y:\w+]] = affine_map<(d0, d1, d2, d3) -> (d0, 1, d2, d3)>
// CHECK: func.func private @fused_image_grid_sample(
// CHECK: linalg.generic {indexing_maps = [#[[Y]], #[[X]], #{{\w+}}], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
// CHECK: math.floor
// CHECK: arith.fptosi {{.*}} : f32 to i32
// CHECK-COUNT-4: tensor.extract
// CHECK-NOT: tensor.extract
func.func @main(%x: tensor<1x3x8x8xf32>, %grid: tensor<1x2x4x5xf32>) -> tensor<1x3x4x5xf32> {
  %0 = "relay.image_grid_sample"(%x, %grid) : (tensor<1x3x8x8xf32>, tensor<1x2x4x5xf32>) -> tensor<1x3x4x5xf32>
  return %0 : tensor<1x3x4x5xf32>
}
