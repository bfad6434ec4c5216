"""Values of a call that only the host knows: strings, and objects such as sequences of tensors.

Compiled code knows them by number. A tensor of strings is one of int64: each element is the place of its string in a table that holds no
string twice, so that two strings are equal where their numbers are; number 0 is the empty one. An object is a scalar int64, its place
among the objects of the call; ABSENT stands for an optional value that is not there. What is done to them is done by packed functions,
which find them here; what moves, compares or looks up numbers is a kernel like any other.

The tables belong to one call of a function from outside, and go with it. Those of a thread are `current()`.
"""

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from relayc.runtime.artifact import TensorSpec, is_host_dtype, is_object_dtype, numpy_dtype
from relayc.runtime.objects import Object, object_of, value_of
from relayc.runtime.tensor import as_array

HOST_PREFIX = "relayc.host."
"""Prefix of the names of packed functions on values of the host."""

ABSENT = -1
"""The number of an optional value that is not there."""


class ProgramStrings:
    """What the numbers stand for that a program has itself, in every call: its strings by number, the empty one first."""

    def __init__(self, texts: Sequence[str] = ("",)) -> None:
        self.texts = tuple(texts)
        self.numbers = {text: number for number, text in enumerate(self.texts)}


_NO_STRINGS = ProgramStrings()


class HostValues:
    """The strings and objects of a call; inside `with`, of the current thread.

    Args:
      program: the strings of the program; strings of the call are numbered after them.

    Attributes:
      objects: by number; immutable.
    """

    def __init__(self, program: ProgramStrings = _NO_STRINGS) -> None:
        self.objects: list[Object] = []
        # Ids of arrays that code outside references: a result that shares such an array is copied.
        self._outside: set[int] = set()
        self._program = program
        self._texts: list[str] = []
        self._numbers: dict[Any, int] = {}
        self._outer: HostValues | None = None

    def __enter__(self) -> "HostValues":
        self._outer, _thread.values = getattr(_thread, "values", None), self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        _thread.values = self._outer

    def numbers_of(self, texts: Sequence[Any]) -> list[int]:
        """The numbers of strings, which they have from now on.

        Raises TypeError for an element that is no string, ValueError for bytes that are not UTF-8.
        """
        known = self._numbers
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new and set(map(type, new)) != {str}:
            return self.numbers_of([_text_of(text) for text in texts])
        # The program's strings are entered on first use.
        its = self._program.numbers
        known.update((text, its[text]) for text in new if text in its)
        own = [text for text in new if text not in its]
        first = len(its) + len(self._texts)
        self._texts += own
        known.update(zip(own, range(first, first + len(own)), strict=True))
        return list(map(known.__getitem__, texts))

    def text(self, number: int) -> str:
        """The string of a number."""
        return self.texts_of([number])[0]

    def texts_of(self, numbers: Sequence[int]) -> list[str]:
        """The strings of numbers."""
        its, own = self._program.texts, self._texts
        count = len(its)
        return [its[number] if number < count else own[number - count] for number in numbers]

    def numbers(self, texts: np.ndarray) -> np.ndarray:
        """As `numbers_of`, of an array: int64 of the same shape."""
        return np.array(self.numbers_of(texts.reshape(-1).tolist()), np.int64).reshape(texts.shape)

    def texts(self, numbers: np.ndarray) -> np.ndarray:
        """The strings of numbers, an array of objects of the same shape."""
        found = np.empty(numbers.size, object)
        found[:] = self.texts_of(numbers.reshape(-1).tolist())
        return found.reshape(numbers.shape)

    def add(self, value: Object) -> int:
        """The number of an object, which it has from now on."""
        self.objects.append(value)
        return len(self.objects) - 1

    # ---- arguments and results of the call

    def taken(self, value: Any, spec: TensorSpec) -> np.ndarray:
        """An argument as the tensor of numbers that compiled code takes. Raises TypeError or ValueError with the value found."""
        if is_object_dtype(spec.dtype):
            found = object_of(value, spec.dtype, self._tensor_taken)
            return np.asarray(ABSENT if found is None else self.add(found), np.int64)
        return self._strings_taken(value)

    def _strings_taken(self, value: Any) -> np.ndarray:
        array = np.asarray(value, object if isinstance(value, (list, tuple)) else None)
        if array.dtype.kind not in "OTUS":
            raise TypeError(f"found {array.dtype.name}{list(array.shape)}")
        return self.numbers(array)

    def _tensor_taken(self, value: Any, dtype: str) -> np.ndarray:
        """A tensor in an object."""
        if dtype == "string":
            return self._strings_taken(value)
        array = as_array(value)
        if array.dtype != numpy_dtype(dtype):
            raise TypeError(f"found {array.dtype.name}{list(array.shape)}")
        self._outside.add(id(array))
        return array

    def given(self, array: np.ndarray, spec: TensorSpec) -> Any:
        """A result: the value that a tensor of numbers from compiled code represents."""
        if is_object_dtype(spec.dtype):
            number = int(array)
            return value_of(None if number == ABSENT else self.objects[number], spec.dtype, self._tensor_given)
        return self.texts(array) if is_host_dtype(spec.dtype) else array

    def _tensor_given(self, array: np.ndarray, dtype: str) -> np.ndarray:
        if dtype == "string":
            return self.texts(array)
        if id(array) in self._outside:
            array = array.copy()
        self._outside.add(id(array))
        # Programs have elements of less than a byte as their bits.
        return array.view(numpy_dtype(dtype))


def _text_of(value: Any) -> str:
    """A string or bytes, as a string of Python's own class."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ValueError(f"expected text in UTF-8, found {value!r}") from None
    if not isinstance(value, str):
        raise TypeError(f"expected strings, found {value!r} of type {type(value).__name__}")
    return str(value)


_thread = threading.local()


def current() -> HostValues:
    """The host values of the call that runs in this thread. Raises RuntimeError if there is none."""
    found = getattr(_thread, "values", None)
    if found is None:
        raise RuntimeError("values of the host: expected the call of a module's function around this one, found none")
    return found
