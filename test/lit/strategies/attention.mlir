// RUN: relayc-opt %s --passes fuse-ops,outline-groups,relay-to-te,te-to-tir --config "target=cpu -mcpu=x86-64-v3" --split-input-file | filecheck %s

// Queries along the lanes: 6 keys, then 6 elements of the context, by 2 vectors of queries are carried by the loops over the sums; key and
// value are broadcast from where they lie, and no matrix of scores is written.
// CHECK-LABEL: func.func private @fused_attention
// CHECK-NOT: memref.alloc(
// CHECK: scf.parallel
// CHECK-COUNT-4: memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}xf32>
// CHECK: scf.for {{.*}} iter_args({{(%[^,]*, ){11}%[^,]*}}) -> (vector<8xf32>
// CHECK-COUNT-2: vector.load %{{.*}} : memref<{{.*}}xf32>, vector<8xf32>
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-NOT: math.exp
// CHECK: scf.for {{.*}} iter_args({{(%[^,]*, ){11}%[^,]*}}) -> (vector<8xf32>
// CHECK-COUNT-2: vector.load
// CHECK-COUNT-12: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%q: tensor<1x128x4x36xf32>, %k: tensor<1x900x4x36xf32>, %v: tensor<1x900x4x36xf32>) -> tensor<1x128x4x36xf32> {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 0.25 : f64, query_layout = "BSHD", key_layout = "BSHD", value_layout = "BSHD", out_layout = "BSHD"} : (tensor<1x128x4x36xf32>, tensor<1x900x4x36xf32>, tensor<1x900x4x36xf32>) -> tensor<1x128x4x36xf32>
  return %0 : tensor<1x128x4x36xf32>
}

// -----

// A causal mask: blocks of keys that no query of the tile sees are left out, the comparison is made near the diagonal only.
// CHECK-LABEL: func.func private @fused_attention
// CHECK: arith.ceildivsi
// CHECK: scf.if
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-12: vector.fma
// CHECK-NOT: arith.cmpi
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-12: vector.fma
// CHECK: arith.cmpi sle
func.func @main(%q: tensor<1x4x96x16xf32>, %k: tensor<1x4x96x16xf32>, %v: tensor<1x4x96x16xf32>) -> tensor<1x4x96x16xf32> {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 0.25 : f64, is_causal = true} : (tensor<1x4x96x16xf32>, tensor<1x4x96x16xf32>, tensor<1x4x96x16xf32>) -> tensor<1x4x96x16xf32>
  return %0 : tensor<1x4x96x16xf32>
}

// -----

// A mask for each query and key lies along the keys: it is transposed in registers, a block at a time.
// CHECK-LABEL: func.func private @fused_attention
// CHECK: memref.alloca() {{.*}} : memref<{{.*}}xi8>
// CHECK-COUNT-8: vector.load %{{.*}} : memref<3072xi8>, vector<8xi8>
// CHECK: vector.shuffle
// CHECK-COUNT-12: vector.fma
// CHECK-NOT: vector.from_elements
// CHECK: arith.select
// CHECK: return
func.func @main(%q: tensor<1x4x32x16xf32>, %k: tensor<1x4x96x16xf32>, %v: tensor<1x4x96x16xf32>, %m: tensor<32x96xi1>) -> tensor<1x4x32x16xf32> {
  %0 = "relay.nn_attention"(%q, %k, %v, %m) {scale = 0.25 : f64} : (tensor<1x4x32x16xf32>, tensor<1x4x96x16xf32>, tensor<1x4x96x16xf32>, tensor<32x96xi1>) -> tensor<1x4x32x16xf32>
  return %0 : tensor<1x4x32x16xf32>
}

// -----

