// RUN: not relayc-opt %s 2>&1 | filecheck %s

// CHECK: relay.det at {{.*}}: data: expected as many rows as columns, found tensor<2x3xf32>
func.func @main(%x: tensor<2x3xf32>) {
  %0 = "relay.det"(%x) : (tensor<2x3xf32>) -> tensor<f32>
  return
}
