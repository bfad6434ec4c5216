// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.nn_attention at {{.*}}: elements of a head of key: expected 8, found 9
func.func @main(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x9xf32>, %v: tensor<2x4x7x8xf32>) {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x9xf32>, tensor<2x4x7x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_attention at {{.*}}: heads of query: expected a multiple of the 3 of key, found 4
func.func @main(%q: tensor<2x4x5x8xf32>, %k: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x8xf32>) {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_attention at {{.*}}: mask: expected a shape that broadcasts to [2, 4, 5, 7], found tensor<5x6xf32>
func.func @main(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %m: tensor<5x6xf32>) {
  %0 = "relay.nn_attention"(%q, %k, %v, %m) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>, tensor<5x6xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_attention at {{.*}}: mask: expected the dtype of query (float32), float32 or bool, found int64
func.func @main(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %m: tensor<5x7xi64>) {
  %0 = "relay.nn_attention"(%q, %k, %v, %m) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>, tensor<5x7xi64>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_attention at {{.*}}: key_layout: expected the letters BHSD in some order, found 'BHSS'
func.func @main(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 1.0 : f64, key_layout = "BHSS"} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> tensor<?x?x?x?xf32>
  return
}

// -----

// CHECK: relay.nn_attention_lse at {{.*}}: heads of value: expected 4, found 2
func.func @main(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x2x7x8xf32>) {
  %0:2 = "relay.nn_attention_lse"(%q, %k, %v) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x2x7x8xf32>) -> (tensor<?x?x?x?xf32>, tensor<?x?x?xf32>)
  return
}

// -----

// CHECK: relay.nn_attention_grad at {{.*}}: grad: expected the dtype of query, float32, found float16
func.func @main(%x0: tensor<2x4x5x8xf32>, %x1: tensor<2x4x7x8xf32>, %x2: tensor<2x4x7x8xf32>, %x3: tensor<2x4x5x8xf16>, %x4: tensor<2x4x5xf32>, %x5: tensor<2x4x5xf32>) {
  %0:3 = "relay.nn_attention_grad"(%x0, %x1, %x2, %x3, %x4, %x5) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x5x8xf16>, tensor<2x4x5xf32>, tensor<2x4x5xf32>) -> (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>)
  return
}

// -----

// CHECK: relay.nn_attention_grad at {{.*}}: dimension 3 of grad: expected 8, found 9
func.func @main(%x0: tensor<2x4x5x8xf32>, %x1: tensor<2x4x7x8xf32>, %x2: tensor<2x4x7x8xf32>, %x3: tensor<2x4x5x9xf32>, %x4: tensor<2x4x5xf32>, %x5: tensor<2x4x5xf32>) {
  %0:3 = "relay.nn_attention_grad"(%x0, %x1, %x2, %x3, %x4, %x5) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x5x9xf32>, tensor<2x4x5xf32>, tensor<2x4x5xf32>) -> (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>)
  return
}

// -----

// CHECK: relay.nn_attention_grad at {{.*}}: lse: expected float32, found float16
func.func @main(%x0: tensor<2x4x5x8xf32>, %x1: tensor<2x4x7x8xf32>, %x2: tensor<2x4x7x8xf32>, %x3: tensor<2x4x5x8xf32>, %x4: tensor<2x4x5xf16>, %x5: tensor<2x4x5xf32>) {
  %0:3 = "relay.nn_attention_grad"(%x0, %x1, %x2, %x3, %x4, %x5) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5xf16>, tensor<2x4x5xf32>) -> (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>)
  return
}

// -----

// CHECK: relay.nn_attention_grad at {{.*}}: rank of delta: expected 3, found 4
func.func @main(%x0: tensor<2x4x5x8xf32>, %x1: tensor<2x4x7x8xf32>, %x2: tensor<2x4x7x8xf32>, %x3: tensor<2x4x5x8xf32>, %x4: tensor<2x4x5xf32>, %x5: tensor<2x4x5x1xf32>) {
  %0:3 = "relay.nn_attention_grad"(%x0, %x1, %x2, %x3, %x4, %x5) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5xf32>, tensor<2x4x5x1xf32>) -> (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>)
  return
}

// -----

// CHECK: relay.nn_attention_grad at {{.*}}: mask: expected a shape that broadcasts to [2, 4, 5, 7], found tensor<5x6xf32>
func.func @main(%x0: tensor<2x4x5x8xf32>, %x1: tensor<2x4x7x8xf32>, %x2: tensor<2x4x7x8xf32>, %x3: tensor<2x4x5x8xf32>, %x4: tensor<2x4x5xf32>, %x5: tensor<2x4x5xf32>, %x6: tensor<5x6xf32>) {
  %0:3 = "relay.nn_attention_grad"(%x0, %x1, %x2, %x3, %x4, %x5, %x6) {scale = 1.0 : f64} : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5xf32>, tensor<2x4x5xf32>, tensor<5x6xf32>) -> (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>)
  return
}
