"""Tensors out of nothing or out of a shape: constants, fills, ranges."""

from collections.abc import Sequence
from math import ceil, prod

import numpy as np

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.converter import Tensor, constant, ints, scalar
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.steps import check_constant, filled


@converter(foldable=False)
def Constant(
    *,
    value: np.ndarray | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
) -> Tensor:
    given = [
        constant(v, dtype)
        for v, dtype in (
            (value, None),
            (value_float, "float32"),
            (value_floats, "float32"),
            (value_int, "int64"),
            (value_ints, "int64"),
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
    return filled(ints(shape, "input"), element, element.dtype.name)


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
    first, last, step = (np.asarray(scalar(t, name), DTYPES[t.dtype]) for t, name in ((start, "start"), (limit, "limit"), (delta, "delta")))
    if step == 0:
        raise OnnxError("input delta: expected a value other than 0, found 0")
    if not all(np.isfinite(np.asarray(v, np.float64)) for v in (first, last, step)):
        raise OnnxError(f"expected finite numbers, found start {first}, limit {last}, delta {step}")
    count = _steps(first.item(), last.item(), step.item())
    check_constant([count], start.dtype)
    wide = np.float32 if start.dtype in ("float16", "bfloat16") else DTYPES[start.dtype]
    return constant((first.astype(wide) + np.arange(count).astype(wide) * step.astype(wide)).astype(DTYPES[start.dtype]))


@converter()
def Shape(data: Tensor, *, start: int = 0, end: int | None = None) -> Tensor:
    return constant(data.shape[start:end], "int64")


@converter()
def Size(data: Tensor) -> Tensor:
    return constant(prod(data.shape), "int64")


@converter(since=9)
def EyeLike(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    if x.rank != 2:
        raise OnnxError(f"expected a matrix, found {list(x.shape)}")
    name = x.dtype if dtype is None else dtype_name(dtype, "attribute dtype")
    check_constant(x.shape, name)
    return constant(np.eye(x.shape[0], x.shape[1], k=k), name)
