// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: cache_read(block=B, read_buffer_index=1, storage_scope=local): block B: expected one of the 1 buffers it reads (A), found 1
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x8xf32> {relay.name = "X"}) -> tensor<6x8xf32> {
    %e = tensor.empty() : tensor<6x8xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["i", "j"]}
      ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<6x8xf32> loc("A")
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["p", "q"]}
      ins(%0 : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = arith.negf %a : f32
      linalg.yield %b : f32
    } -> tensor<6x8xf32> loc("B")
    return %1 : tensor<6x8xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.cache_read"(%main) {block = "B", read_buffer_index = 1, storage_scope = "local"} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK: %[[L:.*]] = memref.alloc() {tir.buffer = "X_local", tir.scope = "local"}
// CHECK: memref.load %arg0
// CHECK: memref.store %{{.*}}, %[[L]]
// CHECK: name = "X_local"
// CHECK: memref.load %[[L]]
// CHECK: name = "A"
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<6x8xf32> {relay.name = "X"}) -> tensor<6x8xf32> {
    %e = tensor.empty() : tensor<6x8xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["i", "j"]}
      ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<6x8xf32> loc("A")
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["p", "q"]}
      ins(%0 : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = arith.negf %a : f32
      linalg.yield %b : f32
    } -> tensor<6x8xf32> loc("B")
    return %1 : tensor<6x8xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.cache_read"(%main) {block = "A", read_buffer_index = 0, storage_scope = "local", results = ["X_local"]} : (!transform.any_op) -> ()
    transform.yield
  }
}
