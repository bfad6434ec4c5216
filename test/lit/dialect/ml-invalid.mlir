// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.ml_tree_leaves at {{.*}}: data: expected at least 6 features, found tensor<4x5xf32>
func.func @main(%x: tensor<4x5xf32>, %i: tensor<9xi32>, %v: tensor<9xf32>, %one: tensor<1xf32>, %m: tensor<1xi1>) {
  %0 = "relay.ml_tree_leaves"(%x, %i, %i, %i, %v, %one, %m) {depth = 2, num_features = 6}
    : (tensor<4x5xf32>, tensor<9xi32>, tensor<9xi32>, tensor<9xi32>, tensor<9xf32>, tensor<1xf32>, tensor<1xi1>) -> tensor<9x4xi32>
  return
}

// -----

// CHECK: relay.ml_tree_leaves at {{.*}}: lows: expected 9 nodes, found tensor<2xf32>
func.func @main(%x: tensor<4x5xf32>, %i: tensor<9xi32>, %v: tensor<9xf32>, %two: tensor<2xf32>, %m: tensor<1xi1>) {
  %0 = "relay.ml_tree_leaves"(%x, %i, %i, %i, %v, %two, %m) {depth = 2}
    : (tensor<4x5xf32>, tensor<9xi32>, tensor<9xi32>, tensor<9xi32>, tensor<9xf32>, tensor<2xf32>, tensor<1xi1>) -> tensor<9x4xi32>
  return
}

// -----

// CHECK: relay.ml_leaf_weights at {{.*}}: aggregate: expected one of sum, min, max, found mean
func.func @main(%leaves: tensor<3x4xi32>, %weights: tensor<9x2xf32>) {
  %0 = "relay.ml_leaf_weights"(%leaves, %weights) {aggregate = "mean"} : (tensor<3x4xi32>, tensor<9x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

// CHECK: relay.ml_coupled_probabilities at {{.*}}: system, dimension 1: expected 3, found tensor<4x2x3xf32>
func.func @main(%q: tensor<4x2x3xf32>) {
  %0 = "relay.ml_coupled_probabilities"(%q) : (tensor<4x2x3xf32>) -> tensor<4x2xf32>
  return
}

// -----

// CHECK: relay.searchsorted at {{.*}}: values: expected the element type of sorted_sequence, float32, found tensor<4xi32>
func.func @main(%sequence: tensor<7xf32>, %values: tensor<4xi32>) {
  %0 = "relay.searchsorted"(%sequence, %values) : (tensor<7xf32>, tensor<4xi32>) -> tensor<4xi32>
  return
}
