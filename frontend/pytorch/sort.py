"""Order: sort, topk, and what is found in sorted rows."""

from typing import Any

import numpy as np

from relayc.frontend.common.sort import topk
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.errors import ModelError
from relayc.frontend.pytorch.operands import flat
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import filled, reshape, strided_slice
from relayc.symbolic import Size


@aten("topk")
def topk_(self: Tensor, k: Size, dim: int, largest: bool) -> tuple[Tensor, ...]:
    if self.rank == 0:
        return self, filled((), 0, "int64")
    return topk(self, k, dim, largest)


def _sorted(x: Tensor, axis: int, descending: bool = False) -> tuple[Tensor, Tensor]:
    if x.dtype == "bool":
        values, order = _sorted(emit("cast", x, dtype="uint8"), axis, descending)
        return emit("cast", values, dtype="bool"), order
    order = emit("argsort", x, axis=axis, is_ascend=not descending, dtype="int64")
    return emit("gather", x, order, axis=axis, in_bounds=True), order


@aten("sort", "argsort", keep=True)
def sort(self: Tensor, dim: int = -1, descending: bool = False) -> Any:
    whole = node().operator == "aten.sort"
    if self.rank == 0:
        return (self, filled((), 0, "int64")) if whole else filled((), 0, "int64")
    values, order = _sorted(self, axis_of(dim, self.rank), descending)
    return (values, order) if whole else order


def _nth(x: Tensor, at: Size, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    values, order = _sorted(x, axis)
    shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
    kept = shape if keepdim else tuple(d for i, d in enumerate(shape) if i != axis)
    value, place = (reshape(strided_slice(t, (at,), (at + 1,), (1,), (axis,)), kept) for t in (values, order))
    return value, place


@aten("kthvalue", keep=True)
def kthvalue(self: Tensor, k: Size, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    if self.rank == 0:
        return self, filled((), 0, "int64")
    return _nth(self, k - 1, axis_of(dim, self.rank), keepdim)


@aten("median", keep=True)
def median(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower one of two; NaN where any element is."""
    many = isinstance(node().dtype, tuple)
    if self.rank == 0:
        return (self, filled((), 0, "int64")) if many else self
    x, axis = (flat(self), 0) if dim is None else (self, axis_of(dim, self.rank))
    value, place = _nth(x, (x.shape[axis] - 1) // 2, axis, keepdim)
    return (value, place) if many else value


@aten("cummax", "cummin")
def cummax(self: Tensor, dim: int) -> tuple[Any, ...]:
    """By doubling: after step i an element is the largest of 2**i, where the axis has a size known at import."""
    if self.rank == 0:
        return self, filled((), 0, "int64")
    axis = axis_of(dim, self.rank)
    size = self.shape[axis]
    if not isinstance(size, int):
        raise ModelError(f"expected an axis of a size known at import, found {self.type}")
    shape = [size if i == axis else 1 for i in range(self.rank)]
    places = emit("broadcast_to", constant(np.arange(size).reshape(shape), "int64"), shape=self.shape)
    better = "greater" if node().operator == "aten.cummax" else "less"
    values, step = self, 1
    while step < size:
        head = tuple(strided_slice(t, (0,), (step,), (1,), (axis,)) for t in (values, places))
        before = tuple(strided_slice(t, (0,), (size - step,), (1,), (axis,)) for t in (values, places))
        after = tuple(strided_slice(t, (step,), (size,), (1,), (axis,)) for t in (values, places))
        wins = emit(better, before[0], after[0])
        if self.is_float:
            not_nan = emit("logical_not", emit("isnan", after[0]))
            wins = emit("logical_or", wins, emit("logical_and", emit("isnan", before[0]), not_nan))
        chosen = tuple(emit("where", wins, b, a) for b, a in zip(before, after, strict=True))
        values, places = (emit("concatenate", h, c, axis=axis) for h, c in zip(head, chosen, strict=True))
        step *= 2
    return values, places
