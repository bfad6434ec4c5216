// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,materialize-results,te-to-tir --config "target=cpu -mcpu=x86-64-v3 -num-threads=1 -l2-bytes=262144" | filecheck %s

// A product outside of loops does not turn.
// CHECK: func.func private @fused_dense_1(
// CHECK-NOT: arith.cmpi ne
// CHECK: vector.fma
// CHECK: return

// A product in a loop whose weight is a little larger than the second-level cache visits its panels to and fro, and asks for none of them
// ahead.
// CHECK: func.func private @fused_dense.turn(
// CHECK-SAME: %[[WAY:[a-z0-9]+]]: index)
// CHECK-NOT: memref.prefetch
// CHECK: scf.for %[[PANEL:[a-z0-9]+]] =
// CHECK: %[[MIRRORED:[0-9]+]] = arith.subi %{{.*}}, %[[PANEL]]
// CHECK: %[[BACKWARDS:[0-9]+]] = arith.cmpi ne, %[[WAY]]
// CHECK: arith.select %[[BACKWARDS]], %[[MIRRORED]], %[[PANEL]]
// CHECK-NOT: memref.prefetch
// CHECK: vector.fma
// CHECK: return
// CHECK-LABEL: func.func @main
func.func @main(%i: tensor<i64>, %x: tensor<1x256xf32>) -> tensor<1x320xf32> {
  %w = "relay.constant"() {value = "w", shape = array<i64: 256, 256>, dtype = "float32"} : () -> tensor<256x256xf32>
  %v = "relay.constant"() {value = "v", shape = array<i64: 320, 256>, dtype = "float32"} : () -> tensor<320x256xf32>
  %init = builtin.unrealized_conversion_cast %i, %x : tensor<i64>, tensor<1x256xf32> to tuple<tensor<i64>, tensor<1x256xf32>>
  %0 = "relay.while"(%init) ({
  ^bb0(%c: tuple<tensor<i64>, tensor<1x256xf32>>):
    %n = "relay.tuple_get_item"(%c) {index = 0} : (tuple<tensor<i64>, tensor<1x256xf32>>) -> tensor<i64>
    %most = "relay.constant"() {value = dense<9> : tensor<i64>} : () -> tensor<i64>
    %1 = "relay.less"(%n, %most) : (tensor<i64>, tensor<i64>) -> tensor<i1>
    "relay.yield"(%1) : (tensor<i1>) -> ()
  }, {
  ^bb0(%c: tuple<tensor<i64>, tensor<1x256xf32>>):
    %n = "relay.tuple_get_item"(%c) {index = 0} : (tuple<tensor<i64>, tensor<1x256xf32>>) -> tensor<i64>
    %h = "relay.tuple_get_item"(%c) {index = 1} : (tuple<tensor<i64>, tensor<1x256xf32>>) -> tensor<1x256xf32>
    %one = "relay.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %m = "relay.add"(%n, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %y = "relay.nn_dense"(%h, %w) : (tensor<1x256xf32>, tensor<256x256xf32>) -> tensor<1x256xf32>
    %1 = builtin.unrealized_conversion_cast %m, %y : tensor<i64>, tensor<1x256xf32> to tuple<tensor<i64>, tensor<1x256xf32>>
    "relay.yield"(%1) : (tuple<tensor<i64>, tensor<1x256xf32>>) -> ()
  }) : (tuple<tensor<i64>, tensor<1x256xf32>>) -> tuple<tensor<i64>, tensor<1x256xf32>>
  %h = "relay.tuple_get_item"(%0) {index = 1} : (tuple<tensor<i64>, tensor<1x256xf32>>) -> tensor<1x256xf32>
  %y = "relay.nn_dense"(%h, %v) : (tensor<1x256xf32>, tensor<320x256xf32>) -> tensor<1x320xf32>
  return %y : tensor<1x320xf32>
}
