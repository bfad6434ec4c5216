"""Matrix products."""

from math import prod
from typing import Any

import numpy as np

from relayc.frontend.common.products import einsum, matmul
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.operands import operand
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import binary, cast, like, reshape


@aten("linear", keep=True)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.rank == 1:
        found = matmul(input, weight)
        return found if bias is None else emit("add", found, bias)
    rows = reshape(input, (prod(input.shape[:-1]), input.shape[-1]))
    found = emit("nn.dense", rows, weight, units=weight.shape[0])
    found = found if bias is None else emit("nn.bias_add", found, bias, axis=1)
    return reshape(found, node().sizes)


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


@aten("dist")
def dist(self: Tensor, other: Tensor, p: Any) -> Tensor:
    apart = emit("abs", emit("subtract", operand(self), operand(other)))
    return norm_of(reshape(apart, (prod(apart.shape),)), float(p))


@aten("cdist", "_cdist_forward")
def cdist(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    shape1, shape2 = (*x1.shape[:-1], 1, x1.shape[-1]), (*x2.shape[:-2], 1, *x2.shape[-2:])
    apart = emit("abs", emit("subtract", reshape(x1, shape1), reshape(x2, shape2)))
    return norm_of(apart, p)


@aten("_pdist_forward")
def pdist(self: Tensor, p: float) -> Tensor:
    """Distances of the rows before and after each other, where their number is known at import."""
    rows = self.shape[0]
    if not isinstance(rows, int):
        raise ModelError(f"expected a number of rows known at import, found {self.type}")
    first, second = (emit("take", self, constant(at, "int64"), axis=0, mode="clip") for at in np.triu_indices(rows, 1))
    return norm_of(emit("abs", emit("subtract", first, second)), p)


def norm_of(apart: Tensor, p: float) -> Tensor:
    """The p-norm of absolute values along the last axis."""
    axis = (apart.rank - 1,)
    if p == 0:
        return emit("sum", cast(binary("not_equal", apart, 0.0), apart.dtype), axis=axis)
    if p == float("inf"):
        return emit("max", apart, axis=axis)
    if p == 1:
        return emit("sum", apart, axis=axis)
    if p == 2:
        return emit("sqrt", emit("sum", emit("multiply", apart, apart), axis=axis))
    return emit("power", emit("sum", emit("power", apart, like(p, apart)), axis=axis), like(1 / p, apart))
