"""Values of programs of the Relay language that are no tensors: data types, references and functions. A tuple is a list."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any


class ConstructorValue:
    """A value created by a constructor of a data type.

    Attributes:
      tag: the number of the constructor in its type.
      fields: its values.
      constructor: that created the value; `name_hint` is its name.
    """

    __slots__ = ("constructor", "fields", "tag")

    def __init__(self, tag: int, fields: Sequence[Any], constructor: Any = None) -> None:
        self.tag, self.fields, self.constructor = tag, fields, constructor

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)

    def __repr__(self) -> str:
        name = getattr(self.constructor, "name_hint", f"constructor {self.tag}")
        # Not the fields of the fields: lists are as deep as they are long.
        fields = ", ".join("..." if isinstance(field, ConstructorValue) and field.fields else repr(field) for field in self.fields)
        return f"{name}({fields})" if fields else name


class RefValue:
    """A reference. A reference passed to or returned by a native program is shared with the program: both see writes of the other.

    Attributes:
      value: the referenced value.
      shared: reads and writes the value in a native program (runtime.native); None for a reference of Python alone.
    """

    __slots__ = ("_value", "shared")

    def __init__(self, value: Any, shared: Any = None) -> None:
        self._value, self.shared = value, shared

    @property
    def value(self) -> Any:
        """The referenced value."""
        return self._value if self.shared is None else self.shared.read()

    @value.setter
    def value(self, value: Any) -> None:
        if self.shared is None:
            self._value = value
        else:
            self.shared.write(value)

    def __repr__(self) -> str:
        return "ref"


class Closure:
    """A function value with the values that it captures.

    Attributes:
      function: its number in the program.
      captures: the captured values.
      machine: runs it (runtime.control).
    """

    __slots__ = ("captures", "function", "machine")

    def __init__(self, function: int, captures: tuple[Any, ...], machine: Any) -> None:
        self.function, self.captures, self.machine = function, captures, machine

    def __call__(self, *args: Any) -> Any:
        return self.machine.run(self, args)


def with_results(function: Callable[..., Any], take: Callable[[Any], Any], type_: Any) -> Callable[..., Any]:
    """Wraps a Python function for a program: `take` converts its results; TypeErrors and ValueErrors of `take` name the function."""

    def call(*args: Any) -> Any:
        found = function(*args)
        try:
            return take(found)
        except (TypeError, ValueError) as error:
            name = getattr(function, "__name__", type(function).__name__)
            raise type(error)(f"result of {name}, a function of type {type_}: {error}") from None

    return call
