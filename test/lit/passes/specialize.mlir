// RUN: relayc-opt %s --passes specialize --split-input-file | filecheck %s
// RUN: relayc-opt %s --passes graph-pipeline,lower-to-te --split-input-file | filecheck %s --check-prefix TE
// RUN: relayc-opt %s --passes graph-pipeline,lower-to-te,te-to-tir --split-input-file | filecheck %s --check-prefix TIR

// There is a private copy of main for each entry, those of most symbols first; its symbols are numbers, or stay.
// CHECK-LABEL: func.func @main(%arg0: tensor<?x?xf32, ["n", "m"]>
// CHECK-SAME: relay.specialized = [@main_m_8_n_4, @main_n_1]
// CHECK-LABEL: func.func private @main_m_8_n_4(%arg0: tensor<4x8xf32>
// CHECK-SAME: relay.known_as = "main", relay.sizes = {m = 8 : i64, n = 4 : i64}
// CHECK-NEXT: "relay.exp"(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-LABEL: func.func private @main_n_1(%arg0: tensor<1x?xf32, ["m"]>
// CHECK-NEXT: "relay.exp"(%arg0) : (tensor<1x?xf32, ["m"]>) -> tensor<1x?xf32, ["m"]>

// main compares its symbols with their sizes, and calls what is for these, or for all.
// TE-LABEL: func.func @main(%arg0: tensor<?x?xf32, ["n", "m"]>
// TE-SAME: %[[M:.*]]: index {relay.symbol = "m"}, %[[N:.*]]: index {relay.symbol = "n"})
// TE: %[[C8:.*]] = arith.constant 8 : index
// TE: %[[A:.*]] = arith.cmpi eq, %[[M]], %[[C8]] : index
// TE: %[[C4:.*]] = arith.constant 4 : index
// TE: %[[B:.*]] = arith.cmpi eq, %[[N]], %[[C4]] : index
// TE: %[[AB:.*]] = arith.andi %[[A]], %[[B]] : i1
// TE: scf.if %[[AB]]
// TE-NEXT: %[[X:.*]] = tensor.cast %arg0 : tensor<?x?xf32, ["n", "m"]> to tensor<4x8xf32>
// TE-NEXT: %[[Y:.*]] = func.call @main_m_8_n_4(%[[X]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// TE-NEXT: %[[Z:.*]] = tensor.cast %[[Y]] : tensor<4x8xf32> to tensor<?x?xf32, ["n", "m"]>
// TE-NEXT: scf.yield %[[Z]]
// TE: else
// TE: scf.if
// TE: func.call @main_n_1(%{{.*}}, %[[M]])
// TE: else
// TE: func.call @main_general(%arg0, %[[M]], %[[N]])
// TE: func.func private @main_general
// TE-SAME: relay.known_as = "main"

// In memory nothing is copied; the arena is that of the sizes of the call.
// TIR-LABEL: func.func @main(
// TIR-SAME: relay.arena = "max(
// TIR: %[[A:.*]] = arith.cmpi eq
// TIR: %[[B:.*]] = arith.cmpi eq
// TIR: %[[AB:.*]] = arith.andi %[[A]], %[[B]] : i1
// TIR: cf.cond_br %[[AB]]
// TIR: memref.reinterpret_cast %arg0 to offset: [0], sizes: [4, 8], strides: [8, 1]
// TIR: call @main_m_8_n_4
// TIR: call @main_n_1
// TIR: call @main_general
module attributes {relay.symbols = {n = array<i64: 1, 64, 8>, m = array<i64: 1, 64, 8>}} {
  func.func @main(%x: tensor<?x?xf32, ["n", "m"]> {relay.name = "x"}) -> tensor<?x?xf32, ["n", "m"]>
      attributes {relay.specialize = [{n = 1}, {m = 8, n = 4}]} {
    %0 = "relay.exp"(%x) : (tensor<?x?xf32, ["n", "m"]>) -> tensor<?x?xf32, ["n", "m"]>
    return %0 : tensor<?x?xf32, ["n", "m"]>
  }
}
