"""Tensors out of nothing or out of a shape: constants, fills, ranges."""

from collections.abc import Sequence
from math import ceil, prod

import numpy as np

from relayc.dialects.relay.names import build
from relayc.dialects.relay.types import DTYPES
from relayc.frontend.converter import ModelBuilder, Tensor, constant, emit, scalar
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.sizes import Ratio, known_elements, positions, shape_tensor, size_tensor, sizes
from relayc.frontend.steps import add, binary, cast, check_constant, filled, multiply, reshape, subtract
from relayc.symbolic import Dim, maximum


@converter(foldable=False)
def Constant(
    *,
    value: np.ndarray | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Tensor:
    given = [
        constant(v, dtype)
        for v, dtype in (
            (value, None),
            (value_float, "float32"),
            (value_floats, "float32"),
            (value_int, "int64"),
            (value_ints, "int64"),
            (value_string, "string"),
            (value_strings, "string"),
        )
        if v is not None
    ]
    if len(given) != 1:
        raise OnnxError(f"expected one value attribute, found {len(given)}")
    return given[0]


@converter(since=9, foldable=False)
def ConstantOfShape(shape: Tensor, *, value: np.ndarray | None = None) -> Tensor:
    if value is not None and value.size != 1:
        raise OnnxError(f"attribute value: expected one element, found {list(value.shape)}")
    element = np.zeros((), np.float32) if value is None else value.reshape(())
    return filled(sizes(shape, "input"), element, constant(element).dtype)


def _steps(first: float, last: float, step: float) -> int:
    """How many numbers there are from `first` to before `last`: exact for integers."""
    if isinstance(first, int):
        return max(-int((first - last) // step), 0)
    try:
        return max(ceil((last - first) / step), 0)
    except OverflowError:
        raise OnnxError(f"expected a number of elements, found one from {first} to {last} in steps of {step}") from None


@converter(since=11)
def Range(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = 1) -> Tensor:
    if not (start.is_known and limit.is_known and delta.is_known):
        return _range_of_sizes(start, limit, delta)
    first, last, step = (np.asarray(scalar(t, name), DTYPES[t.dtype]) for t, name in ((start, "start"), (limit, "limit"), (delta, "delta")))
    if step == 0:
        raise OnnxError("input delta: expected a value other than 0, found 0")
    if not all(np.isfinite(np.asarray(v, np.float64)) for v in (first, last, step)):
        raise OnnxError(f"expected finite numbers, found start {first}, limit {last}, delta {step}")
    count = _steps(first.item(), last.item(), step.item())
    check_constant([count], start.dtype)
    wide = np.float32 if start.dtype in ("float16", "bfloat16") else DTYPES[start.dtype]
    return constant((first.astype(wide) + np.arange(count).astype(wide) * step.astype(wide)).astype(DTYPES[start.dtype]))


def _range_of_sizes(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """A range whose length is an expression, or known to the program alone."""
    if any(t.type.num_elements != 1 for t in (start, limit, delta)):
        raise OnnxError(f"expected inputs of one element, found {start.type}, {limit.type} and {delta.type}")
    start, limit, delta = (reshape(t, ()) for t in (start, limit, delta))
    found = [known_elements(t) for t in (start, limit, delta)]
    first, last, step = (None if e is None else e.reshape(-1)[0] for e in found)
    if not start.is_float and isinstance(step, int) and step and first is not None and last is not None:
        return emit("arange", start=first, stop=last, step=step, dtype=start.dtype)
    if isinstance(first, Ratio) and isinstance(last, Ratio) and isinstance(step, Ratio) and step.is_number and float(step) > 0:
        count = maximum(((last - first) / step).ceil().num, 0)
    else:
        count = _counted(start, limit, delta)
    wide = "float32" if start.dtype in ("float16", "bfloat16") else start.dtype
    whole = positions(count) if start.is_float else positions(count, start.dtype)
    return cast(add(multiply(cast(whole, wide), cast(delta, wide)), cast(start, wide)), start.dtype)


_FAR = float(1 << 62)
"""Beyond all sizes, and within int64."""


def _counted(start: Tensor, limit: Tensor, delta: Tensor) -> Dim | int:
    """How many numbers a range of data has, as a symbol. What has no such number is an error when the program runs."""
    given = (start, limit, delta)
    if start.is_float:
        rows = emit("stack", *(cast(t, "float64") for t in given), axis=0)
        _at_least(3, emit("sum", cast(emit("isfinite", rows), "int64"), axis=(0,)), "finite_ones_of_start_limit_delta")
    if not delta.is_known:
        # A step between 0 and 1 counts as 1.
        magnitude = emit("ceil", emit("abs", cast(delta, "float64")))
        _at_least(1, cast(binary("minimum", magnitude, _FAR), "int64"), "magnitude_of_delta")
    elif float(delta.array.reshape(-1)[0]) == 0:
        raise OnnxError("input delta: expected a value other than 0, found 0")
    if start.is_float:
        span = cast(subtract(limit, start), "float64")
    else:
        # In float64 the difference of large numbers is not exact, in int64 it may be too large.
        first, last = (cast(t, "int64") for t in (start, limit))
        span = subtract(cast(last, "float64"), cast(first, "float64"))
        exact = cast(subtract(last, first), "float64")
        span = emit("where", binary("less", emit("abs", span), _FAR), exact, span)
    steps = emit("ceil", emit("divide", span, cast(delta, "float64")))
    within = binary("minimum", binary("maximum", steps, 0.0), _FAR)
    (count,) = sizes(reshape(cast(within, "int64"), (1,)), "limit")
    return count


def _at_least(least: int, number: Tensor, name: str) -> None:
    """Demands when the program runs that an integer is `least` or more; an error says what was found, under a name like `name`."""
    builder = ModelBuilder.current()
    called = builder.fresh(name)
    builder.bound(called, least)
    build("define_sizes", number.value, names=(called,))


@converter(foldable=False)  # the reference implementation counts an end before the first dimension from the end again
def Shape(data: Tensor, *, start: int = 0, end: int | None = None) -> Tensor:
    dims = data.shape[start:end]
    return shape_tensor(dims)


@converter()
def Size(data: Tensor) -> Tensor:
    return size_tensor(prod(data.shape))


@converter(since=9)
def EyeLike(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    if x.rank != 2:
        raise OnnxError(f"expected a matrix, found {list(x.shape)}")
    name = x.dtype if dtype is None else dtype_name(dtype, "attribute dtype")
    if not x.type.is_static:
        down, across = (positions(n) for n in x.shape)
        return cast(emit("equal", reshape(add(down, k), (x.shape[0], 1)), reshape(across, (1, x.shape[1]))), name)
    check_constant(x.shape, name)
    rows, columns = x.type.static_shape
    return constant(np.eye(rows, columns, k=k), name)
