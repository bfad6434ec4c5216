"""Values of a model that are no tensors: sequences of tensors, optional values, and maps.

What is in them is known at import where it can be: then they are no more than the tensors, and leave no trace in the program. Where it
cannot (positions that only the program knows, branches, loops, inputs and outputs of the model) they are objects of the host, which the
program knows by a number, int64[] (see relayc.runtime.host), and handles by packed functions (relayc.runtime.sequences). Maps are always
objects of the host (relayc.runtime.maps): inputs of the model, of which operators make tensors.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from onnx import TypeProto

from relayc.dialects.mlir import ir
from relayc.dialects.relay import TensorType
from relayc.frontend.converter import ModelBuilder, Tensor, constant, inside, packed
from relayc.frontend.onnx.errors import OnnxError
from relayc.frontend.onnx.model import dtype_name
from relayc.frontend.sizes import new_symbols
from relayc.symbolic import Size, symbols_of

NUMBER = TensorType((), "int64")
"""The number of an object."""

ABSENT = -1
"""The number of an optional value that is not there, for packed functions."""

# ---- types ----------------------------------------------------------------------------------------------------------------------------


class Source(IntEnum):
    """Source of the element types of an object: it is still empty, the model declares them, or they follow from its elements."""

    NOTHING = 0
    DECLARED = 1
    GIVEN = 2


@dataclass(frozen=True)
class ElementType:
    """What is known of the tensors in an object.

    Attributes:
      dtype: of all of them.
      shape: of all of them, None for a size that is not known or differs; None if the rank is not known or differs. Its symbols have values
        everywhere.
    """

    dtype: str
    shape: tuple[Size | None, ...] | None = None
    source: Source = Source.NOTHING

    @staticmethod
    def given(dtype: str, shape: Sequence[Size | None]) -> "ElementType":
        """That of tensors that are put in; the shape may have symbols that have values in some places only."""
        known = ModelBuilder.current().arguments
        return ElementType(dtype, tuple(d if d is not None and symbols_of(d) <= known else None for d in shape), Source.GIVEN)

    @staticmethod
    def of(tensor: Tensor) -> "ElementType":
        return ElementType.given(tensor.dtype, tensor.shape)

    @property
    def sizes(self) -> tuple[Size | None, ...]:
        """The shape. Raises OnnxError if the rank is not known."""
        if self.shape is None:
            raise OnnxError(
                "expected a sequence or optional value of tensors of one rank, which the model declares or what is put in says, found none"
            )
        return self.shape

    def joined(self, other: "ElementType") -> "ElementType":
        """The combination of two element types. Types of actual elements take precedence over types that a model declares.

        Raises OnnxError for two dtypes.
        """
        if self.dtype != other.dtype:
            raise OnnxError(f"expected tensors of one element type, found {self.dtype} and {other.dtype}")
        a, b = sorted((self, other), key=lambda t: t.source)
        if a.source is Source.NOTHING:
            return b
        shape: tuple[Size | None, ...] | None = None
        if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
            shape = tuple(m if m == n else None for m, n in zip(a.shape, b.shape, strict=True))
        elif b.shape is not None and a.source < b.source:
            shape = (None,) * len(b.shape)
        return ElementType(self.dtype, shape, b.source)

    def __str__(self) -> str:
        return self.dtype


@dataclass(frozen=True)
class SequenceType:
    element: ElementType

    def __str__(self) -> str:
        return f"seq({self.element})"


@dataclass(frozen=True)
class OptionalType:
    content: ElementType | SequenceType

    def __str__(self) -> str:
        return f"optional({self.content})"


@dataclass(frozen=True)
class MapType:
    """Dtypes of a map's keys and values: of MAP_KEYS and MAP_VALUES."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"map({self.key}, {self.value})"


MAP_KEYS = ("int64", "string")
MAP_VALUES = ("float32", "float64", "int64", "string")

ObjectType: TypeAlias = SequenceType | OptionalType | MapType


def joined(a: ObjectType | ElementType, b: ObjectType | ElementType) -> ObjectType:
    """The common type of two types: a present value is also an optional value. Raises OnnxError if they do not match, and for maps, which
    branches and loops cannot return."""
    for type_ in (a, b):
        if isinstance(type_, MapType):
            raise OnnxError(f"expected a tensor, a sequence or an optional value, found {type_}")
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        x, y = (t.content if isinstance(t, OptionalType) else t for t in (a, b))
        return OptionalType(x.joined(y) if isinstance(x, ElementType) and isinstance(y, ElementType) else _sequences(x, y))
    return _sequences(a, b)


def _sequences(a: ObjectType | ElementType, b: ObjectType | ElementType) -> SequenceType:
    if not isinstance(a, SequenceType) or not isinstance(b, SequenceType):
        raise OnnxError(f"expected values of one type, found {a} and {b}")
    return SequenceType(a.element.joined(b.element))


