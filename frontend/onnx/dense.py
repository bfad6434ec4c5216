"""Matrix products."""

from relayc.frontend.common.products import contracted, einsum, matmul
from relayc.frontend.converter import Tensor, assume, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.steps import add, multiply


@converter("Gemm")
def Gemm_1(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: bool = False,
    transA: bool = False,
    transB: bool = False,
) -> Tensor:
    """`broadcast` says whether C may have another shape than the product."""
    if not broadcast and a.rank == b.rank == 2:
        c = assume(c, (a.shape[int(transA)], b.shape[1 - int(transB)]))
    return Gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@converter(since=7)
def Gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: bool = False, transB: bool = False
) -> Tensor:
    if a.rank != 2 or b.rank != 2:
        raise OnnxError(f"inputs A and B: expected matrices, found {list(a.shape)} and {list(b.shape)}")
    a, b = contracted(a, 0 if transA else 1, b, 1 if transB else 0)
    if transB and not transA:
        product = emit("nn.dense", a, b, units=b.shape[0])
    else:
        product = emit("nn.matmul", a, b, transpose_a=transA, transpose_b=transB)
    if alpha != 1.0:
        product = multiply(product, alpha)
    if c is None or beta == 0.0:
        return product
    if beta != 1.0:
        c = multiply(c, beta)
    if c.shape == product.shape[1:] and c.shape != (1,):
        return emit("nn.bias_add", product, c, axis=1)
    return add(product, c)


@converter()
def MatMul(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a, b)


@converter(since=12)
def Einsum(*inputs: Tensor, equation: str) -> Tensor:
    return einsum(inputs, equation)
