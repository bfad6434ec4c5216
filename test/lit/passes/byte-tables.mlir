// RUN: relayc-opt %s --passes byte-tables,fold-constant --split-input-file | filecheck %s

// x * sigmoid(x) of a dequantised tensor, quantised again: the table of its 256 results is in the order of the bits of x.
// CHECK-LABEL: func.func @silu
// CHECK: %[[TABLE:.*]] = "relay.constant"() {value = dense<{{.*}}> : tensor<256xi8>}
// CHECK: %[[AT:.*]] = "relay.cast"(%arg0) {dtype = "uint8"}
// CHECK: %[[OUT:.*]] = "relay.take"(%[[TABLE]], %[[AT]]) {axis = 0{{.*}}mode = "clip"}
// CHECK-NEXT: return %[[OUT]]
func.func @silu(%arg0: tensor<2x300xi8>) -> tensor<2x300xi8> {
  %step = "relay.constant"() {value = dense<0.05> : tensor<f32>} : () -> tensor<f32>
  %real = "relay.cast"(%arg0) {dtype = "float32"} : (tensor<2x300xi8>) -> tensor<2x300xf32>
  %x = "relay.multiply"(%real, %step) : (tensor<2x300xf32>, tensor<f32>) -> tensor<2x300xf32>
  %gate = "relay.sigmoid"(%x) : (tensor<2x300xf32>) -> tensor<2x300xf32>
  %y = "relay.multiply"(%x, %gate) : (tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300xf32>
  %steps = "relay.divide"(%y, %step) : (tensor<2x300xf32>, tensor<f32>) -> tensor<2x300xf32>
  %whole = "relay.round"(%steps) : (tensor<2x300xf32>) -> tensor<2x300xf32>
  %near = "relay.clip"(%whole) {a_max = 127.0, a_min = -128.0} : (tensor<2x300xf32>) -> tensor<2x300xf32>
  %out = "relay.cast"(%near) {dtype = "int8"} : (tensor<2x300xf32>) -> tensor<2x300xi8>
  return %out : tensor<2x300xi8>
}

// -----

// Integers that are not computed in floats stay as they are, and so does a function of two tensors.
// CHECK-LABEL: func.func @others
// CHECK-NOT: relay.take
func.func @others(%arg0: tensor<4xi8>, %arg1: tensor<4xi8>) -> (tensor<4xui8>, tensor<4xi8>) {
  %bits = "relay.cast"(%arg0) {dtype = "uint8"} : (tensor<4xi8>) -> tensor<4xui8>
  %a = "relay.cast"(%arg0) {dtype = "float32"} : (tensor<4xi8>) -> tensor<4xf32>
  %b = "relay.cast"(%arg1) {dtype = "float32"} : (tensor<4xi8>) -> tensor<4xf32>
  %sum = "relay.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %out = "relay.cast"(%sum) {dtype = "int8"} : (tensor<4xf32>) -> tensor<4xi8>
  return %bits, %out : tensor<4xui8>, tensor<4xi8>
}
