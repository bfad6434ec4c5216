// RUN: not relayc-opt %s --passes te-to-blocks,apply-schedule --split-input-file 2>&1 | filecheck %s

// CHECK: error: storage_swizzle(block=X_shared, buffer_index=0, axis=1): axis: expected a dimension of X_shared before its last one, out of 2, found 1
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<64x64xf32> {relay.name = "X"}) -> tensor<64x64xf32> {
    %e = tensor.empty() : tensor<64x64xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["i", "j"]}
      ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<64x64xf32> loc("Y")
    return %0 : tensor<64x64xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.cache_read"(%main) {block = "Y", read_buffer_index = 0, storage_scope = "shared"} : (!transform.any_op) -> ()
    "schedule.storage_swizzle"(%main) {block = "X_shared", buffer_index = 0, axis = 1} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// CHECK: error: storage_swizzle(block=Y, buffer_index=0, axis=0): buffer Y: expected a shared one, found scope global
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<64x64xf32> {relay.name = "X"}) -> tensor<64x64xf32> {
    %e = tensor.empty() : tensor<64x64xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["i", "j"]}
      ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<64x64xf32> loc("Y")
    return %0 : tensor<64x64xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.cache_read"(%main) {block = "Y", read_buffer_index = 0, storage_scope = "shared"} : (!transform.any_op) -> ()
    "schedule.storage_swizzle"(%main) {block = "Y", buffer_index = 0, axis = 0} : (!transform.any_op) -> ()
    transform.yield
  }
}

// -----

// CHECK: name = "X_shared", tir.annotations = {buffer_swizzle = {{\[\[}}0, 0, 32]]}}
module attributes {transform.with_named_sequence} {
  func.func @main(%x: tensor<64x64xf32> {relay.name = "X"}) -> tensor<64x64xf32> {
    %e = tensor.empty() : tensor<64x64xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], tir.axes = ["i", "j"]}
      ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %b = math.exp %a : f32
      linalg.yield %b : f32
    } -> tensor<64x64xf32> loc("Y")
    return %0 : tensor<64x64xf32>
  }
  transform.named_sequence @schedule(%root: !transform.any_op) {
    %main = transform.structured.match ops{["func.func"]} attributes {sym_name = "main"} in %root : (!transform.any_op) -> !transform.any_op
    "schedule.cache_read"(%main) {block = "Y", read_buffer_index = 0, storage_scope = "shared"} : (!transform.any_op) -> ()
    "schedule.storage_swizzle"(%main) {block = "X_shared", buffer_index = "X_shared", axis = -2} : (!transform.any_op) -> ()
    "schedule.storage_swizzle"(%main) {block = "X_shared", buffer_index = 0, axis = 0, chunk_bytes = 32} : (!transform.any_op) -> ()
    transform.yield
  }
}
