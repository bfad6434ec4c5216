"""Objects of the host: sequences of tensors, optional values and maps, and what stands for them outside of a program.

A tensor in an object is a numpy array, a sequence a Version. An optional value that is there is its content, one that is not is no object.
A map is a dict of numbers, in which a string is its number (see runtime.host). A sequence of maps, which only results are, is a Maps.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
        """This version with one more element at the end. The elements are copied only if another version already extends the shared
        list."""
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


Object = np.ndarray | Version | Maps | dict[int, int | float]


def object_of(value: Any, dtype: str, take: Callable[[Any, str], np.ndarray]) -> Object | None:
    """The object of a caller's value: tensors, lists or tuples of them, None for an absent optional value, dicts.

    Args:
      dtype: of the object, "optional(seq(float32))".
      take: converts a tensor to an array of a dtype. Raises TypeError or ValueError with the value found.

    Raises TypeError for other values, and the errors of `take`.
    """
    kind, _, content = dtype.removesuffix(")").partition("(")
    if kind == "optional":
        return None if value is None else object_of(value, content, take)
    if kind == "map":
        if not isinstance(value, Mapping):
            raise TypeError(f"found a value of type {type(value).__name__}")
        keys, values = content.split(", ")
        return dict(zip(_scalars(value.keys(), keys, "key", take), _scalars(value.values(), values, "value", take), strict=True))
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


_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int64": (int, np.integer),
    "float32": (int, float, np.integer, np.floating),
    "float64": (int, float, np.integer, np.floating),
}
"""What keys and values of a map may be, by dtype."""


def _scalars(values: Iterable[Any], dtype: str, what: str, take: Callable[[Any, str], np.ndarray]) -> list[Any]:
    """Keys or values of a map as numbers, floats rounded to the dtype. Raises TypeError, ValueError."""
    found, kinds = list(values), _SCALARS[dtype]
    for value in found:
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise TypeError(f"found a {what} {value!r} of type {type(value).__name__}")
    if dtype == "string":
        return take(found, dtype).tolist()
    try:
        with np.errstate(over="ignore"):
            return np.array(list(map(int if dtype == "int64" else float, found)), dtype).tolist()
    except OverflowError:
        raise ValueError(f"found a {what} that {dtype} does not have") from None


def value_of(found: Object | None, dtype: str, give: Callable[[np.ndarray, str], Any]) -> Any:
    """The inverse of `object_of` for results: sequences are returned as lists, maps as dicts. `give` converts an array to the caller's
    tensor."""
    if isinstance(found, Maps):
        return found.dicts()
    if isinstance(found, dict):
        dtypes = dtype.removeprefix("map(").removesuffix(")").split(", ")
        parts = (list(found), list(found.values()))
        texts = (give(np.array(part, np.int64), d).tolist() if d == "string" else part for part, d in zip(parts, dtypes, strict=True))
        return dict(zip(*texts, strict=True))
    content = dtype.removeprefix("optional(").removeprefix("seq(").rstrip(")")
    if isinstance(found, Version):
        return [give(item, content) for item in found]
    return None if found is None else give(found, content)
