// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.exp at "node7": data: expected a floating-point element type, found tensor<3xi32>
func.func @main(%x: tensor<3xi32>) {
  %0 = "relay.exp"(%x) : (tensor<3xi32>) -> tensor<3xi32> loc("node7")
  return
}

// -----

// CHECK: relay.exp at {{.*}}: expected result type(s) tensor<3xf32>, found tensor<4xf32>
func.func @main(%x: tensor<3xf32>) {
  %0 = "relay.exp"(%x) : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.logical_not at {{.*}}: data: expected element type bool (i1), found tensor<3xi8>
func.func @main(%x: tensor<3xi8>) {
  %0 = "relay.logical_not"(%x) : (tensor<3xi8>) -> tensor<3xi8>
  return
}

// -----

// CHECK: relay.cast at {{.*}}: dtype: expected one of {{.*}}float32{{.*}}, found float31
func.func @main(%x: tensor<3xi8>) {
  %0 = "relay.cast"(%x) {dtype = "float31"} : (tensor<3xi8>) -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.cast at {{.*}}: attribute dtype: expected a string, found 5
func.func @main(%x: tensor<3xi8>) {
  %0 = "relay.cast"(%x) {dtype = 5} : (tensor<3xi8>) -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.add at "sum": rhs: expected the element type of lhs, float32, found tensor<3xf64>
func.func @main(%x: tensor<3xf32>, %y: tensor<3xf64>) {
  %0 = "relay.add"(%x, %y) : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf32> loc("sum")
  return
}

// -----

// CHECK: relay.add at {{.*}}: shapes do not broadcast: expected equal or 1 in dimension 1, found (2, 3), (2, 4)
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  %0 = "relay.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

// CHECK: relay.add at {{.*}}: expected 2 operand(s) (lhs, rhs), found 1
func.func @main(%x: tensor<3xf32>) {
  %0 = "relay.add"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.subtract at {{.*}}: lhs: expected a numeric element type, found tensor<3xi1>
func.func @main(%x: tensor<3xi1>) {
  %0 = "relay.subtract"(%x, %x) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  return
}

// -----

// CHECK: relay.left_shift at {{.*}}: lhs: expected an integer element type, found tensor<3xf32>
func.func @main(%x: tensor<3xf32>) {
  %0 = "relay.left_shift"(%x, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.where at {{.*}}: condition: expected element type bool (i1), found tensor<3xf32>
func.func @main(%x: tensor<3xf32>) {
  %0 = "relay.where"(%x, %x, %x) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// CHECK: unregistered operation 'relay.frobnicate' found in dialect ('relay')
func.func @main(%x: tensor<3xf32>) {
  %0 = "relay.frobnicate"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// CHECK: relay.add at {{.*}}: lhs: expected a numeric element type, found tensor<3xf8E4M3FN>
func.func @main(%x: tensor<3xf8E4M3FN>) {
  %0 = "relay.add"(%x, %x) : (tensor<3xf8E4M3FN>, tensor<3xf8E4M3FN>) -> tensor<3xf8E4M3FN>
  return
}

// -----

// CHECK: relay.equal at {{.*}}: lhs: expected an element type that is computed in, {{.*}}, found tensor<3xi4>
func.func @main(%x: tensor<3xi4>) {
  %0 = "relay.equal"(%x, %x) : (tensor<3xi4>, tensor<3xi4>) -> tensor<3xi1>
  return
}

// -----

// CHECK: relay.cast at {{.*}}: round_mode: expected one of up, down, nearest, found away
func.func @main(%x: tensor<3xf32>) {
  %0 = "relay.cast"(%x) {dtype = "float8_e8m0fnu", round_mode = "away"} : (tensor<3xf32>) -> tensor<3xf8E8M0FNU>
  return
}
