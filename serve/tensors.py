"""Tensors of the Open Inference Protocol as numpy arrays of relayc's dtypes, and back."""

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from tritonclient.utils import InferenceServerException, deserialize_bytes_tensor, serialize_byte_tensor

from relayc.runtime.artifact import TensorSpec, numpy_dtype
from relayc.runtime.function import fits
from relayc.symbolic import is_symbolic

_DATATYPES = {
    "bool": "BOOL",
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "FP16",
    "bfloat16": "BF16",
    "float32": "FP32",
    "float64": "FP64",
    "string": "BYTES",
}


class Refused(Exception):
    """A request that gets an error instead of a result, with a status of HTTP."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status_code = status


def datatype_of(spec: TensorSpec) -> str:
    """The protocol's name of a dtype. Raises ValueError for a dtype without one."""
    if spec.dtype not in _DATATYPES:
        raise ValueError(f"{spec.name}: expected a dtype that the protocol has ({', '.join(_DATATYPES)}), found {spec}")
    return _DATATYPES[spec.dtype]


def shape_of(spec: TensorSpec) -> list[int]:
    """The shape as the protocol has it: -1 for a symbolic size."""
    return [-1 if is_symbolic(d) else int(d) for d in spec.shape]


def decode(spec: TensorSpec, datatype: str, shape: Sequence[int], data: Any) -> np.ndarray:
    """The array of an input.

    Args:
      data: bytes in row-major order, as the protocol has them; or a list of numbers or texts, nested or flat.

    Raises:
      Refused: the input has another datatype or shape, or its data do not fit them.
    """
    where = f"input {spec.name!r}"
    if datatype != datatype_of(spec):
        raise Refused(f"{where}: expected datatype {datatype_of(spec)}, found {datatype}")
    if any(type(size) is not int or size < 0 for size in shape) or not fits(tuple(shape), spec):
        raise Refused(f"{where}: expected shape [{', '.join(map(str, spec.shape))}], found {list(shape)}")
    try:
        array = _of_bytes(spec, shape, data) if isinstance(data, (bytes, memoryview)) else _of_list(spec, data)
    except (InferenceServerException, OverflowError, TypeError, UnicodeDecodeError, ValueError, struct.error) as error:
        raise Refused(f"{where}: expected {datatype} values, found {_first_line(error)}") from error
    if array.size != math.prod(shape):
        raise Refused(f"{where}: expected {math.prod(shape)} elements for shape {list(shape)}, found {array.size}")
    return array.reshape(shape)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _of_bytes(spec: TensorSpec, shape: Sequence[int], data: bytes | memoryview) -> np.ndarray:
    if spec.dtype == "string":
        found = deserialize_bytes_tensor(bytes(data))
        return np.array([text.decode() for text in found.reshape(-1)], object)
    dtype = numpy_dtype(spec.dtype)
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{len(data)} bytes in place of {math.prod(shape) * dtype.itemsize}")
    array = np.frombuffer(data, dtype)
    if spec.dtype == "bool" and (array.view(np.uint8) > 1).any():
        raise ValueError("bytes other than 0 and 1")
    return array


def _of_list(spec: TensorSpec, data: Any) -> np.ndarray:
    if spec.dtype == "string":
        array = np.array(data, object).reshape(-1)
        for value in array:
            if not isinstance(value, (str, bytes)):
                raise ValueError(f"values of type {type(value).__name__}")
        return np.array([text.decode() if isinstance(text, bytes) else text for text in array], object)
    dtype = numpy_dtype(spec.dtype)
    found = np.array(data)
    if dtype.kind in "iu":
        if found.dtype.kind not in "iu" and not all(type(each) is int for each in np.array(data, object).flat):
            raise ValueError(f"values of type {found.dtype.name}")
        return np.array(data, dtype)
    if dtype.kind in "fV" and found.dtype.kind == "O":  # JSON represents NaN by null
        found = np.array(data, np.float64)
    if found.dtype.kind not in ("b" if dtype.kind == "b" else "iuf") and found.size:
        raise ValueError(f"values of type {found.dtype.name}")
    return found.astype(dtype)


def to_bytes(array: np.ndarray) -> bytes:
    """The bytes of an output."""
    if array.dtype == object:
        return serialize_byte_tensor(array).item() if array.size else b""
    return np.ascontiguousarray(array).tobytes()


def to_list(array: np.ndarray) -> list[Any]:
    """The elements of an output in row-major order, for JSON."""
    return array.reshape(-1).tolist()
