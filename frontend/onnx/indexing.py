"""Reading and writing at computed positions. As in ONNX, Relay's operators here count negative indices from the end."""

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np

from relayc.frontend.common.positions import nonzero, positions_where
from relayc.frontend.common.unique import PERMUTED, as_rows, distinct
from relayc.frontend.converter import Tensor, assume, axis_of, constant, emit, known, packed
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import is_iteration, positions, size, size_tensor
from relayc.frontend.steps import as_numbers, binary, cast, check_constant, filled, reshape, row, strided_slice, transpose
from relayc.symbolic import Size, minimum, proves


@converter()
def Gather(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    axis = axis_of(axis, data.rank)
    elements = indices.elements
    proved = elements is not None and elements.size == 1 and is_iteration(elements.reshape(-1)[0], data.shape[axis])
    return emit("take", data, indices, axis=axis, mode="fast" if proved else "raise")


@converter(since=11, foldable=False)  # the reference implementation does not terminate for an index out of range
def GatherElements(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return emit("gather", data, indices, axis=axis_of(axis, data.rank))


def _columns(indices: Tensor) -> Tensor:
    """ONNX's index tuples along the last axis as Relay's along the first."""
    return transpose(indices, (indices.rank - 1, *range(indices.rank - 1)))


@converter(since=11)
def GatherND(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    return emit("gather_nd", data, _columns(indices), batch_dims=batch_dims)


Reduction = Literal["none", "add", "mul", "max", "min"]


@converter(since=11)
def ScatterElements(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: Reduction = "none") -> Tensor:
    how = "update" if reduction == "none" else reduction
    return emit("scatter_elements", data, indices, updates, axis=axis_of(axis, data.rank), reduction=how, distinct=how == "update")


@converter(since=9)
def Scatter(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
    return ScatterElements(data, indices, updates, axis=axis)


@converter(since=11)
def ScatterND(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: Reduction = "none") -> Tensor:
    how = "update" if reduction == "none" else reduction
    return emit("scatter_nd", data, _columns(indices), updates, mode=how, distinct=how == "update")


@converter(since=24)
def TensorScatter(
    past_cache: Tensor,
    update: Tensor,
    write_indices: Tensor | None = None,
    *,
    axis: int = -2,
    mode: Literal["linear", "circular"] = "linear",
) -> Tensor:
    """The cache, with the steps of `update` from a position on, of each entry of the batch its own: a gather, not a loop over the steps."""
    along = axis_of(axis, past_cache.rank)
    if along == 0 or update.rank != past_cache.rank:
        raise OnnxError(f"expected an axis behind the batch, and an update of the rank of the cache, found {axis} and {list(update.shape)}")
    update = assume(update, [u if i == along else d for i, (u, d) in enumerate(zip(update.shape, past_cache.shape, strict=True))])
    batch, length, steps = past_cache.shape[0], past_cache.shape[along], update.shape[along]
    begins = filled((batch,), 0, "int64") if write_indices is None else assume(cast(write_indices, "int64"), (batch,))
    which = emit("subtract", reshape(positions(length), (1, length)), reshape(begins, (batch, 1)))
    if mode == "circular":
        which = emit("floor_mod", which, emit("maximum", size_tensor(length), constant(1, "int64")))
    taken = emit("take", update, binary("maximum", which, 0), axis=along, batch_dims=1, mode="clip")
    written = emit("logical_and", binary("greater_equal", which, 0), emit("less", which, size_tensor(steps)))
    shape = [d if i in (0, along) else 1 for i, d in enumerate(past_cache.shape)]
    return emit("where", reshape(written, shape), taken, past_cache)


@converter(since=9)
def OneHot(indices: Tensor, depth: Tensor, values: Tensor, *, axis: int = -1) -> Tensor:
    pair = assume(values, (2,))
    off, on = row(pair, 0), row(pair, 1)
    along = axis_of(axis, indices.rank + 1)
    extent = size(cast(depth, "int64") if depth.is_float and not depth.is_known else depth, "depth")
    whole = cast(indices, "int64") if indices.is_float else indices
    if not whole.dtype.startswith("u"):  # a negative index counts from the end
        from_end = emit("add", cast(whole, "int64"), size_tensor(extent))
        whole = emit("where", binary("less", whole, 0), from_end, cast(whole, "int64"))
    return emit("one_hot", whole, on, off, depth=extent, axis=along, dtype=values.dtype)


@converter(since=9)
def Compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    """The positions where a condition is true."""
    data = reshape(x, (prod(x.shape),)) if axis is None else x
    along = 0 if axis is None else axis_of(axis, x.rank)
    chosen = np.flatnonzero(known(condition, "condition")) if condition.is_known else None
    if chosen is None or not proves(lambda: data.shape[along] > max(chosen, default=-1)):
        holds = reshape(condition, (prod(condition.shape),))
        # Conditions after the end of the axis select no elements.
        within = strided_slice(holds, [0], [minimum(holds.shape[0], data.shape[along])], [1], [0])
        return emit("take", data, positions_where(within), axis=along, mode="clip")
    if chosen.size == 0:
        return filled([0 if i == along else d for i, d in enumerate(data.shape)], 0, data.dtype)
    return emit("take", data, constant(chosen.astype(np.int64)), axis=along, mode="clip")


@converter(since=9)
def NonZero(x: Tensor) -> Tensor:
    return nonzero(x)


@converter(since=11)
def Unique(x: Tensor, *, axis: int | None = None, sorted: bool = True) -> tuple[Tensor, ...]:
    """The elements of a tensor without repetitions, where the first of each is, which one each element is, and their numbers."""
    along = None if axis is None else axis_of(axis, x.rank)
    source = reshape(x, (prod(x.shape),)) if along is None else x
    first, inverse, counts = distinct(as_rows(_numbers_in_order(source), along or 0))
    if not sorted:
        # In order of occurrence: the rank of a value is the rank of its first position.
        by_place = emit("argsort", first, axis=0, is_ascend=True, dtype="int64")
        (count,) = first.shape
        rank = emit("scatter_elements", filled((count,), 0, "int64"), by_place, positions(count), **PERMUTED)
        first, counts = (emit("take", t, by_place, axis=0, mode="clip") for t in (first, counts))
        inverse = emit("take", rank, inverse, axis=0, mode="clip")
    values = emit("take", source, first, axis=along or 0, mode="clip")
    return values, first, inverse, counts


def _numbers_in_order(x: Tensor) -> Tensor:
    """Numbers with the same order and equalities as the elements of x."""
    if x.dtype == "string":
        return packed("relayc.host.string.ranks", [x], x.type.with_dtype("int64"))[0]
    return as_numbers(x)


@converter(since=10)
def ReverseSequence(x: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """Reverses the first `sequence_lens[b]` steps of each entry b of the batch: a gather at computed positions."""
    time, batch = axis_of(time_axis, x.rank), axis_of(batch_axis, x.rank)
    check_constant([d for d in (x.shape[time],) if isinstance(d, int)], "int64")
    steps = reshape(positions(x.shape[time]), _along(x, time))
    lengths = reshape(cast(sequence_lens, "int64"), _along(x, batch))
    mirrored = binary("subtract", emit("subtract", lengths, steps), 1)
    order = emit("where", emit("less", steps, lengths), mirrored, steps)
    return emit("gather", x, emit("broadcast_to", order, shape=x.shape), axis=time)


def _along(x: Tensor, axis: int) -> Sequence[Size]:
    return [d if i == axis else 1 for i, d in enumerate(x.shape)]
