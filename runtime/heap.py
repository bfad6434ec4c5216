"""Cells of the native heap (pipelines.llvm.heap) as values of Python. A cell is an object of tvm-ffi: packed functions take it."""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm_ffi

from relayc.runtime.tensor import as_array, to_tensor
from relayc.runtime.values import ConstructorValue, RefValue

_KEY = "relayc.Cell"
_OBJECT = 64
"""tvm-ffi's index of the type of all objects."""


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


class Cell(tvm_ffi.Object):
    """A cell."""


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


class Heap:
    """Packed functions on cells.

    Args:
      addresses: of the functions, in the order of pipelines.llvm.heap.ENTRIES.
      owner: of the code.
      array: makes the arrays that callers get.
    """

    def __init__(self, addresses: Sequence[int], owner: object, array: Callable[..., Any] = np.asarray) -> None:
        self._array = array
        functions = [tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=owner) for address in addresses]
        self.make, self.tag, self.count, self.info, self.field = functions

    def given(self, value: Any) -> Any:
        """What a value of a program is to a caller: an array, a list for a tuple, a ConstructorValue, a RefValue, or a cell of a function.

        Args:
          value: a number, a tensor or a cell.
        """
        if isinstance(value, Cell):
            tag = self.tag(value)
            if tag >= 0:
                return HeapValue(self, value, tag)
            fields = [self.given(self.field(value, i)) for i in range(self.count(value))] if tag != CLOSURE else []
            return fields if tag == TUPLE else RefValue(fields[0]) if tag == REFERENCE else value
        if isinstance(value, bool):
            return self._array(value)
        if isinstance(value, int):
            return self._array(value, "int32")
        if isinstance(value, float):
            return self._array(value, "float32")
        try:
            return self._array(np.from_dlpack(value))  # in a fortieth of the time
        except (BufferError, RuntimeError, TypeError):  # a dtype that numpy does not have
            return self._array(as_array(value))

    def tensor(self, array: np.ndarray) -> Any:
        """What a program takes for an array: a number for a scalar of the kinds that words hold, else a tensor."""
        kind = _SCALARS.get(array.dtype) if array.ndim == 0 else None
        return to_tensor(array) if kind is None else kind(array)

    def tuple(self, fields: Sequence[Any]) -> Any:
        """What a program takes for a tuple, of what it takes for the fields."""
        return self.make(0, TUPLE, *fields)

    def constructed(self, constructor: Any, fields: Sequence[Any]) -> Any:
        """What a program takes for a value of a constructor, of what it takes for the fields."""
        return self.make(constructors.number(constructor), constructor.tag, *fields)


TUPLE, REFERENCE, CLOSURE = -1, -2, -3
"""As in pipelines.llvm.heap."""
_SCALARS: dict[Any, Callable[[Any], Any]] = {np.dtype("int32"): int, np.dtype("float32"): float, np.dtype("bool"): bool}


class HeapValue(ConstructorValue):
    """A value of a data type in a cell. Fields are read when they are asked for.

    Attributes:
      cell: the cell, which packed functions take.
      type_: the type of the value, where that is known.
    """

    __slots__ = ("_heap", "cell", "type_")

    def __init__(self, heap: Heap, cell: Cell, tag: int) -> None:
        self._heap, self.cell = heap, cell
        self.type_: Any = None
        super().__init__(tag, (), constructors.known[heap.info(cell)])

    def __len__(self) -> int:
        return int(self._heap.count(self.cell))

    @property
    def fields(self) -> Sequence[Any]:
        """Its values."""
        return [self._heap.given(self._heap.field(self.cell, i)) for i in range(len(self))]

    @fields.setter
    def fields(self, value: Any) -> None:
        """Nothing: the cell has them."""

    def __getitem__(self, index: int) -> Any:
        return self._heap.given(self._heap.field(self.cell, range(len(self))[index]))
