// RUN: relayc-opt %s --passes recognize-attention,dead-code-elimination --split-input-file | filecheck %s

// Symbolic batch, queries and keys, of which the mask has those of the scores; keys and values that grow by concatenation.
// CHECK-LABEL: func.func @cached
// CHECK: %[[K:.*]] = tensor.concat dim(2) %arg1, %arg2
// CHECK: %[[V:.*]] = tensor.concat dim(2) %arg3, %arg4
// CHECK: "relay.nn_attention"(%arg0, %[[K]], %[[V]], %arg5) {{.*}}is_causal = false{{.*}}out_layout = "BSHD"{{.*}}scale = 5.000000e-01
// CHECK-SAME: tensor<?x1x?x?xf32, ["b", "n", "n + past"]>) -> tensor<?x?x2x4xf32, ["b", "n"]>
// CHECK-NOT: batch_matmul
func.func @cached(%q: tensor<?x2x?x4xf32, ["b", "n"]>, %pk: tensor<?x2x?x4xf32, ["b", "past"]>, %nk: tensor<?x2x?x4xf32, ["b", "n"]>, %pv: tensor<?x2x?x4xf32, ["b", "past"]>, %nv: tensor<?x2x?x4xf32, ["b", "n"]>, %m: tensor<?x1x?x?xf32, ["b", "n", "n + past"]>) -> tensor<?x?x8xf32, ["b", "n"]> {
  %s = "relay.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %k = tensor.concat dim(2) %pk, %nk : (tensor<?x2x?x4xf32, ["b", "past"]>, tensor<?x2x?x4xf32, ["b", "n"]>) -> tensor<?x2x?x4xf32, ["b", "n + past"]>
  %v = tensor.concat dim(2) %pv, %nv : (tensor<?x2x?x4xf32, ["b", "past"]>, tensor<?x2x?x4xf32, ["b", "n"]>) -> tensor<?x2x?x4xf32, ["b", "n + past"]>
  %0 = "relay.reshape"(%q) {newshape = ["2*b", "n", 4]} : (tensor<?x2x?x4xf32, ["b", "n"]>) -> tensor<?x?x4xf32, ["2*b", "n"]>
  %1 = "relay.reshape"(%k) {newshape = ["2*b", "n + past", 4]} : (tensor<?x2x?x4xf32, ["b", "n + past"]>) -> tensor<?x?x4xf32, ["2*b", "n + past"]>
  %2 = "relay.nn_batch_matmul"(%0, %1) : (tensor<?x?x4xf32, ["2*b", "n"]>, tensor<?x?x4xf32, ["2*b", "n + past"]>) -> tensor<?x?x?xf32, ["2*b", "n", "n + past"]>
  %3 = "relay.reshape"(%2) {newshape = ["b", 2, "n", "n + past"]} : (tensor<?x?x?xf32, ["2*b", "n", "n + past"]>) -> tensor<?x2x?x?xf32, ["b", "n", "n + past"]>
  %4 = "relay.multiply"(%3, %s) : (tensor<?x2x?x?xf32, ["b", "n", "n + past"]>, tensor<f32>) -> tensor<?x2x?x?xf32, ["b", "n", "n + past"]>
  %5 = "relay.add"(%4, %m) : (tensor<?x2x?x?xf32, ["b", "n", "n + past"]>, tensor<?x1x?x?xf32, ["b", "n", "n + past"]>) -> tensor<?x2x?x?xf32, ["b", "n", "n + past"]>
  %6 = "relay.nn_softmax"(%5) {axis = -1} : (tensor<?x2x?x?xf32, ["b", "n", "n + past"]>) -> tensor<?x2x?x?xf32, ["b", "n", "n + past"]>
  %7 = "relay.reshape"(%6) {newshape = ["2*b", "n", "n + past"]} : (tensor<?x2x?x?xf32, ["b", "n", "n + past"]>) -> tensor<?x?x?xf32, ["2*b", "n", "n + past"]>
  %8 = "relay.reshape"(%v) {newshape = ["2*b", "n + past", 4]} : (tensor<?x2x?x4xf32, ["b", "n + past"]>) -> tensor<?x?x4xf32, ["2*b", "n + past"]>
  %9 = "relay.nn_batch_matmul"(%7, %8) {transpose_b = false} : (tensor<?x?x?xf32, ["2*b", "n", "n + past"]>, tensor<?x?x4xf32, ["2*b", "n + past"]>) -> tensor<?x?x4xf32, ["2*b", "n"]>
  %10 = "relay.reshape"(%9) {newshape = ["b", 2, "n", 4]} : (tensor<?x?x4xf32, ["2*b", "n"]>) -> tensor<?x2x?x4xf32, ["b", "n"]>
  %11 = "relay.transpose"(%10) {axes = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32, ["b", "n"]>) -> tensor<?x?x2x4xf32, ["b", "n"]>
  %12 = "relay.reshape"(%11) {newshape = ["b", "n", 8]} : (tensor<?x?x2x4xf32, ["b", "n"]>) -> tensor<?x?x8xf32, ["b", "n"]>
  return %12 : tensor<?x?x8xf32, ["b", "n"]>
}

