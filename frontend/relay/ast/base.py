"""What all nodes of a Relay program share: they are immutable, and have an identity and a place in a source."""

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_origin

import numpy as np


class Fields(type):
    """The class of the classes of nodes, whose annotations are their fields, in the order of the constructor's arguments.

    A value in the body of the class is the default of its field. The constructor makes tuples of the values of a field that is a tuple, and
    numbers and texts of those of a field that is one. A class with `parts` of its own, or a constructor, keeps them.
    """

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> "Fields":
        if "__slots__" in namespace:
            return super().__new__(mcls, name, bases, namespace, **options)
        kinds = {field: kind for field, kind in namespace.get("__annotations__", {}).items() if get_origin(kind) is not ClassVar}
        defaults = {field: namespace.pop(field) for field in kinds if field in namespace}
        namespace["__slots__"] = tuple(kinds)
        namespace.setdefault("parts", tuple(kinds))
        cls: Any = super().__new__(mcls, name, bases, namespace, **options)
        if cls.parts and "__init__" not in namespace:
            parameters = [f"{part}=defaults[{part!r}]" if part in defaults else part for part in cls.parts]
            values = [f"{part}={_converted(part, kinds[part])}" for part in cls.parts]
            if cls.takes_span:
                parameters, values = [*parameters, "span=None"], [*values, "span=span"]
            scope = {"defaults": defaults, "store": store, "items": items}
            exec(f"def __init__(self, {', '.join(parameters)}): store(self, {', '.join(values)})", scope)
            cls.__init__ = scope["__init__"]
        return cls


def _converted(part: str, kind: Any) -> str:
    """The value of a field, of an argument of its name, as Python writes it."""
    if get_origin(kind) is tuple:
        return f"items({part})"
    if any(get_origin(one) is tuple for one in get_args(kind)):
        return f"None if {part} is None else items({part})"
    return f"{kind.__name__}({part})" if kind in (int, bool, str) else part


class Node(metaclass=Fields):
    """A part of a Relay program. Its fields are set once, when it is made.

    Class attributes:
      parts: names of the fields, in the order of the constructor's arguments.
      unset: names of the slots that are None at first.
      takes_span: whether the constructor's last argument is the place in a source.
      mutable: names of the slots that may be set later: what passes found out about the node.
    """

    __slots__ = ("__weakref__",)
    parts: ClassVar[tuple[str, ...]] = ()
    unset: ClassVar[tuple[str, ...]] = ()
    takes_span: ClassVar[bool] = False
    mutable: ClassVar[frozenset[str]] = frozenset()

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **parts: Any) -> None: ...

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
          show_meta_data: whether the text ends with the metadata section; a program with metadata cannot be parsed without it.
          annotate: returns the comment after an expression, in place of its type.
        """
        from relayc.frontend.relay.text.printer import astext

        return astext(self, show_meta_data, annotate)

    def __str__(self) -> str:
        from relayc.frontend.relay.text.printer import pretty

        return pretty(self)

    __repr__ = __str__


def store(node: Node, **values: Any) -> None:
    """Sets the fields of a node under construction."""
    for name in type(node).unset:
        object.__setattr__(node, name, None)
    for name, value in values.items():
        object.__setattr__(node, name, node_of(value))


def items(values: Iterable[Any] | None) -> tuple[Any, ...]:
    """A field with several values; empty if it is None."""
    return () if values is None else tuple(map(node_of, values))


def node_of(value: Any) -> Any:
    """The node that an object stands for, which its method `asobject` gives as in TVM; other values themselves."""
    convert = getattr(value, "asobject", None)
    return value if convert is None else convert()


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

    def same_as(self, other: Any) -> bool:
        """Whether two names are of one array."""
        return self is other


def ndarray(value: Any, dtype: str | None = None) -> NDArray:
    """An array of numbers, or of anything that numpy takes."""
    from relayc.dialects.relay.types import DTYPES

    plain = value.numpy() if hasattr(value, "numpy") else value
    return np.asarray(plain, None if dtype is None else DTYPES[dtype]).view(NDArray)
