"""Categories and labels: CategoryMapper, LabelEncoder, OneHotEncoder."""

from collections.abc import Sequence

import numpy as np

from relayc.dialects.relay.types import dtype_of
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.onnx.converters import converter
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.ml.scores import DOMAIN
from relayc.frontend.steps import broadcast_to, cast, reshape


@converter(domain=DOMAIN)
def CategoryMapper(
    x: Tensor,
    *,
    cats_int64s: Sequence,
    cats_strings: Sequence,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Tensor:
    return _translated(x, np.array(cats_strings, object), np.array(cats_int64s, np.int64), default_string, default_int64)


@converter("LabelEncoder", domain=DOMAIN)
def LabelEncoder_1(x: Tensor, *, classes_strings: Sequence, default_int64: int = -1, default_string: str = "_Unused") -> Tensor:
    texts = np.array(classes_strings, object)
    return _translated(x, texts, np.arange(len(texts)), default_string, default_int64)


def _translated(x: Tensor, texts: np.ndarray, numbers: np.ndarray, default_text: str, default_number: int) -> Tensor:
    """Strings as numbers, or numbers as strings."""
    if x.dtype == "string":
        return looked_up(x, texts, numbers, default_number)
    return looked_up(x, numbers, texts, default_text)


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
    # A NaN is not a key, because it is not equal to itself.
    return looked_up(x, keys, values, _default(values, default_float, default_int64, default_string), finds_nan=False)


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
    default = _default(values, default_float, default_int64, default_string)
    if default_tensor is not None:
        if default_tensor.size != 1:
            raise OnnxError(f"attribute default_tensor: expected one element, found {list(default_tensor.shape)}")
        default = default_tensor.reshape(()).item()
    return looked_up(x, keys.reshape(-1), values.reshape(-1), default)


def _default(values: np.ndarray, number: float, integer: int, text: str) -> float | str:
    """The value for unknown keys, by the kind of the values."""
    return text if values.dtype == object else number if values.dtype.kind == "f" else integer


def _array(
    name: str, floats: Sequence | None, integers: Sequence | None, texts: Sequence | None, tensor: np.ndarray | None = None
) -> np.ndarray:
    """The keys or values of a mapping, given in one of several attributes. Raises OnnxError."""
    given = [v for v in (floats, integers, texts, tensor) if v is not None and len(v)]
    if len(given) != 1:
        raise OnnxError(f"attributes {name}_*: expected one of them, found {len(given)}")
    if tensor is not None:
        return tensor
    return np.array(given[0], np.float32 if floats else np.int64 if integers else object)


def looked_up(x: Tensor, keys: np.ndarray, values: np.ndarray, default: float | str, finds_nan: bool = True) -> Tensor:
    """The value of each element of x by a mapping, `default` for one that is no key; of a key that is there twice the first counts.

    Args:
      keys, values: one-dimensional arrays, of numbers or of str objects.
      finds_nan: whether NaN may be a key.

    Raises OnnxError if there are not as many values as keys, or keys are of another type than x.
    """
    if keys.shape != values.shape:
        raise OnnxError(f"expected a value for each of {keys.size} keys, found {values.size}")
    table, found = constant(keys).array, constant(values)
    if dtype_of(table) != x.dtype:
        raise OnnxError(f"input X: expected elements of the type of the keys, {dtype_of(table)}, found {x.dtype}")
    # Sorted, NaN is the last key; strings are sorted by their numbers.
    table, first = np.unique(table, return_index=True)
    ordered = values[first]
    known = table == table
    result = broadcast_to(constant(default, found.dtype), x.shape)
    if known.any():
        sequence = constant(table[known])
        place = emit("searchsorted", sequence, x, dtype="int32")
        is_key = emit("equal", emit("take", sequence, place, axis=0), x)
        result = emit("where", is_key, emit("take", constant(ordered[known]), place, axis=0), result)
    if finds_nan and not known.all():
        result = emit("where", emit("isnan", x), constant(ordered[-1:].reshape(())), result)
    return result


@converter(domain=DOMAIN)
def OneHotEncoder(x: Tensor, *, cats_int64s: Sequence | None = None, cats_strings: Sequence | None = None, zeros: int = 1) -> Tensor:
    """Floats are truncated. A category that is not known gives zeros, whatever `zeros` says: a compiled program raises no errors for
    elements."""
    given = cats_strings if x.dtype == "string" else cats_int64s
    if not given:
        name = "cats_strings" if x.dtype == "string" else "cats_int64s"
        raise OnnxError(f"attribute {name}: expected categories for data of type {x.dtype}, found none")
    categories = np.array(given, object if x.dtype == "string" else np.int64)
    one = reshape(x if x.dtype == "string" else cast(x, "int64"), (*x.shape, 1))
    found = emit("equal", one, constant(categories))
    # Of one that is there twice the last counts.
    last = len(categories) - 1 - np.unique(categories[::-1], return_index=True)[1]
    if len(last) != len(categories):
        found = emit("logical_and", found, constant(np.isin(np.arange(len(categories)), last)))
    return cast(found, "float32")