def element_of(type_: ObjectType | ElementType) -> ElementType:
    """The type of the tensors in an object. Raises OnnxError for a map."""
    if isinstance(type_, ElementType):
        return type_
    if isinstance(type_, MapType):
        raise OnnxError(f"expected a tensor, a sequence or an optional value, found {type_}")
    return type_.element if isinstance(type_, SequenceType) else element_of(type_.content)


def declared_type(proto: TypeProto, what: str) -> ObjectType | None:
    """The type that a model declares; None for a tensor or no type. Raises OnnxError, naming `what`, for an unsupported type."""
    kind = proto.WhichOneof("value")
    if kind is None or kind == "tensor_type":
        return None
    found = _declared(proto, what)
    assert not isinstance(found, ElementType)
    return found


def content_type(proto: TypeProto, what: str) -> ElementType | SequenceType:
    """The declared content type of an optional value. Raises OnnxError, naming `what`."""
    found = _declared(proto, what)
    if not isinstance(found, (ElementType, SequenceType)):
        raise OnnxError(f"{what}: expected a tensor or a sequence, found {found}")
    return found


def _declared(proto: TypeProto, what: str) -> ElementType | ObjectType:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        sizes = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
        return ElementType(dtype_name(tensor.elem_type, what), sizes if tensor.HasField("shape") else None, Source.DECLARED)
    if kind == "sequence_type":
        element = _declared(proto.sequence_type.elem_type, what)
        if isinstance(element, ElementType):
            return SequenceType(element)
    if kind == "optional_type":
        return OptionalType(content_type(proto.optional_type.elem_type, what))
    if kind == "map_type":
        return _declared_map(proto.map_type, what)
    raise OnnxError(f"{what}: expected a tensor, a sequence of tensors or an optional value of these, found {_kind(proto)}")


def _declared_map(proto: TypeProto.Map, what: str) -> MapType:
    value = proto.value_type
    if value.WhichOneof("value") != "tensor_type":
        raise OnnxError(f"{what}: expected a map of single values, found one of {_kind(value)}")
    found = MapType(dtype_name(proto.key_type, what), dtype_name(value.tensor_type.elem_type, what))
    if found.key not in MAP_KEYS or found.value not in MAP_VALUES:
        raise OnnxError(f"{what}: expected a map from {' or '.join(MAP_KEYS)} to one of {', '.join(MAP_VALUES)}, found {found}")
    return found


def _kind(proto: TypeProto) -> str:
    kind = (proto.WhichOneof("value") or "no type").removesuffix("_type")
    return f"{kind} of {_kind(proto.sequence_type.elem_type)}" if kind == "sequence" else kind


# ---- values ---------------------------------------------------------------------------------------------------------------------------


class SequenceValue:
    """A sequence of tensors.

    Args:
      items: its elements, if known.
      number: in the program; for known elements `pack` creates it on demand.
    """

    def __init__(
        self,
        type_: SequenceType,
        items: Sequence[Tensor] | None = None,
        number: Tensor | None = None,
        pack: Callable[[], Tensor] | None = None,
        name: str = "",
    ) -> None:
        self.type, self.items, self.name = type_, items, name
        self._number, self._pack = number, pack
        # Where the program packs it on demand: the number is visible wherever the elements are.
        self._home = ir.InsertionPoint.current.block

    @staticmethod
    def of(items: Sequence[Tensor], element: ElementType | None = None) -> "SequenceValue":
        """A sequence of known elements; `element` is the element type, also of an empty sequence. Raises OnnxError for several element
        types."""
        kind = element
        for item in items:
            found = ElementType.of(item)
            kind = found if kind is None else kind.joined(found)
        if kind is None:
            raise OnnxError("expected a sequence of a known element type, found an empty one")
        return SequenceValue(SequenceType(kind), list(items), pack=lambda: packed(f"{SEQUENCE}construct", items, NUMBER)[0])

    @property
    def number(self) -> Tensor:
        """Its number in the program."""
        if self._number is None:
            assert self._pack is not None
            with inside(self._home):
                self._number = self._pack()
        return self._number


class OptionalValue:
    """An optional value.

    Args:
      content: if known; None if the value is known to be absent, or if presence is only known at run time.
      number: in the program.
    """

    def __init__(
        self, type_: OptionalType, content: "Tensor | SequenceValue | None" = None, number: Tensor | None = None, name: str = ""
    ) -> None:
        self.type, self.content, self.name = type_, content, name
        self._number = number
        self._home = ir.InsertionPoint.current.block

    @property
    def is_known(self) -> bool:
        """Whether its presence is known."""
        return self.content is not None or self._number is None

    @property
    def number(self) -> Tensor:
        """Its number in the program: if the content is an object, the number of the content."""
        if self._number is None:
            with inside(self._home):
                self._number = self._packed()
        return self._number

    def _packed(self) -> Tensor:
        if self.content is None:
            return constant(np.int64(ABSENT))
        return self.content.number if isinstance(self.content, SequenceValue) else packed(f"{OPTIONAL}some", [self.content], NUMBER)[0]


