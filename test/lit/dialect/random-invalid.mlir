// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.random_threefry_generate at {{.*}}: key: expected tensor<2xui32> or tensor<8xui64>, found tensor<10xui64>
func.func @main(%key: tensor<10xui64>) {
  %0 = "relay.random_threefry_generate"(%key) {out_shape = array<i64: 3>} : (tensor<10xui64>) -> tensor<3xui32>
  return
}

// -----

// CHECK: relay.random_threefry_generate at {{.*}}: dtype: expected uint32 or uint64, found int8
func.func @main(%key: tensor<2xui32>) {
  %0 = "relay.random_threefry_generate"(%key) {out_shape = array<i64: 3>, dtype = "int8"} : (tensor<2xui32>) -> tensor<3xi8>
  return
}

// -----

// CHECK: relay.random_threefry_generate at {{.*}}: dtype: expected uint64, found uint32
func.func @main(%key: tensor<8xui64>) {
  %0 = "relay.random_threefry_generate"(%key) {out_shape = array<i64: 3>} : (tensor<8xui64>) -> tensor<3xui32>
  return
}
