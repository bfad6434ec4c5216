"""Tensors out of nothing or out of a shape: constants, fills, ranges."""

from collections.abc import Sequence
from math import ceil, prod

import numpy as np

from relayc.dialects.relay.types import DTYPES
from relayc.frontend.converter import Tensor, constant, ints, known
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.steps import filled


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
    element = np.zeros((), np.float32) if value is None else value.reshape(())
    return filled(ints(shape, "input"), element, element.dtype.name)


@converter(since=11)
def Range(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = 1) -> Tensor:
    first, last, step = (known(t, name).reshape(()) for t, name in ((start, "start"), (limit, "limit"), (delta, "delta")))
    if step == 0:
        raise OnnxError("input delta: expected a value other than 0, found 0")
    count = max(ceil((last.item() - first.item()) / step.item()), 0)
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
    return constant(np.eye(x.shape[0], x.shape[1], k=k), name)
