"""What all nodes of a Relay program share: they are immutable, and have an identity and a place in a source."""

import weakref
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np


class Node:
    """A part of a Relay program. Its fields are set once, when it is made.

    Class attributes:
      parts: names of the fields, in the order of the constructor's arguments.
      mutable: names of the slots that may be set later: what passes found out about the node.
    """

    __slots__ = ("__weakref__",)
    parts: ClassVar[tuple[str, ...]] = ()
    mutable: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.mutable:
            raise AttributeError(f"{type(self).__name__}.{name}: nodes are immutable")
        object.__setattr__(self, name, value)

    def same_as(self, other: Any) -> bool:
        """Whether two names are of one node."""
        return self is other

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The node as Relay text.

        Args:
          show_meta_data: whether the text ends with the metadata section; without it, it does not parse where there is any.
          annotate: a function of an expression that gives the comment after it, in place of its type.
        """
        from relayc.frontend.relay.text.printer import astext

        return astext(self, show_meta_data, annotate)

    def __str__(self) -> str:
        from relayc.frontend.relay.text.printer import pretty

        return pretty(self)

    __repr__ = __str__


def store(node: Node, **values: Any) -> None:
    """Sets the fields of a node that is being made."""
    for name, value in values.items():
        object.__setattr__(node, name, value)


def items(values: Iterable[Any] | None) -> tuple[Any, ...]:
    """A field with several values; none where it is not given."""
    return () if values is None else tuple(values)


class SourceName(Node):
    """The name of a source. There is one object for each name."""

    __slots__ = ("name",)
    parts = ("name",)
    name: str
    _known: ClassVar["weakref.WeakValueDictionary[str, SourceName]"] = weakref.WeakValueDictionary()

    def __new__(cls, name: str) -> "SourceName":
        found = cls._known.get(name)
        if found is None:
            found = super().__new__(cls)
            store(found, name=name)
            cls._known[name] = found
        return found

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


class Span(Node):
    """A part of a source: from a line and column to another, counted from 1."""

    __slots__ = ("column", "end_column", "end_line", "line", "source_name")
    parts = ("source_name", "line", "end_line", "column", "end_column")
    source_name: SourceName | None
    line: int
    end_line: int
    column: int
    end_column: int

    def __init__(self, source_name: SourceName | str | None, line: int, end_line: int, column: int, end_column: int) -> None:
        source = SourceName(source_name) if isinstance(source_name, str) else source_name
        store(self, source_name=source, line=line, end_line=end_line, column=column, end_column=end_column)

    def __str__(self) -> str:
        return f"{self.source_name or '<unknown>'}:{self.line}:{self.column}"

    __repr__ = __str__


class NDArray(np.ndarray):
    """The elements of a constant, or a result: a numpy array under the names that Relay programs use."""

    def numpy(self) -> np.ndarray:
        """The same elements as a plain numpy array."""
        return self.view(np.ndarray)

    asnumpy = numpy


def ndarray(value: Any, dtype: str | None = None) -> NDArray:
    """An array of numbers, or of anything that numpy takes."""
    from relayc.dialects.relay.types import DTYPES

    plain = value.numpy() if hasattr(value, "numpy") else value
    return np.asarray(plain, None if dtype is None else DTYPES[dtype]).view(NDArray)
