// RUN: not relayc-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: relay.add at {{.*}}: lhs: expected a numeric element type, found strings, tensor<4xindex>
func.func @main(%x: tensor<4xindex>) {
  %0 = "relay.add"(%x, %x) : (tensor<4xindex>, tensor<4xindex>) -> tensor<4xindex>
  return
}

// -----

// CHECK: relay.less at {{.*}}: lhs: expected an element type that is computed in{{.*}}, found strings, tensor<4xindex>
func.func @main(%x: tensor<4xindex>) {
  %0 = "relay.less"(%x, %x) : (tensor<4xindex>, tensor<4xindex>) -> tensor<4xi1>
  return
}

// -----

// CHECK: relay.cast at {{.*}}: dtype: expected numbers, or strings that stay strings, found string to float32
func.func @main(%x: tensor<4xindex>) {
  %0 = "relay.cast"(%x) {dtype = "float32"} : (tensor<4xindex>) -> tensor<4xf32>
  return
}

// -----

// CHECK: relay.ones at {{.*}}: dtype: expected one with a number 1, found string
func.func @main() {
  %0 = "relay.ones"() {shape = array<i64: 4>, dtype = "string"} : () -> tensor<4xindex>
  return
}

// -----

// CHECK: relay.strings: expected texts, each once and the empty one first, found ["a"]
module attributes {relay.strings = ["a"]} {
}
