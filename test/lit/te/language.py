# RUN: %python %s | filecheck %s
"""Functions of the te stage that relayc.te makes."""

from relayc import te


def show(*tensors: te.Tensor) -> None:
    """Prints the function of some tensors, with the locations of its operations."""
    mod = te.create_prim_func(tensors, name=tensors[-1].name)
    print(mod.module.operation.get_asm(enable_debug_info=True, use_local_scope=True))


A, B = te.placeholder((16, 64), name="A"), te.placeholder((64, 32), name="B")
k = te.reduce_axis((0, 64), name="k")

# A product: a fill of the identity, then a generic with a reduction loop. Names are attributes and locations.
# CHECK: module attributes {relay.stage = "te"}
# CHECK: func.func @product(
# CHECK-SAME: tensor<16x64xf32> {relay.name = "A"}
# CHECK-SAME: tensor<64x32xf32> {relay.name = "B"}
# CHECK-SAME: -> (tensor<16x32xf32> {relay.name = "product"})
# CHECK-SAME: relay.input_dtypes = ["float32", "float32"], relay.output_dtypes = ["float32"]
# CHECK: linalg.fill {tir.axes = ["i", "j"]} {{.*}} loc("product")
# CHECK: linalg.generic
# CHECK-SAME: (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
# CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
# CHECK-SAME: attrs =  {tir.axes = ["i", "j", "k"]}
# CHECK: arith.mulf %in, %in_0
# CHECK: arith.addf %out,
# CHECK: -> tensor<16x32xf32> loc("product")
show(A, B, te.compute((16, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="product"))

X = te.placeholder((1, 8, 8), "float16", name="X")
r, s = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="s")

# A guard that is the bound of the index is a padding of the input; loops that nothing tells the extent of get an input that is not read.
# CHECK: func.func @pool(
# CHECK: linalg.fill {{.*}} ins(%{{.*}} : f16)
# CHECK: %[[PAD:.*]] = tensor.pad %arg0 low[0, 1, 1] high[0, 0, 0]
# CHECK: %[[TAPS:.*]] = tensor.empty() : tensor<3x3xf16>
# CHECK: linalg.generic
# CHECK-SAME: affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 2 + d3, d2 * 2 + d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d3, d4)>
# CHECK-SAME: ins(%[[PAD]], %[[TAPS]] :
# CHECK-NOT: arith.select
# CHECK: return
show(
    X,
    te.compute(
        (1, 4, 4),
        lambda c, y, x: te.max(
            te.if_then_else(te.all(y * 2 + r >= 1, x * 2 + s > 0), X[c, y * 2 + r - 1, x * 2 + s - 1], te.min_value("float16")),
            axis=[r, s],
        ),
        name="pool",
    ),
)

n = te.var("n")
V, at = te.placeholder((2 * n,), name="V"), te.placeholder((n,), "int32", name="at")

# A symbolic offset is that of a slice; what affine maps do not hold is read at computed indices, limited to the tensor where nothing
# says that they are inside.
# CHECK: func.func @halves(
# CHECK-SAME: tensor<?xf32, ["2*n"]> {relay.name = "V"}
# CHECK-SAME: tensor<?xi32, ["n"]> {relay.name = "at"}
# CHECK-SAME: %[[N:.*]]: index {relay.symbol = "n"}
# CHECK: %[[HALF:.*]] = tensor.extract_slice %arg0[%[[N]]] [%[[N]]] [1]
# CHECK: linalg.generic {{.*}} ins(%[[HALF]], %arg1 :
# CHECK: %[[AT:.*]] = arith.index_cast %in_0 : i32 to index
# CHECK: %[[LOW:.*]] = arith.maxsi %[[AT]], %
# CHECK: %[[INSIDE:.*]] = arith.minsi %[[LOW]], %
# CHECK: %[[READ:.*]] = tensor.extract %arg0[%[[INSIDE]]]
# CHECK: arith.addf %in, %[[READ]]
show(V, at, te.compute((n,), lambda i: V[i + n] + V[at[i]], name="halves"))
