"""Objects of the host: sequences of tensors and optional values, and what stands for them outside of a program.

A tensor in an object is a numpy array, a sequence a Version. An optional value that is there is its content, one that is not is no object.
A sequence of maps, which only results are, is a Maps.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np


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


def object_of(value: Any, dtype: str, take: Callable[[Any, str], np.ndarray]) -> Object | None:
    """What a caller gives for an object: tensors, lists or tuples of them, None for an optional value that is not there.

    Args:
      dtype: of the object, "optional(seq(float32))".
      take: gives the array of a tensor of a dtype. Raises TypeError or ValueError that say what was found.

    Raises TypeError for something else, and as `take` does.
    """
    kind, _, content = dtype.removesuffix(")").partition("(")
    if kind == "optional":
        return None if value is None else object_of(value, content, take)
    if kind != "seq":
        return take(value, dtype)
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"found a value of type {type(value).__name__}")
    items = []
    for i, item in enumerate(value):
        try:
            items.append(take(item, content))
        except (TypeError, ValueError) as error:
            raise type(error)(f"at position {i} {error}") from error
    return Version(items)


def value_of(found: Object | None, dtype: str, give: Callable[[np.ndarray, str], Any]) -> Any:
    """What a caller gets for an object: as `object_of` takes it, sequences as lists, maps as dicts. `give` gives the tensor that an array
    stands for."""
    if isinstance(found, Maps):
        return found.dicts()
    content = dtype.removeprefix("optional(").removeprefix("seq(").rstrip(")")
    if isinstance(found, Version):
        return [give(item, content) for item in found]
    return None if found is None else give(found, content)
