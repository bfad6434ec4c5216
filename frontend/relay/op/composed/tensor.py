"""Operators on elements and shapes of tensors."""

from collections.abc import Sequence
from math import prod

import numpy as np

from relayc.dialects.relay.base import OPS
from relayc.dialects.relay.errors import check
from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import Tensor, assume, axis_of, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.sizes import positions, size_tensor
from relayc.frontend.steps import binary, broadcast_to, cast, dilated, reshape, strided_slice, transpose
from relayc.symbolic import Size


@composed("ndarray_size")
def ndarray_size(data: Tensor, *, dtype: str = "int32") -> Tensor:
    """The number of elements, a scalar."""
    return cast(size_tensor(prod(data.shape)), dtype)


@composed("collapse_sum_like")
def collapse_sum_like(data: Tensor, collapse_type: Tensor) -> Tensor:
    """The sum over the axes along which the shape of `collapse_type` broadcasts to that of the data."""
    return _collapsed(data, collapse_type.shape)


@composed("collapse_sum_to")
def collapse_sum_to(data: Tensor, *, shape: Sequence[int]) -> Tensor:
    """The sum over the axes along which a shape broadcasts to that of the data."""
    return _collapsed(data, shape)


def _collapsed(data: Tensor, shape: Sequence[Size]) -> Tensor:
    new = data.rank - len(shape)
    axes = (*range(new), *(i for i, d in enumerate(shape, new) if d == 1 and data.shape[i] != 1))
    return reshape(emit("sum", data, axis=axes), shape) if axes else data


@composed("slice_like")
def slice_like(data: Tensor, shape_like: Tensor, *, axes: Sequence[int] | None = None) -> Tensor:
    """The first elements along axes (all by default): as many as another tensor has."""
    chosen = [axis_of(a, data.rank) for a in axes or range(min(data.rank, shape_like.rank))]
    found = strided_slice(data, [0] * len(chosen), [shape_like.shape[a] for a in chosen], [1] * len(chosen), chosen)
    return assume(found, [shape_like.shape[i] if i in chosen else d for i, d in enumerate(data.shape)])


@composed("reshape_like")
def reshape_like(
    data: Tensor, shape_like: Tensor, *, lhs_begin: int = 0, lhs_end: int | None = None, rhs_begin: int = 0, rhs_end: int | None = None
) -> Tensor:
    """The axes lhs_begin to lhs_end in the shape that those from rhs_begin to rhs_end have of another tensor."""
    begin, end, _ = slice(lhs_begin, lhs_end).indices(data.rank)
    first, last, _ = slice(rhs_begin, rhs_end).indices(shape_like.rank)
    return reshape(data, (*data.shape[:begin], *shape_like.shape[first:last], *data.shape[end:]))


@composed("contrib_reverse_reshape")
def reverse_reshape(data: Tensor, *, newshape: Sequence[int], allowzero: bool = False) -> Tensor:
    """As reshape, with the special values of the new shape read from the right."""
    cls = OPS["reshape"]
    attributes = cls.attribute_values({"newshape": tuple(reversed(newshape)), "allowzero": allowzero})
    (found,) = cls.result_types([data.type.with_shape(reversed(data.shape))], attributes)
    assert isinstance(found, TensorType)
    return reshape(data, tuple(reversed(found.sizes)))


