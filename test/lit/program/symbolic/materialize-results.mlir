// RUN: relayc-opt %s --split-input-file --passes materialize-results | filecheck %s

// What a loop carries and changes its size has memory of its own in every round: what it begins with is copied, and nothing else is. The copy
// is a kernel for any size.
// CHECK: func.func private @[[COPY:.*]](%arg0: tensor<?xf32, ["d00"]>{{.*}}, %arg1: index {relay.symbol = "d00"})
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]] = tensor.cast %arg0
// CHECK: call @[[COPY]](
// CHECK: scf.while
// CHECK: do
// CHECK: %[[G:.*]] = func.call @grow
// CHECK-NOT: @[[COPY]]
// CHECK: scf.yield
func.func private @grow(%x: tensor<?xf32, ["m"]>, %m: index {relay.symbol = "m"}) -> tensor<?xf32, ["m + 1"]> {
  %c = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<?xf32, ["m"]> to tensor<?xf32, ["m + 1"]>
  return %p : tensor<?xf32, ["m + 1"]>
}
func.func @main(%x: tensor<?xf32, ["n"]>, %b: tensor<i8>, %n: index {relay.symbol = "n"}) -> (tensor<?xf32, ["m"]>, index {relay.symbol = "m"}) {
  %first = tensor.cast %x : tensor<?xf32, ["n"]> to tensor<?xf32, ["m"]>
  %one = arith.constant 1 : index
  %r:2 = scf.while (%y = %first, %m = %n) : (tensor<?xf32, ["m"]>, index) -> (tensor<?xf32, ["m"]>, index) {
    %e = tensor.extract %b[] : tensor<i8>
    %p = arith.trunci %e : i8 to i1
    scf.condition(%p) %y, %m : tensor<?xf32, ["m"]>, index
  } do {
  ^bb0(%y: tensor<?xf32, ["m"]>, %m: index):
    %g = func.call @grow(%y, %m) : (tensor<?xf32, ["m"]>, index) -> tensor<?xf32, ["m + 1"]>
    %h = tensor.cast %g : tensor<?xf32, ["m + 1"]> to tensor<?xf32, ["m"]>
    %k = arith.addi %m, %one : index
    scf.yield %h, %k : tensor<?xf32, ["m"]>, index
  } attributes {relay.symbols = ["m"]}
  return %r#0, %r#1 : tensor<?xf32, ["m"]>, index
}

// -----

// What has a late size is copied where the program gives it as a tensor of a size that is known before: its memory is the heap's, that of the
// output the caller's.
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]] = call @made
// CHECK: %[[Y:.*]] = tensor.cast %[[M]] : tensor<?xf32, ["m"]> to tensor<5xf32>
// CHECK: %[[C:.*]] = call @[[COPY:.*]](%[[Y]])
// CHECK: return %[[C]] : tensor<5xf32>
func.func private @made(%m: index {relay.symbol = "m"}) -> tensor<?xf32, ["m"]> {
  %e = tensor.empty(%m) : tensor<?xf32, ["m"]>
  return %e : tensor<?xf32, ["m"]>
}
func.func @main(%b: tensor<1xi64>) -> tensor<5xf32> {
  %zero = arith.constant 0 : index
  %e = tensor.extract %b[%zero] : tensor<1xi64>
  %m = arith.index_cast %e {relay.symbol = "m"} : i64 to index
  %x = call @made(%m) : (index) -> tensor<?xf32, ["m"]>
  %y = tensor.cast %x : tensor<?xf32, ["m"]> to tensor<5xf32>
  return %y : tensor<5xf32>
}