@dataclass
class MapValue:
    """A map, which the program knows by its number."""

    type: MapType
    number: Tensor
    name: str = ""


ObjectValue: TypeAlias = SequenceValue | OptionalValue | MapValue
Value: TypeAlias = Tensor | ObjectValue


def type_of(value: Value) -> ElementType | ObjectType:
    """The type of a value, a tensor as what may be in an object."""
    return ElementType.of(value) if isinstance(value, Tensor) else value.type


def as_tensor(value: Value, what: str) -> Tensor:
    """A value that has to be a tensor. Raises OnnxError, naming `what`, for another."""
    if not isinstance(value, Tensor):
        raise OnnxError(f"{what}: expected a tensor, found {type_of(value)}")
    return value


def by_number(number: Tensor, type_: ObjectType) -> ObjectValue:
    """The object of a type that the program knows by a number."""
    if isinstance(type_, MapType):
        return MapValue(type_, number)
    return SequenceValue(type_, number=number) if isinstance(type_, SequenceType) else OptionalValue(type_, number=number)


def number_of(value: Value, type_: ObjectType | None) -> Tensor:
    """The number of a value as an object of a type, which may be an optional value where the value is what is in it."""
    if isinstance(type_, OptionalType) and isinstance(value, (Tensor, SequenceValue)):
        value = OptionalValue(type_, value)
    assert not isinstance(value, Tensor)
    return value.number


# ---- packed functions -----------------------------------------------------------------------------------------------------------------

SEQUENCE, OPTIONAL = "relayc.host.sequence.", "relayc.host.optional."
"""Prefixes of the names of packed functions."""


def text(where: str) -> Tensor:
    """The start of an error message of a packed function."""
    return constant(np.frombuffer(where.encode(), np.uint8))


def fetched(element: ElementType, functions: tuple[str, str], args: Sequence[Tensor], stem: str) -> Tensor:
    """A tensor that a packed function extracts from an object.

    Args:
      functions: the function of the shape, int64[rank], which is called if the shape is unknown, and the function of the tensor.
      stem: prefix of the names of its sizes.

    Raises OnnxError if the rank is unknown.
    """
    shape = element.sizes
    if None in shape:
        (found,) = packed(functions[0], args, TensorType((len(shape),), "int64"))
        shape = tuple(s if d is None else d for d, s in zip(shape, new_symbols(found, stem), strict=True))
    return packed(functions[1], args, TensorType(shape, element.dtype))[0]


# ---- values that are given in one of two ways -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """How values are written as tensors.

    Attributes:
      type: of them; None for tensors.
      items: forms of the elements of a sequence of known length, or of the content of an optional value that is there; None if the tensor
        is the number of the object.
    """

    type: ObjectType | None = None
    items: "tuple[Form, ...] | None" = None

    def tensors(self, value: Value) -> list[Tensor]:
        """The tensors that a value is written as."""
        if self.type is None or self.items is None:
            return [value if isinstance(value, Tensor) and self.type is None else number_of(value, self.type)]
        return [tensor for form, item in zip(self.items, _items(value) or (), strict=True) for tensor in form.tensors(item)]

    def value(self, tensors: Iterator[Tensor]) -> Value:
        """The value that the next of some tensors are."""
        if self.type is None:
            return next(tensors)
        if self.items is None:
            return by_number(next(tensors), self.type)
        if isinstance(self.type, OptionalType):
            content = self.items[0].value(tensors)
            assert isinstance(content, (Tensor, SequenceValue))  # the only kinds of content
            return OptionalValue(self.type, content)
        assert isinstance(self.type, SequenceType)  # maps are known by number alone
        return SequenceValue.of([next(tensors) for _ in self.items], self.type.element)


def _items(value: Value) -> Sequence[Value] | None:
    """The known contents of an object; None if they are unknown."""
    if isinstance(value, OptionalValue):
        return None if value.content is None else [value.content]
    return (value.items or None) if isinstance(value, SequenceValue) else None


def common_form(a: Value, b: Value) -> Form:
    """How either of two values can be written: the tensors in them where these are known and alike, else a number.

    Raises OnnxError if they are of types that do not fit.
    """
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return Form()
    type_ = joined(type_of(a), type_of(b))
    x, y = _items(a), _items(b)
    if x is None or y is None or type(a) is not type(b) or len(x) != len(y):
        return Form(type_)
    pairs = list(zip(x, y, strict=True))
    if any(isinstance(m, Tensor) and isinstance(n, Tensor) and m.rank != n.rank for m, n in pairs):
        return Form(type_)
    return Form(type_, tuple(common_form(m, n) for m, n in pairs))
