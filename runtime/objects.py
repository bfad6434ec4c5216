"""Objects of the host: sequences of tensors and optional values, and what stands for them outside of a program.

A tensor in an object is a numpy array, a sequence a Version. An optional value that is there is its content, one that is not is no object.
A sequence of maps, which only results are, is a Maps.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from relayc.runtime.artifact import numpy_dtype
from relayc.runtime.tensor import as_array


class Version:
    """A sequence of arrays: the first `length` of a list, which later versions extend. It is never changed."""

    __slots__ = ("_items", "length")

    def __init__(self, items: list[np.ndarray], length: int | None = None) -> None:
        self._items = items
        self.length = len(items) if length is None else length

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self._items[: self.length])

    def at(self, position: int) -> np.ndarray:
        """The element at a position of 0 or more."""
        return self._items[position]

    def appended(self, item: np.ndarray) -> "Version":
        """With an element more at the end. Only where others have gone on from here already are the elements listed anew."""
        items = self._items if len(self._items) == self.length else list(self)
        items.append(item)
        return Version(items)

    def inserted(self, position: int, item: np.ndarray) -> "Version":
        """With an element more before the one at a position."""
        items = list(self)
        items.insert(position, item)
        return Version(items)

    def erased(self, position: int) -> "Version":
        """Without the element at a position."""
        items = list(self)
        del items[position]
        return Version(items)


class Maps:
    """A sequence of maps of the same keys: the values of each map are a row of an array."""

    def __init__(self, keys: Sequence[int | str], rows: np.ndarray) -> None:
        self._keys, self._rows = keys, rows

    def dicts(self) -> list[dict[int | str, float]]:
        """The maps, as a caller gets them."""
        return [dict(zip(self._keys, row, strict=True)) for row in self._rows.tolist()]


Object = np.ndarray | Version | Maps


def object_of(value: Any, dtype: str, outside: set[int]) -> Object | None:
    """What a caller gives for an object: arrays, lists or tuples of them, None for an optional value that is not there.

    Args:
      dtype: of the object, "optional(seq(float32))".
      outside: gains the ids of the arrays, which are the caller's.

    Raises:
      TypeError: something else, or an array of another dtype.
      ValueError: an array on another device.
    """
    kind, _, content = dtype.removesuffix(")").partition("(")
    if kind == "optional":
        return None if value is None else object_of(value, content, outside)
    if kind != "seq":
        return _checked(value, dtype, outside, "found")
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"found a value of type {type(value).__name__}")
    return Version([_checked(item, content, outside, f"at position {i} found") for i, item in enumerate(value)])


def _checked(value: Any, dtype: str, outside: set[int], where: str) -> np.ndarray:
    try:
        array = as_array(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where} {str(error).removeprefix('found ')}") from error
    if array.dtype != numpy_dtype(dtype):
        raise TypeError(f"{where} {array.dtype.name}{list(array.shape)}")
    outside.add(id(array))
    return array


def value_of(found: Object | None, dtype: str, outside: set[int]) -> Any:
    """What a caller gets for an object: as `object_of` takes it, sequences as lists, maps as dicts.

    Args:
      outside: ids of arrays that somebody outside has: these are copied. It gains those that are given.
    """
    if isinstance(found, Maps):
        return found.dicts()
    content = dtype.removeprefix("optional(").removeprefix("seq(").rstrip(")")
    if isinstance(found, Version):
        return [_given(item, content, outside) for item in found]
    return None if found is None else _given(found, content, outside)


def _given(array: np.ndarray, dtype: str, outside: set[int]) -> np.ndarray:
    if id(array) in outside:
        array = array.copy()
    outside.add(id(array))
    # Programs have elements of less than a byte as their bits.
    return array.view(numpy_dtype(dtype))
