"""Small steps that several converters share: identities are not emitted, and known values stay known."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np

from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.reshape import same_elements
from relayc.dialects.relay.slices import slice_bounds
from relayc.dialects.relay.types import DTYPES, TensorType
from relayc.frontend.converter import Tensor, assume, constant, emit, may_equal, refreshed, simpler
from relayc.frontend.errors import ModelError
from relayc.frontend.sizes import is_at_import, tensor_of
from relayc.symbolic import Dim, Size, maximum, proves, substitute

_FOLDED_BYTES = 1 << 16


def _fold(x: Tensor, compute: Callable[[np.ndarray], np.ndarray]) -> Tensor | None:
    """A known, small tensor computed from another; None where it is left to the program."""
    if x.is_known and x.foldable and x.type.num_bytes <= _FOLDED_BYTES:
        with np.errstate(over="ignore"):  # beyond the range of a narrower float is infinity
            return constant(compute(x.array))
    return None


def reshape(x: Tensor, shape: Sequence[Size]) -> Tensor:
    """x with its elements in another shape (no -1 or 0: sizes). That there are as many is checked at run time where it is not proved."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if x.elements is not None and is_at_import(x):
        return tensor_of(x.elements.reshape(shape), x.dtype)
    if not same_elements(x.shape, shape):
        # What has become known since they were computed may make them simpler.
        x, shape = refreshed(x), tuple(substitute(d, {}) for d in shape)
    if not same_elements(x.shape, shape):
        if not may_equal(prod(x.shape), prod(shape)):
            raise ModelError(f"expected a shape of {prod(x.shape)} elements for {list(x.shape)}, found {list(shape)}")
        return reshape(assume(reshape(x, (prod(x.shape),)), (prod(shape),)), shape)
    return _fold(x, lambda a: a.reshape(shape)) or emit("reshape", x, newshape=shape, allowzero=0 in shape)


def transpose(x: Tensor, axes: Sequence[int]) -> Tensor:
    """x with its axes in the order `axes`."""
    axes = tuple(axes)
    if axes == tuple(range(x.rank)):
        return x
    if x.elements is not None and is_at_import(x):
        return tensor_of(x.elements.transpose(axes), x.dtype)
    return _fold(x, lambda a: a.transpose(axes)) or emit("transpose", x, axes=axes)


def cast(x: Tensor, dtype: str) -> Tensor:
    """x in another element type."""
    if x.dtype == dtype:
        return x
    if (x.is_float and not x.type.with_dtype(dtype).is_float) or not x.type.is_computed or not x.type.with_dtype(dtype).is_computed:
        return emit("cast", x, dtype=dtype)  # out of range, the compiled conversion decides
    return _fold(x, lambda a: a.astype(DTYPES[dtype])) or emit("cast", x, dtype=dtype)


def as_numbers(x: Tensor) -> Tensor:
    """Bools as integers, which more operators take."""
    return cast(x, "uint8") if x.dtype == "bool" else x


def cast_as(x: Tensor, dtype: str, saturate: bool, round_mode: str = "up") -> Tensor:
    """x in another element type; `saturate` and `round_mode` are of floats of 8 bits, as in the operator cast."""
    if x.dtype == dtype or not dtype.startswith("float8"):
        return cast(x, dtype)
    return emit("cast", x, dtype=dtype, saturate=None if saturate else False, round_mode=None if round_mode == "up" else round_mode)


