"""Matrix products."""

from math import prod
from typing import Any

from relayc.frontend.common.products import einsum, matmul
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.pytorch.operands import operand
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import cast, reshape


@aten("linear", keep=True)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.rank == 1:
        found = matmul(input, weight)
        return found if bias is None else emit("add", found, bias)
    return reshape(dense(input, weight, bias), node().sizes)


def dense(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x [..., k] times weight [n, k], and a bias [n]."""
    found = emit("nn.dense", reshape(x, (prod(x.shape[:-1]), x.shape[-1])), weight, units=weight.shape[0])
    found = found if bias is None else emit("nn.bias_add", found, bias, axis=1)
    return reshape(found, (*x.shape[:-1], weight.shape[0]))


@aten("mm", "bmm", "matmul", "mv", "dot", "vdot", keep=True)
def matmul_(
    self: Tensor, mat2: Tensor | None = None, other: Tensor | None = None, vec: Tensor | None = None, tensor: Tensor | None = None
) -> Tensor:
    second = next(t for t in (mat2, other, vec, tensor) if t is not None)
    return matmul(self, second)


def _scaled_sum(self: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * self + alpha * product."""
    product = product if alpha == 1 else emit("multiply", product, operand(alpha, product.dtype))
    if beta == 0:
        return product
    x = operand(self)
    x = x if beta == 1 else emit("multiply", x, operand(beta, x.dtype))
    if x.rank == 1 and product.rank == 2 and x.shape == product.shape[1:] and x.shape != (1,):
        return emit("nn.bias_add", product, x, axis=1)
    return emit("add", x, product)


@aten("addmm", "addmv")
def addmm(self: Tensor, mat1: Any = None, mat2: Any = None, mat: Any = None, vec: Any = None, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _scaled_sum(self, matmul(mat1, mat2) if mat is None else matmul(mat, vec), beta, alpha)


@aten("addbmm", keep=True)
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _scaled_sum(self, emit("sum", matmul(batch1, batch2), axis=(0,)), beta, alpha)


@aten("baddbmm", keep=True)
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _scaled_sum(self, matmul(batch1, batch2), beta, alpha)


@aten("einsum", keep=True)
def einsum_(equation: str, tensors: tuple[Tensor, ...]) -> Tensor:
    return einsum(tensors, equation)


@aten("bilinear", keep=True)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found = einsum((input1, weight, input2), "...i,oij,...j->...o")
    return found if bias is None else emit("add", found, bias)


@aten("_int_mm")
def int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return matmul(cast(self, "int32"), cast(mat2, "int32"))


@aten("_trilinear")
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: tuple[int, ...],
    expand2: tuple[int, ...],
    expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
) -> Tensor:
    """Products of three tensors, each with new axes, summed over some."""
    rank = i1.rank + len(expand1)
    terms = ["".join(chr(ord("a") + a) for a in range(rank) if a not in left) for left in (expand1, expand2, expand3, sumdim)]
    return einsum((i1, i2, i3), f"{','.join(terms[:3])}->{terms[3]}")
