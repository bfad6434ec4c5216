"""Order: sort, topk, and what is found in sorted rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relayc.frontend.common.loops import CarriedLoop, number_as_data
from relayc.frontend.common.sort import topk
from relayc.frontend.common.unique import as_rows, distinct, runs
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.pytorch.operands import along, flat
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.steps import as_numbers, binary, broadcast_to, cast, filled, reshape, strided_slice, subtract
from relayc.symbolic import Size

_MOST_DOUBLINGS = 48
"""2 to this power is more than the elements that a memory holds."""


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


@aten("sort", "argsort")
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


@aten("kthvalue")
def kthvalue(self: Tensor, k: Size, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    if self.rank == 0:
        return self, filled((), 0, "int64")
    return _nth(self, k - 1, axis_of(dim, self.rank), keepdim)


@aten("median")
def median(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower one of two; NaN where any element is."""
    many = isinstance(node().dtype, tuple)
    if self.rank == 0:
        return (self, filled((), 0, "int64")) if many else self
    x, axis = (flat(self), 0) if dim is None else (self, axis_of(dim, self.rank))
    value, place = _nth(x, (x.shape[axis] - 1) // 2, axis, keepdim)
    return (value, place) if many else value


@aten("nanmedian")
def nanmedian(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower one of two of the numbers, which a sort puts before NaN; NaN where all are."""
    many = isinstance(node().dtype, tuple)
    if self.rank == 0:
        return (self, filled((), 0, "int64")) if many else self
    if not self.is_float:
        return median(self, dim, keepdim)
    x, axis = (flat(self), 0) if dim is None else (self, axis_of(dim, self.rank))
    values, order = _sorted(x, axis)
    count = emit("sum", cast(emit("logical_not", emit("isnan", x)), "int64"), axis=(axis,), keepdims=True)
    at = binary("floor_divide", binary("maximum", subtract(count, 1), 0), 2)
    shape = node().shape[0] if many else node().sizes
    value, place = (reshape(emit("gather", t, at, axis=axis, in_bounds=True), shape) for t in (values, order))
    return (value, place) if many else value


@aten("mode")
def mode(self: Tensor, dim: int, keepdim: bool) -> tuple[Any, ...]:
    """The most frequent element, the least of several, and its last place: where the longest run of the sorted row ends."""
    if self.rank == 0:
        return self, filled((), 0, "int64")
    axis = axis_of(dim, self.rank)
    values, order = _sorted(self, axis)
    n = self.shape[axis]
    steps = reshape(positions(n), along(n, axis, self.rank))
    before = emit("take", values, binary("maximum", subtract(positions(n), 1), 0), axis=axis, mode="clip")
    begin = emit("where", emit("not_equal", values, before), broadcast_to(steps, self.shape), constant(0, "int64"))
    length = subtract(steps, _running(begin, axis, "greater")[0])
    at = emit("argmax", length, axis=(axis,), keepdims=True)
    value, place = (emit("gather", t, cast(at, "int64"), axis=axis, in_bounds=True) for t in (values, order))
    return reshape(value, node().shape[0]), reshape(place, node().shape[1])


@aten("_unique2", "unique_dim", "unique_consecutive")
def unique(self: Tensor, return_inverse: bool, return_counts: bool, dim: int | None = None) -> tuple[Tensor | None, ...]:
    x, axis = (flat(self), 0) if dim is None else (self, axis_of(dim, self.rank))
    parts = runs if node().operator == "aten.unique_consecutive" else distinct
    first, inverse, counts = parts(as_rows(as_numbers(x), axis))
    values = emit("take", x, first, axis=axis, mode="clip")
    inverse = reshape(inverse, self.shape) if dim is None else inverse
    return values, inverse if return_inverse else None, counts if return_counts else None


@aten("cummax", "cummin")
def cummax(self: Tensor, dim: int) -> tuple[Any, ...]:
    if self.rank == 0:
        return self, filled((), 0, "int64")
    return _running(self, axis_of(dim, self.rank), "greater" if node().operator == "aten.cummax" else "less")


def _running(x: Tensor, axis: int, better: str) -> tuple[Tensor, Tensor]:
    """The best element so far and its place, the last of several, by doubling: after step i it is that of the last 2**i elements. Where the
    size is known the steps are written out; else they are a loop, in which the first elements are compared with the first one."""
    size = x.shape[axis]

    def chosen(before: Sequence[Tensor], after: Sequence[Tensor]) -> list[Tensor]:
        wins = emit(better, before[0], after[0])
        if x.is_float:
            not_nan = emit("logical_not", emit("isnan", after[0]))
            wins = emit("logical_or", wins, emit("logical_and", emit("isnan", before[0]), not_nan))
        return [emit("where", wins, b, a) for b, a in zip(before, after, strict=True)]

    states = [x, broadcast_to(reshape(positions(size), along(size, axis, x.rank)), x.shape)]
    if isinstance(size, int):
        step = 1
        while step < size:
            head, before, after = (
                [strided_slice(t, (b,), (e,), (1,), (axis,)) for t in states] for b, e in ((0, step), (0, size - step), (step, size))
            )
            states = [emit("concatenate", h, c, axis=axis) for h, c in zip(head, chosen(before, after), strict=True)]
            step *= 2
        return states[0], states[1]

    distances = constant(np.int64(1) << np.arange(_MOST_DOUBLINGS))

    def body(number: Tensor, _: Tensor | None, states: list[Tensor]) -> tuple[None, list[Tensor], list[Tensor]]:
        distance = emit("take", distances, number_as_data(number), axis=0, mode="clip")
        at = binary("maximum", subtract(positions(size), distance), 0)
        return None, chosen([emit("take", t, at, axis=axis, mode="clip") for t in states], states), []

    steps = emit("sum", cast(emit("less", distances, size_tensor(size)), "int64"))
    values, places = CarriedLoop(None, steps, None, states, ["values", "places"], body, [], []).run()[0]
    return values, places
