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
  %0 = "relay.tuple_get_item"(%x, %x) {index = 2} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.fused at {{.*}}: operands: expected none, found 1
func.func @main(%x: tensor<4xf32>) {
  %0 = "relay.fused"(%x) ({
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.fused at {{.*}}: values yielded: expected 1, found 2
func.func @main(%x: tensor<4xf32>) {
  %0:2 = "relay.fused"() ({
    "relay.yield"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> (tensor<4xf32>, tensor<4xf32>)
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

// CHECK: relay.if at {{.*}}: types yielded by the regions: expected ['tensor<f32>'], found ['tensor<i1>']
func.func @main(%c: tensor<i1>, %x: tensor<f32>) {
  %0 = "relay.if"(%c) ({
    "relay.yield"(%x) : (tensor<f32>) -> ()
  }, {
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }) : (tensor<i1>) -> tensor<f32>
  return
}

// -----

// CHECK: relay.call at {{.*}}: callee: expected the name of a function of the module, found elsewhere
func.func @main(%x: tensor<f32>) {
  %0 = "relay.call"(%x) {callee = "elsewhere"} : (tensor<f32>) -> tensor<f32>
  return
}
