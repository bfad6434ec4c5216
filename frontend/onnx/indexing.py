"""Reading and writing at computed positions. As in ONNX, Relay's operators here count negative indices from the end."""

from collections.abc import Sequence
from math import prod

import numpy as np

from relayc.frontend.converter import Tensor, axis_of, constant, emit, known
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.sizes import positions, size
from relayc.frontend.steps import binary, cast, check_constant, filled, reshape, strided_slice, transpose
from relayc.symbolic import Size


@converter()
def Gather(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return emit("take", data, indices, axis=axis_of(axis, data.rank), mode="clip")


@converter(since=11, foldable=False)  # the reference implementation does not end where an index is out of range
def GatherElements(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return emit("gather", data, indices, axis=axis_of(axis, data.rank))


def _columns(indices: Tensor) -> Tensor:
    """ONNX's index tuples along the last axis as Relay's along the first."""
    return transpose(indices, (indices.rank - 1, *range(indices.rank - 1)))


@converter(since=11)
def GatherND(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    return emit("gather_nd", data, _columns(indices), batch_dims=batch_dims)


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _reduction(name: str) -> str:
    if name not in _REDUCTIONS:
        raise OnnxError(f"attribute reduction: expected {', '.join(_REDUCTIONS)}, found {name!r}")
    return _REDUCTIONS[name]


@converter(since=11)
def ScatterElements(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    return emit("scatter_elements", data, indices, updates, axis=axis_of(axis, data.rank), reduction=_reduction(reduction))


@converter(since=9)
def Scatter(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0) -> Tensor:
    return ScatterElements(data, indices, updates, axis=axis)


@converter(since=11)
def ScatterND(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    return emit("scatter_nd", data, _columns(indices), updates, mode=_reduction(reduction))


@converter(since=9)
def OneHot(indices: Tensor, depth: Tensor, values: Tensor, *, axis: int = -1) -> Tensor:
    if values.shape != (2,):
        raise OnnxError(f"input values: expected two elements, off and on, found {list(values.shape)}")
    off, on = (reshape(strided_slice(values, [i], [i + 1], [1], [0]), ()) for i in (0, 1))
    along, extent = axis_of(axis, indices.rank + 1), size(depth, "depth")
    whole = cast(indices, "int64") if indices.is_float else indices
    return emit("one_hot", whole, on, off, depth=extent, axis=along, dtype=values.dtype)


@converter(since=9)
def Compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    """The positions where a condition known at import holds."""
    chosen = np.flatnonzero(known(condition, "condition"))
    data = reshape(x, (prod(x.shape),)) if axis is None else x
    along = 0 if axis is None else axis_of(axis, x.rank)
    if chosen.size == 0:
        return filled([0 if i == along else d for i, d in enumerate(data.shape)], 0, data.dtype)
    return emit("take", data, constant(chosen.astype(np.int64)), axis=along, mode="clip")


@converter(since=9)
def NonZero(x: Tensor) -> Tensor:
    """The positions of the elements that are not 0, of a tensor known at import: their number is the result's shape."""
    return constant(np.stack(np.nonzero(np.atleast_1d(known(x, "X")))), "int64")


@converter(since=10)
def ReverseSequence(x: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """Reverses the first `sequence_lens[b]` steps of each entry b of the batch: a gather at computed positions."""
    time, batch = axis_of(time_axis, x.rank), axis_of(batch_axis, x.rank)
    check_constant([d for d in (x.shape[time],) if isinstance(d, int)], "int64")
    steps = reshape(positions(x.shape[time]), _along(x, time))
    lengths = reshape(cast(sequence_lens, "int64"), _along(x, batch))
    mirrored = binary("subtract", emit("subtract", lengths, steps), 1)
    positions = emit("where", emit("less", steps, lengths), mirrored, steps)
    return emit("gather", x, emit("broadcast_to", positions, shape=x.shape), axis=time)


def _along(x: Tensor, axis: int) -> Sequence[Size]:
    return [d if i == axis else 1 for i, d in enumerate(x.shape)]