// -----

// Heads that were repeated, and transposes, of symbolic sequences.
// CHECK-LABEL: func.func @repeated
// CHECK-NEXT: "relay.nn_attention"(%arg0, %arg1, %arg2) {{.*}}key_layout = "BSHD"{{.*}}query_layout = "BSHD"{{.*}}value_layout = "BHSD"
func.func @repeated(%q: tensor<?x?x4x8xf32, ["b", "n"]>, %k: tensor<?x?x2x8xf32, ["b", "m"]>, %v: tensor<?x2x?x8xf32, ["b", "m"]>) -> tensor<?x4x?x8xf32, ["b", "n"]> {
  %0 = "relay.transpose"(%q) {axes = array<i64: 0, 2, 1, 3>} : (tensor<?x?x4x8xf32, ["b", "n"]>) -> tensor<?x4x?x8xf32, ["b", "n"]>
  %1 = "relay.transpose"(%k) {axes = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x8xf32, ["b", "m"]>) -> tensor<?x2x?x8xf32, ["b", "m"]>
  %2 = "relay.reshape"(%1) {newshape = ["b", 2, 1, "m", 8]} : (tensor<?x2x?x8xf32, ["b", "m"]>) -> tensor<?x2x1x?x8xf32, ["b", "m"]>
  %3 = "relay.broadcast_to"(%2) {shape = ["b", 2, 2, "m", 8]} : (tensor<?x2x1x?x8xf32, ["b", "m"]>) -> tensor<?x2x2x?x8xf32, ["b", "m"]>
  %4 = "relay.reshape"(%3) {newshape = ["b", 4, "m", 8]} : (tensor<?x2x2x?x8xf32, ["b", "m"]>) -> tensor<?x4x?x8xf32, ["b", "m"]>
  %5 = "relay.repeat"(%v) {repeats = 2 : i64, axis = 1} : (tensor<?x2x?x8xf32, ["b", "m"]>) -> tensor<?x4x?x8xf32, ["b", "m"]>
  %6 = "relay.nn_attention"(%0, %4, %5) {scale = 1.0} : (tensor<?x4x?x8xf32, ["b", "n"]>, tensor<?x4x?x8xf32, ["b", "m"]>, tensor<?x4x?x8xf32, ["b", "m"]>) -> tensor<?x4x?x8xf32, ["b", "n"]>
  return %6 : tensor<?x4x?x8xf32, ["b", "n"]>
}

// -----

