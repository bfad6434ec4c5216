"""Features of rows: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer, Scaler."""

from collections.abc import Sequence
from math import isnan, prod
from typing import Any, Literal

import numpy as np

from relayc.frontend.converter import Tensor, assume, constant, emit, simpler
from relayc.frontend.fourier import resized
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.scores import DOMAIN, as_rows
from relayc.frontend.steps import binary, cast, like, reshape


@converter(domain=DOMAIN)
def ArrayFeatureExtractor(x: Tensor, y: Tensor) -> Tensor:
    """Elements along the last axis; of a vector they are one row."""
    if x.rank < 1:
        raise OnnxError("input X: expected features, found a scalar")
    found = emit("take", x, reshape(y, (y.type.num_elements,)), axis=x.rank - 1, mode="raise")
    return reshape(found, (1, *found.shape)) if x.rank == 1 else found


@converter(domain=DOMAIN)
def Binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    """Of integers those count that are above the threshold as a number: 2 is above 1.5."""
    wide = x if x.is_float else cast(x, "float64")
    return cast(binary("greater", wide, threshold), x.dtype)


@converter(domain=DOMAIN)
def FeatureVectorizer(*inputs: Tensor, inputdimensions: Sequence | None = None) -> Tensor:
    """Inputs side by side, each cut off at its dimension, or filled up with zeros."""
    rows = [cast(_as_matrix(x), "float32") for x in inputs]
    if inputdimensions is not None:
        if len(inputdimensions) != len(inputs):
            raise OnnxError(f"attribute inputdimensions: expected one for each of {len(inputs)} inputs, found {len(inputdimensions)}")
        rows = [resized(x, 1, size) for x, size in zip(rows, inputdimensions, strict=True)]
    count = rows[0].shape[0]
    for x in rows[1:]:
        count = simpler(count, x.shape[0])
    return emit("concatenate", *(assume(x, (count, x.shape[1])) for x in rows), axis=1)


def _as_matrix(x: Tensor) -> Tensor:
    """x with all axes after the first merged."""
    return as_rows(x) if x.rank < 3 else reshape(x, (x.shape[0], prod(x.shape[1:])))


@converter(domain=DOMAIN)
def Imputer(
    x: Tensor,
    *,
    imputed_value_floats: Sequence | None = None,
    imputed_value_int64s: Sequence | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Tensor:
    """A value for each feature, or one for all: floats are imputed in floats, integers in integers."""
    kinds = (imputed_value_floats, replaced_value_float), (imputed_value_int64s, replaced_value_int64)
    imputed, replaced = kinds[0] if x.is_float else kinds[1]
    if not imputed:
        name = "imputed_value_floats" if x.is_float else "imputed_value_int64s"
        raise OnnxError(f"attribute {name}: expected values for data of type {x.dtype}, found none")
    x, values = _per_feature(x, imputed, x.dtype)
    missing = emit("isnan", x) if isnan(replaced) else binary("equal", x, replaced)
    return emit("where", missing, values, x)


def _per_feature(x: Tensor, numbers: Sequence, dtype: str) -> tuple[Tensor, Tensor]:
    """x and the numbers, one per feature of x or one for all. Raises OnnxError."""
    if x.rank < 1:
        raise OnnxError("input X: expected features, found a scalar")
    if len(numbers) == 1:
        return x, constant(numbers[0], dtype)
    axis = min(x.rank - 1, 1)
    x = assume(x, [len(numbers) if i == axis else d for i, d in enumerate(x.shape)])
    return x, constant(np.reshape(constant(numbers, dtype).array, (-1, *[1] * (x.rank - 1 - axis))))


@converter(domain=DOMAIN)
def Normalizer(x: Tensor, *, norm: Literal["MAX", "L1", "L2"] = "MAX") -> Tensor:
    """Rows divided by their norm, unchanged if it is 0. MAX is the largest element, not the largest absolute value."""
    norms: dict[str, Any] = {
        "MAX": lambda x: emit("max", x, axis=(-1,), keepdims=True),
        "L1": lambda x: emit("sum", emit("abs", x), axis=(-1,), keepdims=True),
        "L2": lambda x: emit("sqrt", emit("sum", emit("multiply", x, x), axis=(-1,), keepdims=True)),
    }
    if x.rank not in (1, 2):
        raise OnnxError(f"input X: expected rank 1 or 2, found {list(x.shape)}")
    x = cast(x, "float32")
    length = norms[norm](x)
    return emit("divide", x, emit("where", binary("equal", length, 0.0), like(1.0, length), length))


@converter(domain=DOMAIN)
def Scaler(x: Tensor, *, offset: Sequence | None = None, scale: Sequence | None = None) -> Tensor:
    """(x - offset) * scale, each of one number or of one for each feature."""
    wide = cast(x, "float64" if x.dtype == "float64" else "float32")
    if offset:
        wide, numbers = _per_feature(wide, offset, wide.dtype)
        wide = emit("subtract", wide, numbers)
    if scale:
        wide, numbers = _per_feature(wide, scale, wide.dtype)
        wide = emit("multiply", wide, numbers)
    return cast(wide, "float32")
