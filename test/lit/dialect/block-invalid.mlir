// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: tir.block 'b': iterators: expected some of parallel, reduction, opaque, found 'serial'
func.func @main(%i: index) {
  "tir.block"(%i) ({}, {
  ^bb0(%v: index):
  }) {name = "b", iterators = ["serial"], extents = [8]} : (index) -> ()
  return
}

// -----

// CHECK: tir.block 'b': extents: expected 1, one for each iterator, found 2
func.func @main(%i: index) {
  "tir.block"(%i) ({}, {
  ^bb0(%v: index):
  }) {name = "b", iterators = ["parallel"], extents = [8, 8]} : (index) -> ()
  return
}
