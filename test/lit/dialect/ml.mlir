// RUN: relayc-opt %s --passes infer-type | filecheck %s

// CHECK-LABEL: func.func @trees
// CHECK-NEXT: "relay.ml_tree_leaves"{{.*}} -> tensor<3x?xi32, {{.*}}>
// CHECK-NEXT: "relay.ml_leaf_weights"{{.*}} -> tensor<?x2xf64, {{.*}}>
func.func @trees(%x: tensor<?x5xf32>, %roots: tensor<3xi32>, %children: tensor<9xi32>, %features: tensor<9xi32>,
    %highs: tensor<9xf32>, %lows: tensor<1xf32>, %missing: tensor<9xi1>, %weights: tensor<9x2xf64>) {
  %0 = "relay.ml_tree_leaves"(%x, %roots, %children, %features, %highs, %lows, %missing) {depth = 2, num_features = 5}
    : (tensor<?x5xf32>, tensor<3xi32>, tensor<9xi32>, tensor<9xi32>, tensor<9xf32>, tensor<1xf32>, tensor<9xi1>) -> tensor<3x?xi32>
  %1 = "relay.ml_leaf_weights"(%0, %weights) {aggregate = "max"} : (tensor<3x?xi32>, tensor<9x2xf64>) -> tensor<?x2xf64>
  return
}

// CHECK-LABEL: func.func @coupling
// CHECK-NEXT: "relay.ml_coupled_probabilities"{{.*}} -> tensor<?x3xf32, {{.*}}>
func.func @coupling(%q: tensor<?x3x3xf32>) {
  %0 = "relay.ml_coupled_probabilities"(%q) : (tensor<?x3x3xf32>) -> tensor<?x3xf32>
  return
}

// CHECK-LABEL: func.func @search
// CHECK-NEXT: "relay.searchsorted"{{.*}} -> tensor<?x2xi64, {{.*}}>
func.func @search(%sequence: tensor<7xf32>, %values: tensor<?x2xf32>) {
  %0 = "relay.searchsorted"(%sequence, %values) {dtype = "int64"} : (tensor<7xf32>, tensor<?x2xf32>) -> tensor<?x2xi64>
  return
}
