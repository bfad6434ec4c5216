// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.define_sizes at {{.*}}: data: expected an integer element type, found tensor<f32>
func.func @main(%x: tensor<f32>) {
  "relay.define_sizes"(%x) {names = ["n"]} : (tensor<f32>) -> ()
  return
}

// -----

// CHECK: relay.define_sizes at {{.*}}: names: expected a name for each of the 2 elements, found ['n']
func.func @main(%x: tensor<2xi64>) {
  "relay.define_sizes"(%x) {names = ["n"]} : (tensor<2xi64>) -> ()
  return
}

// -----

// CHECK: relay.define_sizes at {{.*}}: names: expected identifiers, found ['2*n']
func.func @main(%x: tensor<i64>) {
  "relay.define_sizes"(%x) {names = ["2*n"]} : (tensor<i64>) -> ()
  return
}

// -----

// CHECK: relay.match_shape at {{.*}}: shape: expected 2 sizes for tensor<?x4xf32, ["n"]>, found (n,)
func.func @main(%x: tensor<?x4xf32, ["n"]>) {
  %0 = "relay.match_shape"(%x) {shape = ["n"]} : (tensor<?x4xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return
}

// -----

// CHECK: relay.match_shape at {{.*}}: shape, dimension 1: expected a size that may be that of tensor<?x4xf32, ["n"]>, found 5
func.func @main(%x: tensor<?x4xf32, ["n"]>) {
  %0 = "relay.match_shape"(%x) {shape = ["n", 5]} : (tensor<?x4xf32, ["n"]>) -> tensor<?x5xf32, ["n"]>
  return
}

// -----

// CHECK: relay.match_shape at {{.*}}: attribute shape: expected a sequence of sizes, found ["n +", 4]
func.func @main(%x: tensor<?x4xf32, ["n"]>) {
  %0 = "relay.match_shape"(%x) {shape = ["n +", 4]} : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["n"]>
  return
}

// -----

// CHECK: relay.exp at {{.*}}: expected result type(s) tensor<?x4xf32, ["n"]>, found tensor<?x4xf32, ["m"]>
func.func @main(%x: tensor<?x4xf32, ["n"]>) {
  %0 = "relay.exp"(%x) : (tensor<?x4xf32, ["n"]>) -> tensor<?x4xf32, ["m"]>
  return
}

// -----

// CHECK: relay.if at {{.*}}: types yielded by the regions: expected tensor<?xf32, ["n"]>, found tensor<?xf32, ["2*n"]>
func.func @main(%c: tensor<i1>, %x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["2*n"]>) {
  %0 = "relay.if"(%c) ({
    "relay.yield"(%x) : (tensor<?xf32, ["n"]>) -> ()
  }, {
    "relay.yield"(%y) : (tensor<?xf32, ["2*n"]>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32, ["n"]>
  return
}

// -----

// CHECK: relay.while at {{.*}}: type yielded by step: expected k to be n, found n + 1
func.func @main(%c: tensor<i1>, %x: tensor<?x?xf32, ["n", "n"]>, %y: tensor<?x?xf32, ["n", "n + 1"]>) {
  %0 = "relay.while"(%x) ({
  ^bb0(%a: tensor<?x?xf32, ["k", "k"]>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<?x?xf32, ["k", "k"]>):
    "relay.yield"(%y) : (tensor<?x?xf32, ["n", "n + 1"]>) -> ()
  }) : (tensor<?x?xf32, ["n", "n"]>) -> tensor<?x?xf32, ["k", "k"]>
  return
}
