"""Types of Relay programs.

A dimension of a tensor is an integer, an expression over symbols (relayc.symbolic) or Any, of which nothing is known.
"""

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any as AnyValue
from typing import ClassVar

from relayc.frontend.relay.ast.base import Node, Span, store
from relayc.symbolic import Dim, symbol


class Kind(enum.IntEnum):
    """The kind of a type variable."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Shape = 3
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class IntImm(int):
    """A dimension that is a number, under the names of Relay's integer literals."""

    dtype = "int32"

    @property
    def value(self) -> int:
        """The number."""
        return int(self)


class Any(Node):
    """An unknown dimension."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Any)

    def __hash__(self) -> int:
        return hash(Any)

    def __str__(self) -> str:
        return "?"

    __repr__ = __str__


Size = int | Dim | Any
"""A dimension."""


def size_of(value: AnyValue) -> Size:
    """A dimension: of a number, an expression, a text that names a symbol, or what has the `name` of one. Raises TypeError."""
    if isinstance(value, (Any, Dim, IntImm)):
        return value
    if isinstance(value, str):
        return symbol(value)
    if hasattr(value, "__index__"):
        return IntImm(value)
    if isinstance(getattr(value, "name", None), str):
        return symbol(value.name)
    raise TypeError(f"shape: expected integers, symbols or Any, found {value!r}")


class Type(Node):
    """A type; types are equal if their structures are equal."""

    parts: ClassVar[tuple[str, ...]] = ()
    unset = ("span",)
    span: Span | None

    def __eq__(self, other: object) -> bool:
        from relayc.frontend.relay.ast.equality import structural_equal

        return isinstance(other, Type) and structural_equal(self, other)

    def __hash__(self) -> int:
        from relayc.frontend.relay.ast.equality import structural_hash

        return structural_hash(self)


class TensorType(Type):
    """A tensor of a shape and an element type."""

    shape: tuple[Size, ...]
    dtype: str

    def __init__(self, shape: Sequence[AnyValue], dtype: str = "float32") -> None:
        store(self, shape=tuple(map(size_of, shape)), dtype=_DTYPE_NAMES.get(str(dtype), str(dtype)))

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape, of which every dimension is a number. Raises TypeError."""
        return tuple(int(d) for d in self.shape)  # type: ignore[arg-type] # what is no number raises


_DTYPE_NAMES = {"float": "float32", "int": "int32", "uint": "uint32", "uint1": "bool", "double": "float64"}


def scalar_type(dtype: str) -> TensorType:
    """A tensor without dimensions."""
    return TensorType((), dtype)


class TupleType(Type):
    """Several values that are one."""

    fields: tuple[Type, ...]


def leaves(type_: Type | None) -> list[Type | None]:
    """The types of a tuple's fields, and in the tuples in it; of another type, itself."""
    return [leaf for field in type_.fields for leaf in leaves(field)] if isinstance(type_, TupleType) else [type_]


def structured(type_: Type | None, values: Iterator[AnyValue], make: Callable[[list[AnyValue]], AnyValue] = list) -> AnyValue:
    """A value for each of the leaves of a type, as the type has them: of the fields of a tuple, what `make` makes of them."""
    return make([structured(field, values, make) for field in type_.fields]) if isinstance(type_, TupleType) else next(values)


class TypeVar(Type):
    """A type that a function or a data type is polymorphic in."""

    name_hint: str
    kind: Kind

    def __init__(self, var: str, kind: Kind = Kind.Type) -> None:
        store(self, name_hint=var, kind=kind)


class GlobalTypeVar(Type):
    """The name of a data type of a module."""

    name_hint: str
    kind: Kind

    def __init__(self, var: str, kind: Kind = Kind.AdtHandle) -> None:
        store(self, name_hint=var, kind=kind)

    def __call__(self, *args: Type) -> "TypeCall":
        return TypeCall(self, args)


class FuncType(Type):
    """A function; it is polymorphic in its type parameters."""

    arg_types: tuple[Type, ...]
    ret_type: Type
    type_params: tuple[TypeVar, ...] = ()
    type_constraints: tuple[AnyValue, ...] = ()


class RefType(Type):
    """A reference to a value that may change."""

    value: Type


class TypeCall(Type):
    """A data type applied to arguments for its parameters."""

    func: GlobalTypeVar
    args: tuple[Type, ...]


class TypeRelation(Type):
    """A relation between types: the first ones determine the others.

    Attributes:
      func: takes types and attributes; returns the type of the result, or None if too little is known.
      num_inputs: number of determining types.
    """

    func: AnyValue
    args: tuple[Type, ...]
    num_inputs: int
    attrs: AnyValue = None


class IncompleteType(Type):
    """A type that inference is to find."""

    kind: Kind = Kind.Type