@composed("sliding_window")
def sliding_window(data: Tensor, *, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """All windows over the axes from `axis` on: the places come first, then the elements of a window."""
    first, count = axis_of(axis, data.rank), data.rank - axis_of(axis, data.rank)
    for name, numbers in (("window_shape", window_shape), ("strides", strides)):
        check(len(numbers) == count and min(numbers) >= 1, name, f"{count} values of at least 1", tuple(numbers))
    for i, (width, step) in enumerate(zip(window_shape, strides, strict=True)):
        size = data.shape[first + 2 * i]
        check(isinstance(size, int), "data", f"a known size of axis {first + i}", data.type)
        assert isinstance(size, int)
        check(width <= size, f"window_shape[{i}]", f"at most {size}, the size of axis {first + i}", width)
        places = np.arange((size - width) // step + 1)[:, None] * step + np.arange(width)
        data = emit("take", data, constant(places, "int64"), axis=first + 2 * i, mode="clip")
    order = [*range(first), *range(first, first + 2 * count, 2), *range(first + 1, first + 2 * count, 2)]
    return transpose(data, order)


@composed("fixed_point_multiply")
def fixed_point_multiply(data: Tensor, *, multiplier: int, shift: int) -> Tensor:
    """data * multiplier * 2^(shift - 31), rounded to nearest, halves up."""
    return _fixed_point(data, constant(multiplier, "int64"), constant(max(shift, 0), "int64"), constant(max(-shift, 0), "int64"))


@composed("fixed_point_multiply_per_axis")
def fixed_point_multiply_per_axis(
    x: Tensor,
    m: Tensor,
    lshift: Tensor,
    rshift: Tensor,
    *,
    is_lshift_required: bool = False,
    is_rshift_required: bool = False,
    axes: Sequence[int] = (),
) -> Tensor:
    """As fixed_point_multiply, with a multiplier and shifts for each element of axes."""
    shape = [d if i in {axis_of(a, x.rank) for a in axes} else 1 for i, d in enumerate(x.shape)]
    factors, left, right = (reshape(cast(t, "int64"), shape) for t in (m, lshift, rshift))
    zero = constant(0, "int64")
    return _fixed_point(x, factors, left if is_lshift_required else zero, right if is_rshift_required else zero)


def _fixed_point(x: Tensor, factor: Tensor, left: Tensor, right: Tensor) -> Tensor:
    wide = emit("multiply", emit("left_shift", cast(x, "int64"), left), factor)
    total = binary("add", right, 31)
    half = emit("left_shift", constant(1, "int64"), binary("subtract", total, 1))
    return cast(emit("right_shift", emit("add", wide, half), total), x.dtype)


@composed("trunc_divide")
def trunc_divide(lhs: Tensor, rhs: Tensor) -> Tensor:
    """The quotient of integers, rounded towards zero."""
    return emit("divide", lhs, rhs) if not lhs.is_float else emit("trunc", emit("divide", lhs, rhs))


@composed("trunc_mod")
def trunc_mod(lhs: Tensor, rhs: Tensor) -> Tensor:
    """The remainder of trunc_divide, with the sign of the dividend."""
    return emit("mod", lhs, rhs)


@composed("einsum")
def einsum(*data: Tensor, equation: str) -> Tensor:
    """Sums of products by an equation."""
    from relayc.frontend.onnx.dense import Einsum

    return Einsum(*data, equation=equation)


@composed("meshgrid", results=lambda _, args: len(args[0]))
def meshgrid(*data: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid: a tensor for each vector."""
    vectors = [reshape(x, (prod(x.shape),)) for x in data]
    order = [*range(len(vectors))]
    if indexing == "xy" and len(vectors) > 1:
        order[:2] = 1, 0
    shape = [vectors[i].shape[0] for i in order]
    return tuple(
        broadcast_to(reshape(x, [x.shape[0] if order[axis] == i else 1 for axis in range(len(vectors))]), shape)
        for i, x in enumerate(vectors)
    )


@composed("sequence_mask")
def sequence_mask(data: Tensor, valid_length: Tensor, *, mask_value: float = 0.0, axis: int = 0) -> Tensor:
    """A number in the place of what is behind the valid length of each sequence; `axis` (0 or 1) counts steps, the other one sequences."""
    steps = reshape(positions(data.shape[axis]), [data.shape[axis] if i == axis else 1 for i in range(data.rank)])
    lengths = reshape(cast(valid_length, "int64"), [data.shape[1 - axis] if i == 1 - axis else 1 for i in range(data.rank)])
    return emit("where", emit("less", steps, lengths), data, constant(mask_value, data.dtype))


@composed("matrix_set_diag")
def matrix_set_diag(
    input: Tensor,
    diagonal: Tensor,
    *,
    k1: int,
    k2: int,
    super_diag_right_align: bool = True,
    sub_diag_right_align: bool = False,
) -> Tensor:
    """Matrices with the diagonals from number k1 to k2 replaced; shorter ones stand at one end of their row of `diagonal`."""
    rows, columns = TensorType(input.shape[-2:], input.dtype).static_shape
    width = diagonal.shape[-1]
    assert isinstance(width, int)
    row, column = np.indices((rows, columns))
    number = column - row
    lengths = np.minimum(rows + np.minimum(number, 0), columns - np.maximum(number, 0))
    right = np.where(number >= 0, super_diag_right_align, sub_diag_right_align)
    place = column - np.maximum(number, 0) + np.where(right, width - lengths, 0)
    places = (k2 - number) * width + place  # outside of the tensor where nothing is replaced
    flat = reshape(diagonal, (*input.shape[:-2], (k2 - k1 + 1) * width))
    values = emit("take", flat, constant(places, "int64"), axis=input.rank - 2, mode="clip")
    return emit("where", constant((number >= k1) & (number <= k2), "bool"), values, input)


@composed("nn.dilate")
def dilate(data: Tensor, *, strides: Sequence[int], dilation_value: float = 0.0) -> Tensor:
    """A number between neighbours along axes: strides - 1 times."""
    return dilated(data, strides, dilation_value)
