// RUN: relayc-opt %s --passes fuse-ops --split-input-file | filecheck %s

// A diamond behind a convolution closes; constants of one element become literals of the group, others operands.
// CHECK-LABEL: func.func @epilogue
// CHECK: %[[B:.*]] = "relay.constant"() {{.*}} tensor<8x1x1xf32>
// CHECK-NEXT: %[[F:.*]] = "relay.fused"(%arg0, %arg1, %[[B]])
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<1x8x4x4xf32>, %[[W:.*]]: tensor<8x8x1x1xf32>, %[[BIAS:.*]]: tensor<8x1x1xf32>):
// CHECK-NEXT: %[[TWO:.*]] = "relay.constant"
// CHECK-NEXT: %[[CONV:.*]] = "relay.nn_conv2d"(%[[X]], %[[W]])
// CHECK-NEXT: %[[A:.*]] = "relay.add"(%[[CONV]], %[[BIAS]])
// CHECK-NEXT: %[[S:.*]] = "relay.sigmoid"(%[[A]])
// CHECK-NEXT: %[[M:.*]] = "relay.multiply"(%[[A]], %[[S]])
// CHECK-NEXT: %[[R:.*]] = "relay.multiply"(%[[M]], %[[TWO]])
// CHECK-NEXT: "relay.yield"(%[[R]])
// CHECK: return %[[F]]
func.func @epilogue(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32> {
  %b = "relay.constant"() {value = dense<1.0> : tensor<8x1x1xf32>} : () -> tensor<8x1x1xf32>
  %two = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %1 = "relay.add"(%0, %b) : (tensor<1x8x4x4xf32>, tensor<8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %2 = "relay.sigmoid"(%1) : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %3 = "relay.multiply"(%1, %2) : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %4 = "relay.multiply"(%3, %two) : (tensor<1x8x4x4xf32>, tensor<f32>) -> tensor<1x8x4x4xf32>
  return %4 : tensor<1x8x4x4xf32>
}

// -----

// One anchor in a group: of two convolutions that are added, the later takes the addition.
// CHECK-LABEL: func.func @two_anchors
// CHECK: %[[ONE:.*]] = "relay.fused"(%arg0, %arg1)
// CHECK: "relay.nn_conv2d"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.fused"(%arg0, %arg2, %[[ONE]])
// CHECK: "relay.nn_conv2d"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.nn_relu"
// CHECK-NEXT: "relay.yield"
func.func @two_anchors(%x: tensor<1x8x4x4xf32>, %w: tensor<8x8x1x1xf32>, %v: tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32> {
  %0 = "relay.nn_conv2d"(%x, %w) : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %1 = "relay.nn_conv2d"(%x, %v) : (tensor<1x8x4x4xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %2 = "relay.add"(%0, %1) : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %3 = "relay.nn_relu"(%2) : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %3 : tensor<1x8x4x4xf32>
}

// -----

// A result that is used outside ends its group, be it by another operator or as a result of the function.
// CHECK-LABEL: func.func @escapes
// CHECK: %[[D:.*]] = "relay.fused"(%arg0, %arg1)
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.yield"
// CHECK: %[[E:.*]] = "relay.fused"(%[[D]])
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: return %[[D]], %[[E]]
func.func @escapes(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.exp"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Elementwise operators go to the product before them rather than to the transpose or softmax behind them.
// CHECK-LABEL: func.func @epilogue_first
// CHECK: "relay.nn_dense"
// CHECK-NEXT: "relay.nn_relu"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.transpose"
// CHECK-NEXT: "relay.yield"
func.func @epilogue_first(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "relay.nn_dense"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "relay.nn_relu"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "relay.transpose"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// Injective operators fuse with each other, with those that broadcast and with elementwise ones.
// CHECK-LABEL: func.func @injective
// CHECK-COUNT-1: "relay.fused"
// CHECK: "relay.transpose"
// CHECK-NEXT: "relay.exp"
// CHECK-NEXT: "relay.strided_slice"
// CHECK-NEXT: "relay.add"
// CHECK-NEXT: "relay.yield"
// CHECK-NOT: relay.fused
func.func @injective(%x: tensor<4x8xf32>, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = "relay.transpose"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "relay.exp"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "relay.strided_slice"(%1) {begin = array<i64: 2>, end = array<i64: 4>} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %3 = "relay.add"(%2, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// -----

// Into the input of a reduction, and behind it on the reduced shape; what broadcasts the result again stays out.
// CHECK-LABEL: func.func @reduction
// CHECK: %[[R:.*]] = "relay.fused"(%arg0)
// CHECK: "relay.multiply"
// CHECK-NEXT: "relay.sum"
// CHECK-NEXT: "relay.sqrt"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.fused"(%arg0, %[[R]])
// CHECK: "relay.divide"
// CHECK-NEXT: "relay.yield"
func.func @reduction(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "relay.multiply"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "relay.sum"(%0) {axis = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = "relay.sqrt"(%1) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %3 = "relay.divide"(%x, %2) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// Row operators take elementwise producers of their data, not transposes of it, and not what computes their other operands.
// CHECK-LABEL: func.func @rows
// CHECK: "relay.add"
// CHECK-NEXT: "relay.nn_softmax"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.transpose"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_softmax"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_rms_norm"
// CHECK-NEXT: "relay.yield"
func.func @rows(%x: tensor<8x8xf32>, %g: tensor<8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = "relay.add"(%x, %g) : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %1 = "relay.nn_softmax"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = "relay.transpose"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = "relay.nn_softmax"(%2) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = "relay.exp"(%g) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = "relay.nn_rms_norm"(%x, %4) : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return %1, %3, %5 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Nothing is computed more often than it has elements: the gate of an image stays apart, a cast of it need not.
// CHECK-LABEL: func.func @gate
// CHECK: "relay.sigmoid"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.multiply"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.cast"
// CHECK-NEXT: "relay.multiply"
// CHECK-NEXT: "relay.yield"
func.func @gate(%x: tensor<1x8x4x4xf32>, %g: tensor<1x8x1x1xf32>, %h: tensor<1x8x1x1xf16>) -> (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) {
  %0 = "relay.sigmoid"(%g) : (tensor<1x8x1x1xf32>) -> tensor<1x8x1x1xf32>
  %1 = "relay.multiply"(%x, %0) : (tensor<1x8x4x4xf32>, tensor<1x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  %2 = "relay.cast"(%h) {dtype = "float32"} : (tensor<1x8x1x1xf16>) -> tensor<1x8x1x1xf32>
  %3 = "relay.multiply"(%x, %2) : (tensor<1x8x4x4xf32>, tensor<1x8x1x1xf32>) -> tensor<1x8x4x4xf32>
  return %1, %3 : tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>
}

// -----

// A concatenation takes what computes its parts; nothing joins behind it.
// CHECK-LABEL: func.func @concatenate
// CHECK: "relay.negative"
// CHECK-NEXT: "relay.concatenate"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
func.func @concatenate(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "relay.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tensor.concat dim(0) %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = "relay.exp"(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A gather is fused with what uses it elementwise, not into a reduction.
// CHECK-LABEL: func.func @gather
// CHECK: "relay.take"
// CHECK-NEXT: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.take"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.negative"
// CHECK-NEXT: "relay.sum"
// CHECK-NEXT: "relay.yield"
func.func @gather(%x: tensor<9x4xf32>, %i: tensor<3xi64>) -> (tensor<3x4xf32>, tensor<3xf32>) {
  %0 = "relay.take"(%x, %i) {axis = 0} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %1 = "relay.exp"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = "relay.take"(%x, %i) {axis = 0} : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %3 = "relay.negative"(%2) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = "relay.sum"(%3) {axis = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3xf32>
  return %1, %4 : tensor<3x4xf32>, tensor<3xf32>
}

// -----

// Views stay outside; opaque operators alone, with all their results.
// CHECK-LABEL: func.func @views
// CHECK: %[[E:.*]] = "relay.fused"(%arg0)
// CHECK: %[[V:.*]] = "relay.reshape"(%[[E]])
// CHECK: %[[T:.*]]:2 = "relay.fused"(%[[V]])
// CHECK: "relay.topk"
// CHECK-NEXT: "relay.yield"({{.*}}, {{.*}}) : (tensor<2xf32>, tensor<2xi32>)
// CHECK: return %[[T]]#0, %[[T]]#1
func.func @views(%x: tensor<2x4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %0 = "relay.exp"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "relay.reshape"(%0) {newshape = array<i64: 8>} : (tensor<2x4xf32>) -> tensor<8xf32>
  %2:2 = "relay.topk"(%1) {k = 2} : (tensor<8xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  return %2#0, %2#1 : tensor<2xf32>, tensor<2xi32>
}

// -----

// Inside a branch; what the branch uses from around it is a use.
// CHECK-LABEL: func.func @branch
// CHECK: %[[E:.*]] = "relay.fused"(%arg1)
// CHECK: "relay.if"
// CHECK: "relay.fused"(%[[E]])
// CHECK: "relay.negative"
// CHECK-NEXT: "relay.exp"
// CHECK-NEXT: "relay.yield"
func.func @branch(%c: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "relay.if"(%c) ({
    %2 = "relay.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "relay.exp"(%2) : (tensor<4xf32>) -> tensor<4xf32>
    "relay.yield"(%3) : (tensor<4xf32>) -> ()
  }, {
    "relay.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  %4 = "relay.negative"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %4 : tensor<4xf32>, tensor<4xf32>
}

// A concatenation of channels of one image stays alone where operators give its operands: it can be done in place. One whose operands
// alternate in memory is done by the kernel of an operand.
// CHECK-LABEL: func.func @in_place
// CHECK: "relay.exp"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.tanh"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.concatenate"
// CHECK-NEXT: "relay.yield"
// CHECK: "relay.nn_relu"
func.func @in_place(%x: tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = "relay.exp"(%x) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %1 = "relay.tanh"(%x) : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>
  %3 = "relay.nn_relu"(%2) : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %3 : tensor<1x4x4x4xf32>
}

// CHECK-LABEL: func.func @alternating
// CHECK: "relay.exp"
// CHECK-NOT: "relay.yield"
// CHECK: "relay.concatenate"
func.func @alternating(%x: tensor<2x2x4x4xf32>) -> tensor<2x4x4x4xf32> {
  %0 = "relay.exp"(%x) : (tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %1 = "relay.tanh"(%x) : (tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x4x4x4xf32>
  return %2 : tensor<2x4x4x4xf32>
}
