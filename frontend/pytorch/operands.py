"""Operands of converters: tensors, numbers and sizes as tensors of one dtype."""

from math import prod
from typing import Any

import torch

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.pytorch.registry import node
from relayc.frontend.pytorch.values import dtype_name, is_expression
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import cast, reshape
from relayc.symbolic import Dim, Size


def operand(x: Any, dtype: str | None = None) -> Tensor:
    """A tensor, a number or a size as a tensor of `dtype`: by default that of the node's result."""
    dtype = dtype or node().dtype
    if isinstance(x, Tensor):
        return cast(x, dtype)
    if isinstance(x, Dim):
        return cast(size_tensor(x), dtype)
    if is_expression(x):
        return node().number(x, dtype)
    return constant(x, dtype)


def _like(x: Any) -> Any:
    """What torch promotes as it does the operand: a tensor with dimensions, one without, or a number."""
    if isinstance(x, Tensor):
        return torch.empty((1,) * x.rank, dtype=getattr(torch, x.dtype))
    return 1 if isinstance(x, Dim) else 1.0 if is_expression(x) else x


def promoted(a: Any, b: Any) -> str:
    """The dtype in which two operands are compared or computed: torch's, by kind (bool, int, float) and then by width."""
    return dtype_name(torch.result_type(_like(a), _like(b)))


def axes_list(dim: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, ascending: all of them for None and for none."""
    if dim is None or dim == ():
        return tuple(range(rank))
    chosen = dim if isinstance(dim, tuple) else (dim,)
    return tuple(sorted({d % rank for d in chosen})) if rank else ()


def along(size: Size, axis: int, rank: int) -> tuple[Size, ...]:
    """A shape of `rank` dimensions, that are 1 but for one."""
    return tuple(size if i == axis else 1 for i in range(rank))


def flat(x: Tensor) -> Tensor:
    """x as a vector."""
    return reshape(x, (prod(x.shape),))


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return emit("where", condition, x, y)
