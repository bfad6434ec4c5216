"""Programs with data types, references and functions as values, as plain data: types, constructors, functions, what code is linked to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relayc.runtime.values import ConstructorValue

LINKS, APPLY, FOREIGN, HEAP = "native.links", "native.apply.", "native.foreign.", "native.heap."
"""Beginnings of the names of entries that are not for callers: the words that the program is linked to, calls of closures by the number of
their arguments, code of closures that are packed functions by that number, functions on cells."""
NATIVE = "native."


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type of the Relay language.

    Attributes:
      kind: "tensor", "tuple", "data", "ref", "function", "var" (a parameter of a data type) or "unknown".
      name: of an element type, a data type or a parameter.
      shape: of a tensor; None for a dimension that is not known.
      parts: the types of fields, the arguments of a data type, what a reference refers to, the parameters of a function and its result.
    """

    kind: str
    name: str = ""
    shape: "tuple[int | None, ...]" = ()
    parts: "tuple[ValueType, ...]" = ()

    def __str__(self) -> str:
        if self.kind == "tensor" and self.shape:
            dims = ", ".join("?" if d is None else str(d) for d in self.shape)
            return f"Tensor[({dims}), {self.name}]"
        parts = list(map(str, self.parts))
        if self.kind == "function":
            return f"fn ({', '.join(parts[:-1])}) -> {parts[-1]}"
        listed = ", ".join(parts)
        forms = {"tuple": f"({listed}{',' * (len(parts) == 1)})", "ref": f"ref({listed})", "data": f"{self.name}[{listed}]"}
        return forms.get(self.kind, self.name) if parts or self.kind == "tuple" else self.name

    def with_arguments(self, types: "Mapping[str, ValueType]") -> "ValueType":
        """The type with others in the place of parameters."""
        if self.kind == "var":
            return types.get(self.name, self)
        return ValueType(self.kind, self.name, self.shape, tuple(part.with_arguments(types) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Constructor:
    """A constructor of a data type. Called with fields, it gives a value for functions to take.

    Attributes:
      inputs: the types of the fields.
    """

    name_hint: str
    tag: int
    inputs: tuple[ValueType, ...]

    def __call__(self, *fields: Any) -> ConstructorValue:
        if len(fields) != len(self.inputs):
            raise TypeError(f"{self.name_hint}: expected {len(self.inputs)} field(s), found {len(fields)}")
        return ConstructorValue(self.tag, fields, self)


@dataclass(frozen=True, slots=True)
class DataType:
    """A data type: its parameters and constructors."""

    name: str
    params: tuple[str, ...]
    constructors: tuple[Constructor, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A word that a program is linked to when it is loaded.

    Attributes:
      kind: "constructor" (its number), "empty" (the value of one without fields), "kernel" (a packed function) "constant" (a tensor, which
        a kernel without arguments gives), "entry" (the address of a kernel's packed entry) or "params" (that of the parameters).
      name: of the data type, or of the kernel.
      tag: of the constructor.
      types: of the kernel's arguments and its result.
    """

    kind: str
    name: str
    tag: int = 0
    types: tuple[ValueType, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeFunctionInfo:
    """A function for callers: parameters by name, and the type of its result. The calls of a deep one nest as the data say."""

    name: str
    params: tuple[tuple[str, ValueType], ...]
    result: ValueType
    is_deep: bool


@dataclass(frozen=True, slots=True)
class NativeInfo:
    """The description of a program besides its code and kernels.

    Attributes:
      has_closures: whether cells may contain addresses of its functions.
      is_pure: whether an aborted call can be repeated, because it has no side effects.
    """

    functions: tuple[NativeFunctionInfo, ...]
    data: tuple[DataType, ...]
    links: tuple[Link, ...]
    has_closures: bool
    is_pure: bool
