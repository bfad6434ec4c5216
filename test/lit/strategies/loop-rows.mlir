// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,materialize-results,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l2-bytes=262144" | filecheck %s

// A product in a loop of a number of rows that only a call knows is made for few of them: tiles of 4, 2 and 1 rows, whose sums stay in
// registers over the whole reduction, in panels that are visited to and fro. Tiles of 4 rows have something to do while panels come. The
// sums of a panel wait in memory, so that one loop over rows stores those of all tiles, and once more those of the narrower last panel.
// CHECK: func.func private @fused_dense.turn(
// CHECK-SAME: %[[WAY:[a-z0-9]+]]: index)
// CHECK: %[[SUMS:.*]] = memref.alloca
// CHECK-NOT: memref.alloca
// CHECK: arith.cmpi ne, %[[WAY]]
// CHECK: scf.for {{.*}} iter_args({{(%[^,]*, ){11}%[^,]*}}) -> (vector<8xf32>
// CHECK: memref.prefetch
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-NOT: memref.prefetch
// CHECK: scf.for {{.*}} step %c2{{[_0-9]*}} iter_args(
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for {{.*}} step %c4{{[_0-9]*}} iter_args(
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-NOT: vector.fma
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-3: vector.load %[[SUMS]]
// CHECK: else
// CHECK: scf.for
// CHECK-COUNT-2: vector.load %[[SUMS]]
// CHECK-NOT: vector.load %[[SUMS]]
// CHECK: return
// CHECK-LABEL: func.func @main
func.func @main(%i: tensor<i64>, %x: tensor<?x256xf32, ["n"]>) -> tensor<?x256xf32, ["n"]> {
  %w = "relay.constant"() {value = "w", shape = array<i64: 256, 256>, dtype = "float32"} : () -> tensor<256x256xf32>
  %init = builtin.unrealized_conversion_cast %i, %x : tensor<i64>, tensor<?x256xf32, ["n"]> to tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>
  %0 = "relay.while"(%init) ({
  ^bb0(%c: tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>):
    %n = "relay.tuple_get_item"(%c) {index = 0} : (tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>) -> tensor<i64>
    %most = "relay.constant"() {value = dense<9> : tensor<i64>} : () -> tensor<i64>
    %1 = "relay.less"(%n, %most) : (tensor<i64>, tensor<i64>) -> tensor<i1>
    "relay.yield"(%1) : (tensor<i1>) -> ()
  }, {
  ^bb0(%c: tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>):
    %n = "relay.tuple_get_item"(%c) {index = 0} : (tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>) -> tensor<i64>
    %h = "relay.tuple_get_item"(%c) {index = 1} : (tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>) -> tensor<?x256xf32, ["n"]>
    %one = "relay.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %m = "relay.add"(%n, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %y = "relay.nn_dense"(%h, %w) : (tensor<?x256xf32, ["n"]>, tensor<256x256xf32>) -> tensor<?x256xf32, ["n"]>
    %1 = builtin.unrealized_conversion_cast %m, %y : tensor<i64>, tensor<?x256xf32, ["n"]> to tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>
    "relay.yield"(%1) : (tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>) -> ()
  }) : (tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>) -> tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>
  %h = "relay.tuple_get_item"(%0) {index = 1} : (tuple<tensor<i64>, tensor<?x256xf32, ["n"]>>) -> tensor<?x256xf32, ["n"]>
  return %h : tensor<?x256xf32, ["n"]>
}
