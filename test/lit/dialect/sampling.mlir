// RUN: relayc-opt %s --passes infer-type --split-input-file | filecheck %s

// The result has the channels of the data at the positions of the grid.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "relay.image_grid_sample"{{.*}} -> tensor<?x3x?x5xf16, ["n", "a"]>
func.func @main(%x: tensor<?x3x?x8xf16, ["n", "h"]>, %grid: tensor<?x2x?x5xf32, ["n", "a"]>) {
  %0 = "relay.image_grid_sample"(%x, %grid) : (tensor<?x3x?x8xf16, ["n", "h"]>, tensor<?x2x?x5xf32, ["n", "a"]>) -> tensor<?x?x?x?xf16>
  return
}
