"""Arrays by name in the safetensors format: a header in JSON that says where each is, then their bytes. Reading executes nothing.

The format is that of https://github.com/huggingface/safetensors: eight bytes of the header's length, little-endian; the header, an object
of `{"dtype", "shape", "data_offsets"}` by name with texts under `__metadata__`; the data. Element types that the format has no name for are
stored as their bits, and `__metadata__` says which they are under `dtype:NAME`. The package safetensors reads these files and writes such
(test_params.py), but it copies every array, and its data lie at multiples of 8 bytes: here they are mapped, at multiples of a cache line.
"""

import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from relayc.runtime.artifact import ALIGNMENT, DLPACK_CODES, SUB_BYTE, TensorSpec, numpy_dtype

_DTYPES = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
_STORED_AS_BITS = {*DLPACK_CODES, *SUB_BYTE} - {*_DTYPES}
_NAMES = {code: name for name, code in _DTYPES.items()}
_LENGTH = struct.Struct("<Q")
_MOST_HEADER_BYTES = 100_000_000
"""Of a header, as the format has it."""
_META = "__metadata__"
_PADDING = "padding"
"""Prefix of the names of padding between tensors."""


def safetensors_parts(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> Iterator[bytes | memoryview]:
    """What a file of these arrays is made of, in order; the data begin at a multiple of ALIGNMENT, and each array does.

    Raises ValueError for a name that the format has for itself, and for arrays of strings and objects.
    """
    places: list[tuple[TensorSpec, int]] = []
    at = 0
    # Widest elements first, so that each array is aligned to its elements without room between them, which the format does not allow.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    for name, array in ordered:
        places.append((TensorSpec(name, array.shape, array.dtype.name), at))
        at += array.nbytes
    yield _header_bytes(places, metadata)
    for _, array in ordered:
        if array.nbytes:
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def write_blob(
    path: str | os.PathLike[str], blob: np.ndarray, places: Sequence[tuple[TensorSpec, int]], metadata: Mapping[str, str]
) -> None:
    """Writes a file whose data are a uint8 blob, with tensors at the given offsets; bytes between tensors are named as padding.

    Raises OSError if the file cannot be written, ValueError as `safetensors_parts` does.
    """
    filled: list[tuple[TensorSpec, int]] = []
    end = 0
    for spec, offset in [*sorted(places, key=lambda place: place[1]), (TensorSpec("", (0,), "uint8"), blob.nbytes)]:
        if offset > end:
            filled.append((TensorSpec(f"{_PADDING}.{len(filled)}", (offset - end,), "uint8"), end))
        if spec.name:
            filled.append((spec, offset))
            end = offset + int(spec.num_bytes)
    with Path(path).open("wb") as file:
        file.write(_header_bytes(filled, metadata))
        file.write(blob.data)


def _header_bytes(places: Sequence[tuple[TensorSpec, int]], metadata: Mapping[str, str] | None) -> bytes:
    """What is before the data of tensors at these bytes of the data."""
    texts = dict(metadata or {})
    header: dict[str, Any] = {}
    for spec, at in places:
        name, dtype = spec.name, spec.dtype
        if name == _META:
            raise ValueError(f"safetensors: expected names of arrays, found {_META}")
        if dtype not in _DTYPES and dtype not in _STORED_AS_BITS:
            raise ValueError(f"safetensors: {name}: expected an array of numbers, found one of {dtype}")
        if dtype in _STORED_AS_BITS:
            texts[f"dtype:{name}"], dtype = dtype, f"uint{8 * numpy_dtype(dtype).itemsize}"
        header[name] = {"dtype": _DTYPES[dtype], "shape": list(spec.shape), "data_offsets": [at, at + int(spec.num_bytes)]}
    if texts:
        header = {_META: texts, **header}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + _LENGTH.size) % ALIGNMENT)
    return _LENGTH.pack(len(text)) + text


def safetensors_bytes(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> bytes:
    """Arrays as the contents of a file."""
    return b"".join(safetensors_parts(arrays, metadata))


def write_safetensors(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a file. Raises OSError if it cannot be written."""
    with Path(path).open("wb") as file:
        for part in safetensors_parts(arrays, metadata):
            file.write(part)


def read_safetensors(content: Any, where: str = "safetensors") -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays in the contents of a file, views of them, and the texts of the metadata.

    Args:
      content: bytes, or other contiguous memory such as a map of the file.
      where: what errors begin with.

    Raises:
      ValueError: these are not the contents of a whole safetensors file.
    """
    memory = memoryview(content).cast("B")
    try:
        header, begin = _header(memory)
        texts = header.pop(_META, {})
        arrays = {name: _array(memory[begin:], entry, texts.get(f"dtype:{name}")) for name, entry in header.items()}
        held = sorted((e["data_offsets"] for e in header.values()), key=tuple)
        end = 0
        for first, last in held:
            if first != end:
                raise ValueError(f"data from byte {first} on after data to byte {end}")
            end = last
        if begin + end != len(memory):
            raise ValueError(f"{len(memory)} bytes instead of {begin + end}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{where}: expected a whole safetensors file, found {_found(error)}") from None
    return arrays, {name: text for name, text in texts.items() if not name.startswith("dtype:")}


def data_bytes(content: Any) -> int:
    """The offset of the data in a file that `read_safetensors` has read."""
    return _LENGTH.size + _LENGTH.unpack(memoryview(content)[: _LENGTH.size])[0]


def _found(error: Exception) -> str:
    return str(error) if type(error) is ValueError else f"a header that is not of the format ({type(error).__name__}: {error})"


def _header(memory: memoryview) -> tuple[dict[str, Any], int]:
    """The header, and the offset of the data."""
    if len(memory) < _LENGTH.size:
        raise ValueError(f"{len(memory)} bytes")
    (length,) = _LENGTH.unpack(memory[: _LENGTH.size])
    begin = _LENGTH.size + length
    if length > _MOST_HEADER_BYTES or begin > len(memory):
        raise ValueError(f"a header of {length} bytes in a file of {len(memory)}")
    try:
        header = json.loads(bytes(memory[_LENGTH.size : begin]))
    except ValueError:
        raise ValueError("a header that is no JSON") from None
    if not isinstance(header, dict):
        raise ValueError("a header that is no object")
    return header, begin


def _array(data: memoryview, entry: dict[str, Any], dtype: str | None) -> np.ndarray:
    first, last = entry["data_offsets"]
    shape = tuple(entry["shape"])
    of = numpy_dtype(_NAMES[entry["dtype"]])
    if dtype is not None:
        bits, of = of, numpy_dtype(dtype)
        if dtype not in _STORED_AS_BITS or bits.itemsize != of.itemsize:
            raise ValueError(f"elements of {entry['dtype']} that are said to be {dtype}")
    if not 0 <= first <= last <= len(data) or any(not isinstance(d, int) or d < 0 for d in shape):
        raise ValueError(f"data of {entry['dtype']}{list(shape)} in the bytes {first} to {last} of {len(data)}")
    if prod(shape) * of.itemsize != last - first:
        raise ValueError(f"{last - first} bytes of {entry['dtype']}{list(shape)}")
    return np.frombuffer(data[first:last], np.uint8).view(of).reshape(shape)