// Scores that may have grown by their mask are no scores of one product: nothing is known of the dimensions.
// CHECK-LABEL: func.func @unknown
// CHECK-NOT: nn_attention
func.func @unknown(%q: tensor<2x?x4xf32>, %k: tensor<2x?x4xf32>, %v: tensor<2x?x4xf32>, %m: tensor<2x?x?xf32>) -> tensor<2x?x4xf32> {
  %0 = "relay.nn_batch_matmul"(%q, %k) : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x?xf32>
  %1 = "relay.add"(%0, %m) : (tensor<2x?x?xf32>, tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %2 = "relay.nn_softmax"(%1) {axis = -1} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %3 = "relay.nn_batch_matmul"(%2, %v) {transpose_b = false} : (tensor<2x?x?xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  return %3 : tensor<2x?x4xf32>
}

// -----

// A mask computed from positions, of which the queries begin behind the cached keys, is causal; what else it asks for stays a mask.
// CHECK-LABEL: func.func @causal
// CHECK: "relay.nn_attention"(%arg0, %arg1, %arg2) {causal_offset = "past"{{.*}}is_causal = true
// CHECK: "relay.nn_attention"(%arg0, %arg1, %arg2, %arg3) {causal_offset = "past"{{.*}}is_causal = true{{.*}}mask_value = 0xFFF0000000000000
// A finite mask says more than -inf where all keys of a query may be hidden: by something else, or by an offset below 0.
// CHECK: "relay.nn_attention"(%arg0, %arg1, %arg2, %{{[0-9]+}}) {scale
// CHECK: "relay.nn_attention"(%arg0, %arg1, %arg2, %{{[0-9]+}}) {scale
func.func @causal(%q: tensor<?x2x?x4xf32, ["b", "n"]>, %k: tensor<?x2x?x4xf32, ["b", "n + past"]>, %v: tensor<?x2x?x4xf32, ["b", "n + past"]>, %p: tensor<?x1x1x?xi1, ["b", "n + past"]>, %c: tensor<?xf32, ["past"]>)
    -> (tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n"]>) {
  %zero = "relay.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = "relay.constant"() {value = dense<-3.0e+38> : tensor<f32>} : () -> tensor<f32>
  %i = "relay.arange"() {stop = "n", dtype = "int64"} : () -> tensor<?xi64, ["n"]>
  %s = "relay.sizes"() {values = ["past"], dtype = "int64"} : () -> tensor<1xi64>
  %is = "relay.add"(%i, %s) : (tensor<?xi64, ["n"]>, tensor<1xi64>) -> tensor<?xi64, ["n"]>
  %row = "relay.reshape"(%is) {newshape = [1, 1, "n", 1]} : (tensor<?xi64, ["n"]>) -> tensor<1x1x?x1xi64, ["n"]>
  %j = "relay.arange"() {stop = "n + past", dtype = "int64"} : () -> tensor<?xi64, ["n + past"]>
  %column = "relay.reshape"(%j) {newshape = [1, 1, 1, "n + past"]} : (tensor<?xi64, ["n + past"]>) -> tensor<1x1x1x?xi64, ["n + past"]>
  %seen = "relay.less_equal"(%column, %row) : (tensor<1x1x1x?xi64, ["n + past"]>, tensor<1x1x?x1xi64, ["n"]>) -> tensor<1x1x?x?xi1, ["n", "n + past"]>
  %wide = "relay.broadcast_to"(%seen) {shape = ["b", 1, "n", "n + past"]} : (tensor<1x1x?x?xi1, ["n", "n + past"]>) -> tensor<?x1x?x?xi1, ["b", "n", "n + past"]>
  %0 = "relay.where"(%wide, %zero, %low) : (tensor<?x1x?x?xi1, ["b", "n", "n + past"]>, tensor<f32>, tensor<f32>) -> tensor<?x1x?x?xf32, ["b", "n", "n + past"]>
  %1 = "relay.nn_attention"(%q, %k, %v, %0) {scale = 1.0} : (tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n + past"]>, tensor<?x2x?x4xf32, ["b", "n + past"]>, tensor<?x1x?x?xf32, ["b", "n", "n + past"]>) -> tensor<?x2x?x4xf32, ["b", "n"]>
  %2 = "relay.logical_and"(%wide, %p) : (tensor<?x1x?x?xi1, ["b", "n", "n + past"]>, tensor<?x1x1x?xi1, ["b", "n + past"]>) -> tensor<?x1x?x?xi1, ["b", "n", "n + past"]>
  %3 = "relay.nn_attention"(%q, %k, %v, %2) {scale = 1.0} : (tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n + past"]>, tensor<?x2x?x4xf32, ["b", "n + past"]>, tensor<?x1x?x?xi1, ["b", "n", "n + past"]>) -> tensor<?x2x?x4xf32, ["b", "n"]>
  %4 = "relay.where"(%2, %zero, %low) : (tensor<?x1x?x?xi1, ["b", "n", "n + past"]>, tensor<f32>, tensor<f32>) -> tensor<?x1x?x?xf32, ["b", "n", "n + past"]>
  %5 = "relay.nn_attention"(%q, %k, %v, %4) {scale = 1.0} : (tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n + past"]>, tensor<?x2x?x4xf32, ["b", "n + past"]>, tensor<?x1x?x?xf32, ["b", "n", "n + past"]>) -> tensor<?x2x?x4xf32, ["b", "n"]>
  %back = "relay.subtract"(%i, %s) : (tensor<?xi64, ["n"]>, tensor<1xi64>) -> tensor<?xi64, ["n"]>
  %behind = "relay.reshape"(%back) {newshape = ["n", 1]} : (tensor<?xi64, ["n"]>) -> tensor<?x1xi64, ["n"]>
  %few = "relay.greater"(%behind, %j) : (tensor<?x1xi64, ["n"]>, tensor<?xi64, ["n + past"]>) -> tensor<?x?xi1, ["n", "n + past"]>
  %6 = "relay.where"(%few, %zero, %low) : (tensor<?x?xi1, ["n", "n + past"]>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32, ["n", "n + past"]>
  %7 = "relay.nn_attention"(%q, %k, %v, %6) {scale = 1.0} : (tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n + past"]>, tensor<?x2x?x4xf32, ["b", "n + past"]>, tensor<?x?xf32, ["n", "n + past"]>) -> tensor<?x2x?x4xf32, ["b", "n"]>
  return %1, %3, %5, %7 : tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n"]>, tensor<?x2x?x4xf32, ["b", "n"]>
}