// One query: lanes along the elements of a head, 8 keys at a time; the context stays in registers over the keys of a block.
// CHECK-LABEL: func.func private @fused_attention
// CHECK-NOT: memref.alloc(
// CHECK: scf.for {{.*}} iter_args({{(%[^,]*, ){7}%[^,]*}}) -> (vector<8xf32>
// CHECK-COUNT-9: vector.load
// CHECK-COUNT-8: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-COUNT-24: vector.shuffle
// CHECK: scf.for {{.*}} iter_args({{(%[^,]*, ){7}%[^,]*}}) -> (vector<8xf32>
// CHECK-COUNT-8: vector.load
// CHECK-COUNT-8: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: return
func.func @main(%q: tensor<1x4x1x64xf32>, %k: tensor<1x4x900x64xf32>, %v: tensor<1x4x900x64xf32>) -> tensor<1x4x1x64xf32> {
  %0 = "relay.nn_attention"(%q, %k, %v) {scale = 0.25 : f64} : (tensor<1x4x1x64xf32>, tensor<1x4x900x64xf32>, tensor<1x4x900x64xf32>) -> tensor<1x4x1x64xf32>
  return %0 : tensor<1x4x1x64xf32>
}

// -----

// Conversions around it belong to the kernel: key and value are widened a block at a time, once for all tiles of a task.
// CHECK-LABEL: func.func private @fused_cast_cast_cast_attention_cast
// CHECK-NOT: memref.alloc(
// CHECK-COUNT-6: memref.alloca() {{.*}} : memref<{{[0-9]+}}xf32>
// CHECK: arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK-COUNT-12: vector.fma
// CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xbf16>
func.func @main(%q: tensor<1x4x64x16xbf16>, %k: tensor<1x4x96x16xbf16>, %v: tensor<1x4x96x16xbf16>) -> tensor<1x4x64x16xbf16> {
  %0 = "relay.fused"() ({
    %1 = "relay.cast"(%q) {dtype = "float32"} : (tensor<1x4x64x16xbf16>) -> tensor<1x4x64x16xf32>
    %2 = "relay.cast"(%k) {dtype = "float32"} : (tensor<1x4x96x16xbf16>) -> tensor<1x4x96x16xf32>
    %3 = "relay.cast"(%v) {dtype = "float32"} : (tensor<1x4x96x16xbf16>) -> tensor<1x4x96x16xf32>
    %4 = "relay.nn_attention"(%1, %2, %3) {scale = 0.25 : f64} : (tensor<1x4x64x16xf32>, tensor<1x4x96x16xf32>, tensor<1x4x96x16xf32>) -> tensor<1x4x64x16xf32>
    %5 = "relay.cast"(%4) {dtype = "bfloat16"} : (tensor<1x4x64x16xf32>) -> tensor<1x4x64x16xbf16>
    "relay.yield"(%5) : (tensor<1x4x64x16xbf16>) -> ()
  }) : () -> tensor<1x4x64x16xbf16>
  return %0 : tensor<1x4x64x16xbf16>
}

// -----

// Derivatives: 6 keys by 2 vectors of queries for each of the two products that become weights and derivatives of scores, which are in
// buffers of the thread; then 3 keys, and 3 or 2 queries, by 4 vectors along the elements, added to the results in memory.
// CHECK-LABEL: func.func private @fused_attention_grad
// CHECK-NOT: memref.alloc(
// CHECK: scf.parallel
// CHECK: scf.for {{.*}} iter_args({{(%[^,]*, ){11}%[^,]*}}) -> (vector<8xf32>
// CHECK-COUNT-12: vector.fma
// CHECK: scf.for {{.*}} iter_args({{(%[^,]*, ){11}%[^,]*}}) -> (vector<8xf32>
// CHECK-COUNT-12: vector.fma
// CHECK-COUNT-4: scf.for {{.*}} iter_args({{(%[^,]*, ){11}%[^,]*}}) -> (vector<8xf32>
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%q: tensor<8x4x96x32xf32>, %g: tensor<8x4x96x32xf32>, %l: tensor<8x4x96xf32>) -> (tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>) {
  %0:3 = "relay.nn_attention_grad"(%q, %q, %q, %g, %l, %l) {scale = 0.25 : f64} : (tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>, tensor<8x4x96xf32>, tensor<8x4x96xf32>) -> (tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>)
  return %0#0, %0#1, %0#2 : tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>, tensor<8x4x96x32xf32>
}
