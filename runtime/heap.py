"""The native heap (pipelines.llvm.heap) in this process. A cell is an object of tvm-ffi: packed functions take it."""

import ctypes
import functools
from collections.abc import Mapping
from typing import Any

import tvm_ffi

_KEY = "relayc.Cell"
_OBJECT = 64
"""tvm-ffi's index of the type of all objects."""

TUPLE, REFERENCE, CLOSURE = -1, -2, -3
"""Tags of cells that are of no constructor, as in pipelines.llvm.heap."""

ENTRIES = ("make", "tag", "count", "info", "field", "set")
"""Packed functions on cells that each program has."""
DROP, DELETER = "drop", "deleter"
"""Functions that programs call by their addresses."""


class Cell(tvm_ffi.Object):
    """A cell."""


@functools.cache
def type_index() -> int:
    """The number of the type of cells among the objects of tvm-ffi."""

    class Text(ctypes.Structure):
        _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]

    allocate = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi()).TVMFFITypeGetOrAllocIndex
    allocate.restype, allocate.argtypes = ctypes.c_int32, [ctypes.POINTER(Text), *[ctypes.c_int32] * 5]
    key = _KEY.encode()
    found = allocate(ctypes.byref(Text(key, len(key))), -1, 1, 0, 1, _OBJECT)
    tvm_ffi.register_object(_KEY)(Cell)
    return int(found)


class _Constructors:
    """Constructors by the numbers that cells have for them. Numbers stay: cells may outlive programs."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self.known: list[Any] = []

    def number(self, constructor: Any) -> int:
        """The number of a constructor."""
        if id(constructor) not in self._numbers:
            self._numbers[id(constructor)] = len(self.known)
            self.known.append(constructor)
        return self._numbers[id(constructor)]


constructors = _Constructors()


def keep(value: object) -> None:
    """Keeps an object until the process ends: code that cells refer to, which may outlive everything."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


class Heap:
    """The functions of the heap that all programs share: those of the first program that is loaded.

    Attributes:
      drop, deleter: addresses of the functions by which programs let go of cells.
    """

    def __init__(self, addresses: Mapping[str, int], owner: object) -> None:
        keep(owner)
        functions = [tvm_ffi.Function.__from_extern_c__(addresses[name], keep_alive_object=owner) for name in ENTRIES]
        self.make, self.tag, self.count, self.info, self.field, self.set = functions
        self.drop, self.deleter = addresses[DROP], addresses[DELETER]


_shared: list[Heap] = []


def shared_heap(addresses: Mapping[str, int], owner: object) -> Heap:
    """The heap of the process; created on the first call from the functions of the program that is being loaded, given by name."""
    if not _shared:
        _shared.append(Heap(addresses, owner))
    return _shared[0]
