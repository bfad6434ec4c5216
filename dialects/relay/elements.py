"""Elements of constants that stand in the IR: numpy arrays as attributes, and back."""

import re

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.types import STRING, TensorType, numpy_dtype

MOST_OF_SEVEN_BITS = 64
"""The largest absolute value of numbers of seven bits: two products by 255 fit 16 bits."""


def has_seven_bits(array: np.ndarray) -> bool:
    """Whether an array is of signed bytes from -64 to 64."""
    return array.dtype == np.int8 and array.size > 0 and bool(array.min() >= -MOST_OF_SEVEN_BITS and array.max() <= MOST_OF_SEVEN_BITS)


def dense_attr(array: np.ndarray) -> ir.DenseElementsAttr:
    """The elements of `array` as an attribute of the relay stage's type (signedness kept)."""
    type_ = TensorType.of_array(array).to_mlir()
    array = np.ascontiguousarray(array)
    if array.dtype == STRING:
        array = array.view(np.int64)
    # 2: a dtype of another package.
    raw = array if array.dtype.isbuiltin != 2 and array.dtype != np.bool_ else array.view(f"u{array.dtype.itemsize}")
    if array.size == 0:
        return ir.Attribute.parse(f"dense<> : {type_}")
    return ir.DenseElementsAttr.get(raw, type=type_)


def _elements_from_text(attribute: ir.DenseElementsAttr, dtype: np.dtype) -> np.ndarray:
    # The bindings cannot read elements that numpy has no type for; their text can be: numbers, hexadecimal bits for inf and nan, one hex
    # string when many.
    body = str(attribute)[len("dense<") :].rsplit("> :", 1)[0]
    bits = np.dtype(f"u{dtype.itemsize}")
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), dtype)
    words = re.findall(r"0x[0-9A-Fa-f]+|[-+.0-9eE]+", body)
    # The decimals are the shortest that round to the element, not the element itself.
    found = [int(w, 16) if w.startswith("0x") else int(np.float64(w).astype(dtype).view(bits)) for w in words]
    return np.array(found, bits).view(dtype)


def dense_array(attribute: ir.DenseElementsAttr) -> np.ndarray:
    """The elements of a dense attribute as an array of its dtype; the inverse of `dense_attr`."""
    type_ = TensorType.from_mlir(attribute.type)
    dtype = numpy_dtype(type_.dtype)
    if type_.num_elements == 0:
        return np.zeros(type_.sizes, dtype)
    if attribute.is_splat:
        return np.full(type_.sizes, attribute.get_splat_value().value, dtype)
    if dtype.isbuiltin == 2:
        return _elements_from_text(attribute, dtype).reshape(type_.shape)
    return np.array(attribute).astype(dtype).reshape(type_.shape)


def uniform_element(array: np.ndarray) -> float | int | bool | None:
    """The number that every element of an array is, of strings their number; None if there is none, or not just one.

    NaN is the same as NaN, and 0 is not -0.
    """
    if array.size == 0 or array.tobytes() != array.flat[:1].tobytes() * array.size:
        return None
    first = array.flat[:1]
    return (first.view(np.int64) if array.dtype == STRING else first)[0].item()
