"""Categories and labels: CategoryMapper, LabelEncoder, OneHotEncoder."""

from collections.abc import Sequence

import numpy as np

from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.scores import DOMAIN
from relayc.frontend.steps import broadcast_to, cast, reshape

_NO_STRINGS = "expected numbers, found strings, which relayc does not have"


@converter(domain=DOMAIN)
def CategoryMapper(
    x: Tensor,
    *,
    cats_int64s: Sequence | None = None,
    cats_strings: Sequence | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Tensor:
    raise OnnxError(f"attribute cats_strings: {_NO_STRINGS}")


@converter("LabelEncoder", domain=DOMAIN)
def LabelEncoder_1(
    x: Tensor, *, classes_strings: Sequence | None = None, default_int64: int = -1, default_string: str = "_Unused"
) -> Tensor:
    raise OnnxError(f"attribute classes_strings: {_NO_STRINGS}")


@converter("LabelEncoder", since=2, domain=DOMAIN)
def LabelEncoder_2(
    x: Tensor,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    keys_floats: Sequence | None = None,
    keys_int64s: Sequence | None = None,
    keys_strings: Sequence | None = None,
    values_floats: Sequence | None = None,
    values_int64s: Sequence | None = None,
    values_strings: Sequence | None = None,
) -> Tensor:
    keys = _array("keys", keys_floats, keys_int64s, keys_strings)
    values = _array("values", values_floats, values_int64s, values_strings)
    # A NaN is no key: it equals none.
    known = keys == keys
    if keys.shape != values.shape:
        raise OnnxError(f"expected a value for each of {keys.size} keys, found {values.size}")
    return looked_up(x, keys[known], values[known], default_float if values.dtype.kind == "f" else default_int64)


@converter(since=4, domain=DOMAIN)
def LabelEncoder(
    x: Tensor,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: np.ndarray | None = None,
    keys_floats: Sequence | None = None,
    keys_int64s: Sequence | None = None,
    keys_strings: Sequence | None = None,
    keys_tensor: np.ndarray | None = None,
    values_floats: Sequence | None = None,
    values_int64s: Sequence | None = None,
    values_strings: Sequence | None = None,
    values_tensor: np.ndarray | None = None,
) -> Tensor:
    keys = _array("keys", keys_floats, keys_int64s, keys_strings, keys_tensor)
    values = _array("values", values_floats, values_int64s, values_strings, values_tensor)
    default = default_float if values.dtype.kind == "f" else default_int64
    if default_tensor is not None:
        if default_tensor.size != 1:
            raise OnnxError(f"attribute default_tensor: expected one element, found {list(default_tensor.shape)}")
        default = default_tensor.reshape(()).item()
    return looked_up(x, keys.reshape(-1), values.reshape(-1), default)


def _array(
    name: str, floats: Sequence | None, integers: Sequence | None, texts: Sequence | None, tensor: np.ndarray | None = None
) -> np.ndarray:
    """The keys or values of a mapping, of which one attribute is given. Raises OnnxError."""
    given = [v for v in (floats, integers, texts, tensor) if v is not None and len(v)]
    if len(given) != 1:
        raise OnnxError(f"attributes {name}_*: expected one of them, found {len(given)}")
    if texts:
        raise OnnxError(f"attribute {name}_strings: {_NO_STRINGS}")
    if floats:
        return np.asarray(floats, np.float32)
    return np.asarray(integers, np.int64) if integers else np.asarray(tensor)


def looked_up(x: Tensor, keys: np.ndarray, values: np.ndarray, default: float | int) -> Tensor:
    """The value of each element of x by a mapping, `default` for one that is no key; of a key that is there twice the first counts.

    Raises OnnxError where there are not as many values as keys, or keys are of another type than x.
    """
    if keys.shape != values.shape:
        raise OnnxError(f"expected a value for each of {keys.size} keys, found {values.size}")
    if keys.dtype.name != x.dtype:
        raise OnnxError(f"input X: expected elements of the type of the keys, {keys.dtype.name}, found {x.dtype}")
    keys, first = np.unique(keys, return_index=True)
    values = values[first]
    # Sorted, NaN is the last key: it is found, but is not equal to itself.
    numbers = int((keys == keys).sum())
    found = broadcast_to(constant(default, values.dtype.name), x.shape)
    if numbers:
        place = emit("searchsorted", constant(keys[:numbers]), x, dtype="int32")
        known = emit("equal", emit("take", constant(keys[:numbers]), place, axis=0), x)
        found = emit("where", known, emit("take", constant(values[:numbers]), place, axis=0), found)
    if numbers < len(keys):
        found = emit("where", emit("isnan", x), constant(values[-1]), found)
    return found


@converter(domain=DOMAIN)
def OneHotEncoder(x: Tensor, *, cats_int64s: Sequence | None = None, cats_strings: Sequence | None = None, zeros: int = 1) -> Tensor:
    """Floats are truncated. A category that is not known gives zeros, whatever `zeros` says: a compiled program raises no errors for
    elements."""
    if cats_strings:
        raise OnnxError(f"attribute cats_strings: {_NO_STRINGS}")
    if not cats_int64s:
        raise OnnxError("attribute cats_int64s: expected categories, found none")
    categories = np.asarray(cats_int64s, np.int64)
    found = emit("equal", reshape(cast(x, "int64"), (*x.shape, 1)), constant(categories))
    # Of one that is there twice the last counts.
    last = len(categories) - 1 - np.unique(categories[::-1], return_index=True)[1]
    if len(last) < len(categories):
        found = emit("logical_and", found, constant(np.isin(np.arange(len(categories)), last)))
    return cast(found, "float32")
