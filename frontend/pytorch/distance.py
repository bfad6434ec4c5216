"""Distances of rows and their derivatives."""

from math import prod
from typing import Any

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.gradients import gradients
from relayc.frontend.pytorch.operands import operand, where
from relayc.frontend.pytorch.reduce import p_norm
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import binary, broadcast_to, cast, divide, like, multiply, reshape, subtract


@aten("dist")
def dist(self: Tensor, other: Tensor, p: Any) -> Tensor:
    apart = emit("abs", emit("subtract", operand(self), operand(other)))
    return norm_of(reshape(apart, (prod(apart.shape),)), float(p))


def _apart(x1: Tensor, x2: Tensor) -> Tensor:
    """The difference of each row of x1 and each of x2."""
    shape1, shape2 = (*x1.shape[:-1], 1, x1.shape[-1]), (*x2.shape[:-2], 1, *x2.shape[-2:])
    return subtract(reshape(x1, shape1), reshape(x2, shape2))


def _apart_of_pairs(x: Tensor) -> Tensor:
    """The difference of each row and each one after it."""
    rows = x.shape[0]
    if not isinstance(rows, int):
        raise ModelError(f"expected a number of rows known at import, found {x.type}")
    first, second = (emit("take", x, constant(at, "int64"), axis=0, mode="clip") for at in np.triu_indices(rows, 1))
    return subtract(first, second)


@aten("cdist", "_cdist_forward")
def cdist(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    return norm_of(emit("abs", _apart(x1, x2)), p)


@aten("_pdist_forward")
def pdist(self: Tensor, p: float) -> Tensor:
    """Distances of the rows before and after each other, where their number is known at import."""
    return norm_of(emit("abs", _apart_of_pairs(self)), p)


def norm_of(size: Tensor, p: float) -> Tensor:
    """The p-norm of absolute values along the last axis."""
    return p_norm(size, p, (size.rank - 1,), False)


@aten("_cdist_backward")
def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    """Of x1, broadcast to the batches of both."""
    x1 = broadcast_to(x1, node().sizes)
    apart = _apart(x1, x2)
    return gradients(apart, [x1], _slopes(apart, cdist, grad, p))[0]


@aten("_pdist_backward")
def pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    apart = _apart_of_pairs(self)
    return gradients(apart, [self], _slopes(apart, pdist, grad, p))[0]


def _slopes(apart: Tensor, distance: Tensor, grad: Tensor, p: float) -> Tensor:
    """The derivatives of p-norms along the last axis, times those of the norms: as torch has it, 0 by elements that are 0."""
    zero = like(0, apart)
    if p == 0:
        return broadcast_to(zero, apart.shape)
    share = divide(emit("abs", apart), reshape(distance, (*distance.shape, 1)))
    power = cast(binary("equal", share, 1), share.dtype) if p == float("inf") else binary("power", share, p - 1)
    found = multiply(multiply(emit("sign", apart), power), reshape(grad, (*grad.shape, 1)))
    return where(binary("equal", apart, 0), zero, found)
