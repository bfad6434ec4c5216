// RUN: relayc-opt %s --passes te-to-tir --config "target=cpu -mcpu=x86-64-v4" | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

func.func @main() {
  return
}

// Whole steps, then masked vectors, on several threads where the work of the call is worth it. Buffers are flat.
// CHECK-LABEL: func.func private @elementwise(
// CHECK-SAME: memref<?xf32>, %{{.*}}: memref<?xf32>, %[[N:.*]]: index {relay.symbol = "n"}
// CHECK: %[[WORTH:.*]] = arith.cmpi sge
// CHECK: "relay.parallel_if"(%[[WORTH]])
// CHECK: scf.parallel
// CHECK: scf.for
// CHECK-COUNT-4: vector.load
// CHECK: scf.for
// CHECK: vector.create_mask
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
// CHECK: return
func.func private @elementwise(%a: tensor<?x10xf32, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<?x10xf32, ["n"]> {
  %e = tensor.empty(%n) : tensor<?x10xf32, ["n"]>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<?x10xf32, ["n"]>) outs(%e : tensor<?x10xf32, ["n"]>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<?x10xf32, ["n"]>
  return %0 : tensor<?x10xf32, ["n"]>
}

// Where the elements are a multiple of several vectors nothing is left over.
// CHECK-LABEL: func.func private @whole_vectors(
// CHECK: scf.for
// CHECK-COUNT-4: vector.load
// CHECK-COUNT-4: vector.store
// CHECK-NOT: scf.for
// CHECK: return
func.func private @whole_vectors(%a: tensor<?x64xf32, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<?x64xf32, ["n"]> {
  %e = tensor.empty(%n) : tensor<?x64xf32, ["n"]>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<?x64xf32, ["n"]>) outs(%e : tensor<?x64xf32, ["n"]>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<?x64xf32, ["n"]>
  return %0 : tensor<?x64xf32, ["n"]>
}

// A row of at most one vector stays in a register; longer ones add up several vectors side by side where there are that many.
// CHECK-LABEL: func.func private @row_sums(
// CHECK: %[[SHORT:.*]] = arith.cmpi ult
// CHECK: scf.if %[[SHORT]] {
// CHECK: vector.maskedload
// CHECK-NOT: scf.for
// CHECK: vector.reduction <add>
// CHECK: } else {
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-4: vector.load
// CHECK: scf.for
// CHECK: vector.maskedload
// CHECK: arith.select
// CHECK: vector.reduction <add>
// CHECK: return
func.func private @row_sums(%a: tensor<5x?xf32, ["n"]>, %n: index {relay.symbol = "n"}) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<5x?xf32, ["n"]>) outs(%f : tensor<5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %o : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
