"""Memory that no array holds as tvm-ffi tensors, by DLPack's C structures (dlpack.h, version 1)."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import tvm_ffi

from relayc.runtime.artifact import DLPACK_CODES, SUB_BYTE, numpy_dtype

VERSION = (1, 0)
"""Of DLPack, from which on a producer can say that memory is read-only instead of refusing."""
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
"""DLDataTypeCode by numpy's kind of a dtype."""
_NAME = b"dltensor_versioned"


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_new_capsule: Any = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_alive: dict[int, tuple[object, Callable[[], None]]] = {}
"""For each structure, by address: the owner of an exported tensor, and the action to run when it is no longer referenced."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address: int) -> None:
    _, release = _alive.pop(address)
    release()


_DELETER = ctypes.cast(_delete, ctypes.c_void_p).value


def imported(value: Any, **options: Any) -> tvm_ffi.Tensor:
    """A tensor that speaks DLPack as one of tvm-ffi, without a copy.

    Args:
      options: of `value.__dlpack__`, such as the stream.

    Raises TypeError if it cannot be exported.
    """
    try:
        try:
            capsule = value.__dlpack__(max_version=VERSION, **options)
        except TypeError:  # a producer of before version 1
            capsule = value.__dlpack__(**options)
        return tvm_ffi.from_dlpack(capsule)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"found a {type(value).__name__} that cannot be exported through DLPack ({error})") from error


def tensor_at(address: int, shape: Sequence[int], dtype: str, device: tuple[int, int], release: Callable[[], None]) -> tvm_ffi.Tensor:
    """The memory at an address as a tensor, contiguous in row-major order.

    Args:
      dtype: a name; elements of less than a byte take one, and are uint8.
      device: DLDeviceType and number.
      release: called when nobody holds the tensor any more, by whichever thread let go of it last.

    Raises TypeError if there is no such dtype.
    """
    element, rank = numpy_dtype(dtype), len(shape)
    extents = (ctypes.c_int64 * (2 * rank))(*shape, *_strides(shape))
    places = ctypes.addressof(extents)
    code = _CODES["u"] if dtype in SUB_BYTE else DLPACK_CODES.get(dtype, _CODES.get(element.kind, _CODES["u"]))
    tensor = _Tensor(address, *device, rank, code, 8 * element.itemsize, 1, places, places + 8 * rank, 0)
    managed = _Managed(*VERSION, None, _DELETER, 0, tensor)
    place = ctypes.addressof(managed)
    _alive[place] = (managed, extents), release
    return tvm_ffi.from_dlpack(_new_capsule(place, _NAME, None))


def _strides(shape: Sequence[int]) -> list[int]:
    found = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        found[axis - 1] = found[axis] * shape[axis]
    return found
