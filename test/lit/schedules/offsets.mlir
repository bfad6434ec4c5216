// RUN: relayc-opt %s --passes te-to-blocks --print-script | filecheck %s

// A slice of the name of the computation that reads it is the offset and the stride of its reads; one of another name is a block.
// CHECK: def blur(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n//2",), "float32")):
// CHECK: with T.block("part"):
// CHECK: part[vax0] = x[vax0 + 1]
// CHECK-NOT: extract_slice
// CHECK: with T.block("y"):
// CHECK: y[vi] = x[vi + n//2] + part[vi * 2 + 1]
module {
  func.func @blur(%x: tensor<?xf32, ["n"]> {relay.name = "x"}, %n: index {relay.symbol = "n"}) -> tensor<?xf32, ["n//2"]> {
    %c2 = arith.constant 2 : index
    %half = arith.divui %n, %c2 : index
    %a = tensor.extract_slice %x[%half] [%half] [1] : tensor<?xf32, ["n"]> to tensor<?xf32, ["n//2"]> loc("y")
    %one = arith.constant -1 : index
    %count = arith.addi %n, %one : index
    %part = tensor.extract_slice %x[1] [%count] [1] : tensor<?xf32, ["n"]> to tensor<?xf32, ["n - 1"]> loc("part")
    %b = tensor.extract_slice %part[1] [%half] [2] : tensor<?xf32, ["n - 1"]> to tensor<?xf32, ["n//2"]> loc("y")
    %e = tensor.empty(%half) : tensor<?xf32, ["n//2"]>
    %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                         iterator_types = ["parallel"], tir.axes = ["i"]}
      ins(%a, %b : tensor<?xf32, ["n//2"]>, tensor<?xf32, ["n//2"]>) outs(%e : tensor<?xf32, ["n//2"]>) {
    ^bb0(%in: f32, %other: f32, %o: f32):
      %s = arith.addf %in, %other : f32
      linalg.yield %s : f32
    } -> tensor<?xf32, ["n//2"]> loc("y")
    return %0 : tensor<?xf32, ["n//2"]>
  }
}
