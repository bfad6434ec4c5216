// RUN: relayc-opt %s --passes bufferize-programs --split-input-file | filecheck %s

// Tensors become bytes, which each call views as what it takes; a reshape is another view. The result is written where the caller wants it.
// The parameter is a global, in the layout that the kernel wants. The kernel takes a workspace.
// CHECK: memref.global "private" @w : memref<2x4x8xf32> {relay.packing = {{.*}}, relay.param = "w"}
// CHECK-NOT: .te
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%arg0: memref<16xf32> {relay.name = "x"}, %arg1: memref<16xf32> {relay.name = "y"}) attributes {relay.tensors = (tensor<16xf32>) -> tensor<16xf32>}
// CHECK: %[[T:.*]] = memref.alloc() : memref<64xi8>
// CHECK: %[[V:.*]] = memref.view %[[T]][%c0{{.*}}][] : memref<64xi8> to memref<16xf32>
// CHECK: call @k(%arg0, %[[V]])
// CHECK: %[[M:.*]] = memref.view %[[T]][%c0{{.*}}][] : memref<64xi8> to memref<1x16xf32>
// CHECK: %[[W:.*]] = memref.get_global @w
// CHECK: %[[Y:.*]] = memref.cast
// CHECK: %[[S:.*]] = memref.alloc() : memref<32xi8>
// CHECK: %[[SV:.*]] = memref.view %[[S]]
// CHECK: call @product(%[[M]], %[[W]], %[[Y]], %[[SV]])
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) {
  return
}
func.func private @product(%x: memref<1x16xf32>, %w: memref<2x4x8xf32> {relay.packing = {batch = 0 : i64, extents = array<i64: 16, 4>, kind = "columns", map = affine_map<(d0, d1) -> (d1, d0)>, source = array<i64: 4, 16>}}, %y: memref<1x16xf32>, %s: memref<32xi8>) {
  return
}
func.func private @k.te(tensor<16xf32>) -> tensor<16xf32> attributes {relay.tir = @k}
func.func private @product.te(tensor<1x16xf32>, tensor<4x16xf32>) -> tensor<1x16xf32> attributes {relay.tir = @product}
func.func @main(%x: tensor<16xf32> {relay.name = "x"}) -> (tensor<16xf32> {relay.name = "y"}) {
  %w = "relay.constant"() {value = "w", shape = array<i64: 4, 16>, dtype = "float32"} : () -> tensor<4x16xf32>
  %0 = call @k.te(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [1, 16] : tensor<16xf32> into tensor<1x16xf32>
  %2 = call @product.te(%1, %w) : (tensor<1x16xf32>, tensor<4x16xf32>) -> tensor<1x16xf32>
  %3 = tensor.collapse_shape %2 [[0, 1]] : tensor<1x16xf32> into tensor<16xf32>
  return %3 : tensor<16xf32>
}

// -----

// What a concatenation joins are parts of one buffer.
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = memref.alloc() : memref<128xi8>
// CHECK: %[[A:.*]] = memref.view %[[T]][%c0{{.*}}][] : memref<128xi8> to memref<16xf32>
// CHECK: call @k(%arg0, %[[A]])
// CHECK: %[[AT:.*]] = arith.constant 64 : index
// CHECK: %[[B:.*]] = memref.view %[[T]][%[[AT]]][] : memref<128xi8> to memref<16xf32>
// CHECK: call @k(%arg0, %[[B]])
// CHECK: %[[C:.*]] = memref.view %[[T]][%c0{{.*}}][] : memref<128xi8> to memref<32xf32>
// CHECK: call @use(%[[C]], %arg1)
func.func private @k(%x: memref<16xf32>, %y: memref<16xf32>) {
  return
}
func.func private @use(%x: memref<32xf32>, %y: memref<32xf32>) {
  return
}
func.func private @k.te(tensor<16xf32>) -> tensor<16xf32> attributes {relay.tir = @k}
func.func private @use.te(tensor<32xf32>) -> tensor<32xf32> attributes {relay.tir = @use}
func.func @main(%x: tensor<16xf32>) -> tensor<32xf32> {
  %0 = call @k.te(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = call @k.te(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %2 = tensor.concat dim(0) %0, %1 : (tensor<16xf32>, tensor<16xf32>) -> tensor<32xf32>
  %3 = call @use.te(%2) : (tensor<32xf32>) -> tensor<32xf32>
  return %3 : tensor<32xf32>
}

// -----

// Both branches write the result where the function returns it. The loop carries nothing: what it begins with is written to its place before,
// and each round writes there again.
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = memref.alloc() : memref<16xi8>
// CHECK: %[[E:.*]] = memref.load %arg1[] : memref<i8>
// CHECK: %[[P:.*]] = arith.trunci %[[E]]
// CHECK: scf.if %[[P]] {
// CHECK: func.call @k(%arg0, %[[V:[a-z_0-9]+]])
// CHECK: } else {
// CHECK: func.call @k(%arg0, %[[U:[a-z_0-9]+]])
// CHECK: call @k(%[[W:[a-z_0-9]+]], %arg2)
// CHECK: scf.while : () -> () {
// CHECK: memref.load %arg1[]
// CHECK: scf.condition
// CHECK: } do {
// CHECK: func.call @k(%arg2, %[[Z:.*]])
// CHECK: func.call @k(%[[Z2:.*]], %arg2)
// CHECK: scf.yield
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  return
}
func.func private @k.te(tensor<4xf32>) -> tensor<4xf32> attributes {relay.tir = @k}
func.func @main(%x: tensor<4xf32>, %c: tensor<i8>) -> tensor<4xf32> {
  %e = tensor.extract %c[] : tensor<i8>
  %p = arith.trunci %e : i8 to i1
  %r = scf.if %p -> (tensor<4xf32>) {
    %0 = func.call @k.te(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    %0 = func.call @k.te(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  %i = call @k.te(%r) : (tensor<4xf32>) -> tensor<4xf32>
  %s = scf.while (%a = %i) : (tensor<4xf32>) -> tensor<4xf32> {
    %f = tensor.extract %c[] : tensor<i8>
    %q = arith.trunci %f : i8 to i1
    scf.condition(%q) %a : tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>):
    %0 = func.call @k.te(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @k.te(%0) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}
