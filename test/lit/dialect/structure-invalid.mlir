// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.constant at {{.*}}: parameter: expected attributes shape and dtype, found none
func.func @main() {
  %0 = "relay.constant"() {value = "weight"} : () -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.constant at {{.*}}: value: expected dense elements or the key of a parameter, found 4 : i64
func.func @main() {
  %0 = "relay.constant"() {value = 4} : () -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.tuple_get_item at {{.*}}: index: expected a value in [0, 2), found 2
func.func @main(%x: tensor<4xf32>) {
  %0 = builtin.unrealized_conversion_cast %x, %x : tensor<4xf32>, tensor<4xf32> to tuple<tensor<4xf32>, tensor<4xf32>>
  %1 = "relay.tuple_get_item"(%0) {index = 2} : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.tuple_get_item at {{.*}}: data: expected a tuple, found tensor<4xf32>
func.func @main(%x: tensor<4xf32>) {
  %0 = "relay.tuple_get_item"(%x) {index = 0} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.fused at {{.*}}: arguments of group: expected (), found (tensor<4xf32>)
func.func @main(%x: tensor<4xf32>) {
  %0 = "relay.fused"() ({
  ^bb0(%a: tensor<4xf32>):
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }) : () -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.fused at {{.*}}: expected result type(s) tensor<4xf32>, found tensor<5xf32>
func.func @main(%x: tensor<4xf32>) {
  %0 = "relay.fused"() ({
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }) : () -> tensor<5xf32>
  return
}

// -----

// The operators of a group are checked too.
// CHECK: relay.exp at "inner": expected result type(s) tensor<4xf32>, found tensor<5xf32>
func.func @main(%x: tensor<4xf32>) {
  %0 = "relay.fused"() ({
    %1 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<5xf32> loc("inner")
    "relay.yield"(%1) : (tensor<5xf32>) -> ()
  }) : () -> tensor<5xf32>
  return
}

// -----

// CHECK: relay.if at {{.*}}: cond: expected tensor<i1>, found tensor<f32>
func.func @main(%c: tensor<f32>) {
  %0 = "relay.if"(%c) ({
    "relay.yield"(%c) : (tensor<f32>) -> ()
  }, {
    "relay.yield"(%c) : (tensor<f32>) -> ()
  }) : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// CHECK: relay.if at {{.*}}: types yielded by the regions: expected tensor<f32>, found tensor<i1>
func.func @main(%c: tensor<i1>, %x: tensor<f32>) {
  %0 = "relay.if"(%c) ({
    "relay.yield"(%x) : (tensor<f32>) -> ()
  }, {
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }) : (tensor<i1>) -> tensor<f32>
  return
}

// -----

// CHECK: relay.while at {{.*}}: arguments of step: expected (tensor<f32>), found (tensor<2xf32>)
func.func @main(%c: tensor<i1>, %x: tensor<f32>) {
  %0 = "relay.while"(%x) ({
  ^bb0(%a: tensor<f32>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<2xf32>):
    "relay.yield"(%x) : (tensor<f32>) -> ()
  }) : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// CHECK: relay.while at {{.*}}: value yielded by cond: expected tensor<i1>, found tensor<f32>
func.func @main(%x: tensor<f32>) {
  %0 = "relay.while"(%x) ({
  ^bb0(%a: tensor<f32>):
    "relay.yield"(%a) : (tensor<f32>) -> ()
  }, {
  ^bb0(%a: tensor<f32>):
    "relay.yield"(%a) : (tensor<f32>) -> ()
  }) : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// CHECK: relay.while at {{.*}}: type yielded by step: expected tensor<f32>, found tensor<i1>
func.func @main(%c: tensor<i1>, %x: tensor<f32>) {
  %0 = "relay.while"(%x) ({
  ^bb0(%a: tensor<f32>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<f32>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }) : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// CHECK: 'func.call' op 'elsewhere' does not reference a valid function
func.func @main(%x: tensor<f32>) {
  %0 = func.call @elsewhere(%x) : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// CHECK: unregistered operation 'relay.nn_conv4d' found in dialect ('relay') that does not allow unknown operations
func.func @main(%x: tensor<f32>) {
  %0 = "relay.nn_conv4d"(%x) : (tensor<f32>) -> tensor<f32>
  return
}