def broadcast_to(x: Tensor, shape: Sequence[Size]) -> Tensor:
    """x repeated along its axes of size 1 (and new leading ones) to `shape`."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if not x.type.is_static and x.rank <= len(shape):
        x = assume(x, [d if d == 1 else w for d, w in zip(x.shape, shape[len(shape) - x.rank :], strict=True)])
    return x if x.shape == shape else emit("broadcast_to", x, shape=shape)


def in_parts(x: Tensor, axis: int, count: int) -> Tensor:
    """x, an axis of which has `count` equal parts. That it has is checked at run time where it is not proved. Raises ModelError."""
    return assume(x, [d // count * count if i == axis else d for i, d in enumerate(x.shape)])


def broadcast_shape(*shapes: Sequence[Size]) -> tuple[Size, ...]:
    """The shape that several shapes broadcast to: of different expressions one, as they are taken for equal. Raises ModelError where they
    cannot be."""
    rank = max(map(len, shapes), default=0)
    out: list[Size] = [1] * rank
    for shape in shapes:
        for i, d in enumerate(shape, rank - len(shape)):
            if out[i] != 1 and d != 1 and not may_equal(out[i], d):
                raise ModelError(
                    f"shapes do not broadcast: expected equal or 1 in dimension {i - rank}, found {', '.join(map(str, shapes))}"
                )
            out[i] = d if out[i] == 1 else out[i] if d == 1 else simpler(out[i], d)
    return tuple(out)


def like(value: Any, x: Tensor) -> Tensor:
    """A scalar constant in the element type of x."""
    return constant(value, x.dtype)


def binary(relay_name: str, x: Tensor, y: Tensor | float) -> Tensor:
    """A Relay operator of two tensors, or of a tensor and a number."""
    return emit(relay_name, x, y if isinstance(y, Tensor) else like(y, x))


add = partial(binary, "add")
subtract = partial(binary, "subtract")
multiply = partial(binary, "multiply")
divide = partial(binary, "divide")


def variadic(relay_name: str, first: Tensor, *rest: Tensor) -> Tensor:
    """A binary operator over any number of inputs, from the left."""
    return reduce(lambda x, y: emit(relay_name, x, y), rest, first)


def strided_slice(x: Tensor, begin: Sequence[Size], end: Sequence[Size], strides: Sequence[int], axes: Sequence[int]) -> Tensor:
    """x[begin:end:strides] along `axes`, with begin and end as ONNX Slice has them (negative ones count from the end, large ones clamp).

    What begins before the first element goes backwards from there, where numpy gives nothing.
    """
    begin = [_first(b, x.shape[a]) if s < 0 else b for b, s, a in zip(begin, strides, axes, strict=True)]
    given = list(zip(begin, end, strides, axes, strict=True))
    if any(isinstance(v, Dim) for b, e, _, a in given for v in (b, e, x.shape[a])):
        parts = [(*slice_bounds(x.shape[a], b, e, s), s, x.shape[a]) for b, e, s, a in given]
        if all((start, stride) == (0, 1) and count == size for start, count, stride, size in parts):
            return x
        return emit("strided_slice", x, begin=tuple(begin), end=tuple(end), strides=tuple(strides), axes=tuple(axes))
    bounds = [slice(b, e, s).indices(x.shape[a]) for b, e, s, a in given]
    whole = all((b, s) == (0, 1) and e == x.shape[a] for (b, e, s), a in zip(bounds, axes, strict=True))
    if whole:
        return x
    # Relay reads a negative end as counted from the end; one before the first element is written so that it stays so.
    ends = [e - x.shape[a] if e < 0 else e for (_, e, _), a in zip(bounds, axes, strict=True)]
    return emit("strided_slice", x, begin=[b for b, _, _ in bounds], end=ends, strides=[s for _, _, s in bounds], axes=tuple(axes))


def dilated(x: Tensor, strides: Sequence[int], value: float = 0.0) -> Tensor:
    """A tensor with a number between neighbours along each axis: strides - 1 times. Axes with a stride above 1 are not empty."""
    for axis, step in enumerate(strides):
        if step == 1:
            continue
        shape, size = x.shape, x.shape[axis]
        apart = reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        width = [0] * (2 * apart.rank)
        width[2 * axis + 3] = step - 1
        padded = emit("nn.pad", apart, constant(value, x.dtype), pad_width=width, pad_mode="constant")
        joined = reshape(padded, (*shape[:axis], size * step, *shape[axis + 1 :]))
        x = strided_slice(joined, [0], [size * step - (step - 1)], [1], [axis])
    return x


def _first(begin: Size, size: Size) -> Size:
    """The place where a slice backwards begins, of which a negative one is none before the first element."""
    if not isinstance(begin, int) or begin >= -1 or proves(lambda: size >= -begin):
        return begin
    return maximum(size + begin, 0)


def last_part(x: Tensor, begin: Size, end: Size) -> Tensor:
    """x[..., begin:end]."""
    return strided_slice(x, (begin,), (end,), (1,), (x.rank - 1,))


def row(x: Tensor, i: Size, axis: int = 0) -> Tensor:
    """The slice of x at position i of an axis, without the axis."""
    return reshape(strided_slice(x, (i,), (i + 1,), (1,), (axis,)), (*x.shape[:axis], *x.shape[axis + 1 :]))


def neighbours(x: Tensor) -> tuple[Tensor, Tensor]:
    """x[..., 0::2] and x[..., 1::2]: the sides of its pairs of neighbours, which have an even number of elements."""
    shape = (*x.shape[:-1], x.shape[-1] // 2)
    pairs = reshape(x, (*shape, 2))
    first, second = (reshape(last_part(pairs, i, i + 1), shape) for i in (0, 1))
    return first, second


def in_float32(x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """`compute` of x in float32 where x is a shorter float, and the result in the type of x."""
    if x.dtype in ("float16", "bfloat16"):
        return cast(compute(cast(x, "float32")), x.dtype)
    return compute(x)


MAX_CONSTANT_BYTES = 1 << 31
"""What a tensor made at import may take: ONNX has no larger message either."""


def check_constant(shape: Sequence[Size], dtype: str) -> None:
    """Raises ModelError for a tensor that is too large to be made at import."""
    type_ = TensorType(tuple(shape), dtype)
    try:
        type_.check_size()
    except RelayError as error:
        raise ModelError(str(error)) from None
    if type_.num_bytes > MAX_CONSTANT_BYTES:
        raise ModelError(f"expected a constant of at most {MAX_CONSTANT_BYTES} bytes, found {type_.num_bytes} for {type_}")


def filled(shape: Sequence[Size], value: Any, dtype: str) -> Tensor:
    """A tensor of `value` everywhere, known at import where its shape is; its elements are one in memory. Raises OnnxError where it is too
    large."""
    if any(isinstance(d, Dim) for d in shape):
        return emit("full", constant(value, dtype), shape=tuple(shape))
    check_constant(shape, dtype)
    return constant(np.broadcast_to(constant(value, dtype).array, TensorType(tuple(shape), dtype).static_shape))
