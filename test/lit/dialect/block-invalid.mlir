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

// -----

// CHECK: tir.block at {{.*}}: expected an attribute name, found none
func.func @main(%i: index) {
  "tir.block"(%i) ({}, {
  ^bb0(%v: index):
  }) {iterators = ["parallel"], extents = [8]} : (index) -> ()
  return
}

// -----

// CHECK: tir.block at {{.*}}: expected an attribute iterators, found none
func.func @main(%i: index) {
  "tir.block"(%i) ({}, {
  ^bb0(%v: index):
  }) {name = "b", extents = [8]} : (index) -> ()
  return
}

// -----

// CHECK: tir.block at {{.*}}: expected an attribute extents, found none
func.func @main(%i: index) {
  "tir.block"(%i) ({}, {
  ^bb0(%v: index):
  }) {name = "b", iterators = ["parallel"]} : (index) -> ()
  return
}

// -----

// CHECK: tir.block 'b': expected 1 operands and pairs of a value and its limit, found 0 operands
func.func @main(%i: index) {
  "tir.block"() ({}, {
  ^bb0(%v: index):
  }) {name = "b", iterators = ["parallel"], extents = [8]} : () -> ()
  return
}

// -----

// CHECK: tir.block 'b': expected 1 operands and pairs of a value and its limit, found 2 operands
func.func @main(%i: index) {
  "tir.block"(%i, %i) ({}, {
  ^bb0(%v: index):
  }) {name = "b", iterators = ["parallel"], extents = [8]} : (index, index) -> ()
  return
}

// -----

// CHECK: tir.block 'b': body: expected one block, found 0
func.func @main(%i: index) {
  "tir.block"(%i) ({}, {}) {name = "b", iterators = ["parallel"], extents = [8]} : (index) -> ()
  return
}

// -----

// CHECK: tir.block 'b': body: expected 1 arguments of type index, found 2
func.func @main(%i: index) {
  "tir.block"(%i) ({}, {
  ^bb0(%v: index, %w: index):
  }) {name = "b", iterators = ["parallel"], extents = [8]} : (index) -> ()
  return
}

// -----

// CHECK: tir.block 'b': init: expected 1 arguments of type index, found 0
func.func @main(%i: index) {
  "tir.block"(%i) ({
  ^bb0:
  }, {
  ^bb0(%v: index):
  }) {name = "b", iterators = ["parallel"], extents = [8]} : (index) -> ()
  return
}
