// RUN: relayc-opt %s --passes te-to-tir | filecheck %s --check-prefix=TIR
// RUN: relayc-opt %s --passes te-to-tir,tir-to-llvm | filecheck %s --check-prefix=LLVM

// A packed function is declared with its registered name and its tensors as callers see them: signs, bool, and the dimensions of an empty one.
// A call gives a status.
// TIR: func.func private @p(memref<2x3xi8>, memref<0xf32>, memref<2xi8>) -> i32
// TIR-SAME: relay.packed = "my.function", relay.tensors = (tensor<2x3xui8>, tensor<0x4xf32>) -> tensor<2xi1>
// TIR-LABEL: func.func @main
// TIR-SAME: -> i32
// TIR: %[[S:.*]] = call @p(%arg0, %arg1, %arg2)
// TIR: %[[BAD:.*]] = arith.cmpi ne, %[[S]]
// TIR: cf.cond_br %[[BAD]]

// In the llvm stage it has a body, which hands the pointers over to the function that makes tensors of them by its row of a table: three
// tensors, the name at byte 0 with 11 bytes, the error at byte 12; then uint8 (0x10801) of rank 2, (2, 3) with strides (3, 1), and so on.
// LLVM-LABEL: llvm.func @main
// LLVM: llvm.call @p
// LLVM: llvm.func internal @p(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr) -> i32
// LLVM: llvm.store %arg0
// LLVM: llvm.call @__relayc_call_packed
// LLVM: llvm.func internal @__relayc_call_packed
// LLVM: @TVMFFIFunctionGetGlobal
// LLVM: @TVMFFIFunctionCall
// LLVM: @__relayc_call_table(dense<[3, 0, 11, 12, 290275364700162, 2, 2, 3, 3, 1,
// LLVM: @__relayc_call_strings("my.function\00call_packed: expected a registered packed function my.function, found none\00
func.func private @p(tensor<2x3xi8>, tensor<0x4xf32>) -> tensor<2xi8> attributes {
  relay.packed = "my.function", relay.input_dtypes = ["uint8", "float32"], relay.output_dtypes = ["bool"]}
func.func @main(%x: tensor<2x3xi8>, %y: tensor<0x4xf32>) -> tensor<2xi8> {
  %0 = call @p(%x, %y) : (tensor<2x3xi8>, tensor<0x4xf32>) -> tensor<2xi8>
  return %0 : tensor<2xi8>
}
