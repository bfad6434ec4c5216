// RUN: relayc-opt %s --passes materialize-results --split-input-file | filecheck %s

// The result of a call is memory of its own; an input, a parameter, and a result that stands in a second place are copied. A copy of a
// parameter says so, for other kernels to pack it.
// CHECK-DAG: func.func private @fused_copy({{.*}}) {{.*}} attributes {relay.input_dtypes = ["float32"], relay.ops = ["copy"], {{.*}}relay.sources = ["result"]}
// CHECK-DAG: func.func private @fused_copy_1(%arg0: tensor<4xf32> {relay.param}
// CHECK-LABEL: func.func @returned
// CHECK: %[[W:.*]] = "relay.constant"
// CHECK: %[[A:.*]] = call @k(%arg0)
// CHECK: %[[X:.*]] = call @fused_copy(%arg0)
// CHECK: %[[B:.*]] = call @fused_copy(%[[A]])
// CHECK: %[[C:.*]] = call @fused_copy_1(%[[W]])
// CHECK: return %[[A]], %[[X]], %[[B]], %[[C]]
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @returned(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %w = "relay.constant"() {value = "w", shape = array<i64: 4>, dtype = "float32"} : () -> tensor<4xf32>
  %a = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %a, %x, %a, %w : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A branch gives a value from around it, or the argument of the function, as a copy that the branch itself makes. What a branch gives may be
// what the function returns, as it stands.
// CHECK-LABEL: func.func @branch
// CHECK: %[[A:.*]] = call @k(%arg0)
// CHECK: %[[R:.*]] = scf.if
// CHECK: %[[T:.*]] = func.call @k(%[[A]])
// CHECK-NEXT: scf.yield %[[T]]
// CHECK: else
// CHECK: %[[E:.*]] = func.call @fused_copy(%[[A]])
// CHECK-NEXT: scf.yield %[[E]]
// CHECK: return %[[R]]
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @branch(%x: tensor<4xf32>, %c: tensor<i8>) -> tensor<4xf32> {
  %a = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %e = tensor.extract %c[] : tensor<i8>
  %p = arith.trunci %e : i8 to i1
  %r = scf.if %p -> (tensor<4xf32>) {
    %t = func.call @k(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// What a loop begins with is copied where it is an input, or read again later (%b); %d is neither. In the loop,
//  - %m is written after the last read of %i, and needs no copy;
//  - %n is written by a call that reads %j, which it replaces: it is copied at the end;
//  - %k is carried on as it is.
// CHECK-LABEL: func.func @loop
// CHECK: %[[B:.*]] = call @k(%arg0)
// CHECK: %[[D:.*]] = call @k(%arg0)
// CHECK: %[[X:.*]] = call @fused_copy(%arg0)
// CHECK: %[[Y:.*]] = call @fused_copy(%[[B]])
// CHECK: scf.while (%[[I:.*]] = %[[X]], %[[J:.*]] = %[[Y]], %[[K:.*]] = %[[D]])
// CHECK: do
// CHECK: ^bb0(%[[I:.*]]: {{.*}}, %[[J:.*]]: {{.*}}, %[[K:.*]]: {{.*}}):
// CHECK-NEXT: %[[T:.*]] = func.call @k(%[[I]])
// CHECK-NEXT: %[[M:.*]] = func.call @k(%[[T]])
// CHECK-NEXT: %[[N:.*]] = func.call @k(%[[J]])
// CHECK-NEXT: %[[O:.*]] = func.call @fused_copy(%[[N]])
// CHECK-NEXT: scf.yield %[[M]], %[[O]], %[[K]]
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @test(%x: tensor<4xf32>) -> tensor<i8> {
  %c = arith.constant dense<0> : tensor<i8>
  return %c : tensor<i8>
}
func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %d = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %r:3 = scf.while (%i = %x, %j = %b, %k = %d) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %c = func.call @test(%i) : (tensor<4xf32>) -> tensor<i8>
    %e = tensor.extract %c[] : tensor<i8>
    %p = arith.trunci %e : i8 to i1
    scf.condition(%p) %i, %j, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%i: tensor<4xf32>, %j: tensor<4xf32>, %k: tensor<4xf32>):
    %t = func.call @k(%i) : (tensor<4xf32>) -> tensor<4xf32>
    %m = func.call @k(%t) : (tensor<4xf32>) -> tensor<4xf32>
    %n = func.call @k(%j) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %m, %n, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  %s = call @k(%b) : (tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// Arguments that change places: the first of the ring is kept, the others are copied in an order in which nothing is lost.
// CHECK-LABEL: func.func @ring
// CHECK: do
// CHECK: ^bb0(%[[I:.*]]: {{.*}}, %[[J:.*]]: {{.*}}, %[[K:.*]]: {{.*}}):
// CHECK-NEXT: %[[T:.*]] = func.call @fused_copy(%[[I]])
// CHECK-NEXT: %[[M:.*]] = func.call @fused_copy(%[[J]])
// CHECK-NEXT: %[[N:.*]] = func.call @fused_copy(%[[K]])
// CHECK-NEXT: %[[O:.*]] = func.call @fused_copy(%[[T]])
// CHECK-NEXT: scf.yield %[[M]], %[[N]], %[[O]]
func.func private @test() -> tensor<i8> {
  %c = arith.constant dense<0> : tensor<i8>
  return %c : tensor<i8>
}
func.func @ring(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r:3 = scf.while (%i = %x, %j = %x, %k = %x) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %c = func.call @test() : () -> tensor<i8>
    %e = tensor.extract %c[] : tensor<i8>
    %p = arith.trunci %e : i8 to i1
    scf.condition(%p) %i, %j, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%i: tensor<4xf32>, %j: tensor<4xf32>, %k: tensor<4xf32>):
    scf.yield %j, %k, %i : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0 : tensor<4xf32>
}

// -----

// A kernel that inserts elements into an argument of the loop is called where that is, if nothing reads the argument later: @put says so.
// CHECK: func.func private @put({{.*}}) -> tensor<4xf32> attributes {relay.updates = array<i64: 0, 0>}
// CHECK-LABEL: func.func @updated
// CHECK: do {
// CHECK: ^bb0(%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>):
// CHECK: %[[M:.*]] = func.call @put(%[[A]], %arg0)
// CHECK-NEXT: %[[N:.*]] = func.call @put(%[[B]], %[[B]])
// CHECK-NEXT: %[[C:.*]] = func.call @fused_copy(%[[N]])
// CHECK-NEXT: scf.yield %[[M]], %[[C]]
func.func private @put(%t: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %0 = scf.for %i = %zero to %two step %one iter_args(%s = %t) -> tensor<4xf32> {
    %a = tensor.extract %x[%i] : tensor<4xf32>
    %b = tensor.insert %a into %s[%i] : tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @more(%x: tensor<4xf32>) -> tensor<i8> {
  %0 = tensor.empty() : tensor<i8>
  return %0 : tensor<i8>
}
func.func @updated(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %p = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %q = call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.while (%a = %p, %b = %q) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %c = func.call @more(%a) : (tensor<4xf32>) -> tensor<i8>
    %e = tensor.extract %c[] : tensor<i8>
    %t = arith.trunci %e : i8 to i1
    scf.condition(%t) %a, %b : tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %m = func.call @put(%a, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %n = func.call @put(%b, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %m, %n : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
