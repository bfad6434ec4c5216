"""Operators that read and write elements at positions."""

from collections.abc import Sequence
from math import prod

from relayc.dialects.relay.errors import check
from relayc.frontend.common.positions import nonzero
from relayc.frontend.converter import Tensor, axis_of, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.sizes import positions, shape_tensor, size_tensor, sizes
from relayc.frontend.steps import binary, broadcast_shape, broadcast_to, cast, filled, reshape, strided_slice, transpose


@composed("invert_permutation")
def invert_permutation(data: Tensor) -> Tensor:
    """The position of each number in a permutation."""
    at = cast(positions(data.shape[0]), data.dtype)
    return emit("scatter_elements", filled(data.shape, 0, data.dtype), data, at, axis=0, reduction="update", distinct=True)


@composed("reverse_sequence")
def reverse_sequence(data: Tensor, seq_lengths: Tensor, *, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """Reverses the first elements of each sequence: as many as its length says."""
    from relayc.frontend.onnx.indexing import ReverseSequence

    time, batch = axis_of(seq_axis, data.rank), axis_of(batch_axis, data.rank)
    check(time != batch, "seq_axis", f"another axis than batch_axis, {batch_axis}", seq_axis)
    lengths = emit("minimum", cast(seq_lengths, "int64"), size_tensor(data.shape[time]))
    return ReverseSequence(data, lengths, batch_axis=batch, time_axis=time)


@composed("strided_set")
def strided_set(data: Tensor, v: Tensor, begin: Tensor, end: Tensor, strides: Tensor) -> Tensor:
    """data with data[begin:end:strides] set to v, along the first axes; negative bounds count from the end."""
    inside, values = None, v
    if 0 in v.shape:
        return data
    for axis in range(begin.shape[0]):
        size = shape_tensor(data.shape[axis : axis + 1])
        step = _element(strides, axis) or constant([1], "int64")
        bounds = _element(begin, axis), _element(end, axis) or size
        first, last = (_bound(bound, size, step) for bound in bounds if bound is not None)
        offset = emit("subtract", positions(data.shape[axis]), first)
        forward = binary("greater", step, 0)
        before = emit("where", forward, emit("less", positions(data.shape[axis]), last), emit("greater", positions(data.shape[axis]), last))
        turn = emit("floor_divide", offset, step)
        on = emit("equal", emit("multiply", turn, step), offset)
        here = emit("logical_and", emit("logical_and", on, binary("greater_equal", turn, 0)), before)
        values = emit("take", values, binary("maximum", turn, 0), axis=axis, mode="clip")
        here = reshape(here, [data.shape[axis] if i == axis else 1 for i in range(data.rank)])
        inside = here if inside is None else emit("logical_and", inside, here)
    return data if inside is None else emit("where", inside, values, data)


def _element(vector: Tensor, index: int) -> Tensor | None:
    """An element of a vector as int64[1]; None after its end."""
    if index >= vector.shape[0]:
        return None
    return cast(strided_slice(vector, [index], [index + 1], [1], [0]), "int64")


def _bound(bound: Tensor, size: Tensor, step: Tensor) -> Tensor:
    """A bound as a position, as numpy's slices have it."""
    at = emit("where", binary("less", bound, 0), emit("add", bound, size), bound)
    forward = emit("minimum", binary("maximum", at, 0), size)
    back = emit("minimum", binary("maximum", at, -1), binary("subtract", size, 1))
    return emit("where", binary("greater", step, 0), forward, back)


@composed("unravel_index")
def unravel_index(data: Tensor, shape: Tensor) -> Tensor:
    """The coordinates of flat positions in a shape: one row for each axis."""
    rows: list[Tensor] = []
    left = data
    for axis in reversed(range(shape.shape[0])):
        size = cast(reshape(strided_slice(shape, [axis], [axis + 1], [1], [0]), ()), data.dtype)
        rows.insert(0, emit("floor_mod", left, size))
        left = emit("floor_divide", left, size)
    return emit("stack", *rows, axis=0)


@composed("adv_index")
def adv_index(*inputs: Tensor) -> Tensor:
    """data[i, j, ...] as numpy has it: positions along the first axes, which broadcast."""
    data, *indices = inputs
    shape = broadcast_shape(*(i.shape for i in indices))
    stacked = emit("stack", *(broadcast_to(cast(i, "int64"), shape) for i in indices), axis=0)
    return emit("gather_nd", data, stacked)


@composed("argwhere")
def argwhere(condition: Tensor) -> Tensor:
    """The positions of the elements that are not 0: int32, a row for each."""
    return cast(transpose(nonzero(condition), (1, 0)), "int32")


@composed("unique", results=lambda attrs, _: 5 if attrs["return_counts"] else 4, sorted=True, return_counts=False)
def unique(data: Tensor, *, sorted: bool, return_counts: bool) -> tuple[Tensor, ...]:
    """The different elements of a vector, where each is first, which one each element is, how many there are, and how often each is there.

    All results but the number of elements have the size of the vector: what is behind that number has no meaning.
    """
    n = data.shape[0]
    size = shape_tensor((n,))
    order = emit("argsort", data, axis=0, is_ascend=True, dtype="int32")
    in_order = emit("take", data, order, axis=0, mode="clip")
    before = emit("take", in_order, binary("maximum", binary("subtract", positions(n), 1), 0), axis=0, mode="clip")
    begins = emit("logical_or", binary("equal", positions(n), 0), emit("not_equal", in_order, before))
    rank = binary("subtract", emit("cumsum", cast(begins, "int32"), axis=0), 1)
    count = strided_slice(binary("add", rank, 1), [-1], [n], [1], [0])

    def by_rank(values: Tensor, reduction: str, room: Tensor) -> Tensor:
        return emit("scatter_elements", room, rank, values, axis=0, reduction=reduction)

    zeros = filled((n,), 0, "int32")
    first = by_rank(order, "min", broadcast_to(cast(size, "int32"), (n,)))
    if not sorted:  # in order of first occurrence
        turns = emit("argsort", first, axis=0, is_ascend=True, dtype="int32")
        places = emit("scatter_elements", zeros, turns, cast(positions(n), "int32"), axis=0, reduction="update", distinct=True)
        rank = emit("take", places, rank, axis=0, mode="clip")
        first = emit("take", first, turns, axis=0, mode="clip")
    inverse = emit("scatter_elements", zeros, order, rank, axis=0, reduction="update", distinct=True)
    values = by_rank(in_order, "update", filled((n,), 0, data.dtype))
    found = (values, first, inverse, count)
    return (*found, by_rank(filled((n,), 1, "int32"), "add", zeros)) if return_counts else found


@composed("sparse_to_dense", "sparse_indices output_shape sparse_values default_value", default_value=0)
def sparse_to_dense(sparse_indices: Tensor, sparse_values: Tensor, default_value: Tensor, *, output_shape: Sequence[int]) -> Tensor:
    """A tensor of a default with values at positions: [count, axes], [count] or one."""
    rank = len(output_shape)
    if sparse_indices.rank < 2:  # one position, or a number for each value
        sparse_indices = reshape(sparse_indices, (prod(sparse_indices.shape) // rank, rank))
    count = sparse_indices.shape[0]
    values = broadcast_to(sparse_values, (count,))
    room = emit("full", reshape(cast(default_value, values.dtype), ()), shape=tuple(output_shape))
    return emit("scatter_nd", room, transpose(cast(sparse_indices, "int64"), (1, 0)), values, mode="update")


@composed("sparse_reshape", results=2)
def sparse_reshape(sparse_indices: Tensor, prev_shape: Tensor, new_shape: Tensor) -> tuple[Tensor, ...]:
    """Positions [count, axes] in a shape as those of the same elements in another one, of which one size may be -1; and this shape."""
    total = emit("prod", prev_shape, axis=(0,))
    given = emit("where", binary("less", new_shape, 0), constant(1, new_shape.dtype), new_shape)
    rest = emit("floor_divide", cast(total, new_shape.dtype), emit("prod", given, axis=(0,)))
    shape = emit("where", binary("less", new_shape, 0), rest, new_shape)
    flat = emit("sum", emit("multiply", sparse_indices, cast(_steps(prev_shape), sparse_indices.dtype)), axis=(1,), keepdims=True)
    quotients = emit("floor_divide", flat, cast(_steps(shape), flat.dtype))
    return emit("floor_mod", quotients, cast(shape, flat.dtype)), shape


def _steps(shape: Tensor) -> Tensor:
    """How many elements are between neighbours along each axis."""
    return emit("reverse", emit("cumprod", emit("reverse", shape, axis=0), axis=0, exclusive=True), axis=0)


@composed("segment_sum")
def segment_sum(data: Tensor, segment_ids: Tensor, num_segments: Tensor) -> Tensor:
    """The sums of rows by the numbers of their segments."""
    (count,) = sizes(num_segments, "num_segments")
    data = strided_slice(data, [0], [segment_ids.shape[0]], [1], [0])  # rows without a number are left out
    rows = broadcast_to(reshape(cast(segment_ids, "int64"), (data.shape[0], *[1] * (data.rank - 1))), data.shape)
    return emit("scatter_elements", filled((count, *data.shape[1:]), 0, data.dtype), rows, data, axis=0, reduction="add")
