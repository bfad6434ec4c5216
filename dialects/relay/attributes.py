"""Attributes of operators: Python value <-> MLIR attribute, by the annotation of the field."""

import functools
import operator
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import RelayError
from relayc.dialects.size_attribute import i64_attribute, in_64_bits, read_size_attribute, size_attribute
from relayc.symbolic import Dim, Size, parse

Ints = tuple[int, ...]
Sizes = tuple[Size, ...]
"""Integers that may be expressions over symbols: in the IR an array of 64-bit integers, or one of integers and of texts (`["n", 768]`)."""
Number = float | Size
"""A number, or an integer that may be an expression over symbols: in the IR a 64-bit float, or a text."""
Floats = tuple[float, ...]
Names = tuple[str, ...]


@dataclass(frozen=True)
class _Kind:
    """How values of one annotation are checked, written into the IR and read back."""

    expected: str
    check: Callable[[Any], bool]
    encode: Callable[[Any], ir.Attribute]
    decode: Callable[[Any], Any]


def _is_int(v: Any) -> bool:
    return isinstance(v, (int, np.integer)) and not isinstance(v, (bool, np.bool_))


def _is_float(v: Any) -> bool:
    return isinstance(v, (float, np.floating)) or _is_int(v)


def _is_size(v: Any) -> bool:
    return isinstance(v, Dim) or _is_int(v)


def _sizes_attribute(v: typing.Sequence[Size]) -> ir.Attribute:
    if any(isinstance(e, Dim) for e in v):
        return ir.ArrayAttr.get([size_attribute(e) for e in v])
    return ir.DenseI64ArrayAttr.get([in_64_bits(int(e)) for e in v])


def _sizes(a: ir.Attribute) -> Sizes:
    """Raises TypeError or ValueError."""
    return tuple(map(read_size_attribute, a)) if isinstance(a, ir.ArrayAttr) else tuple(ir.DenseI64ArrayAttr(a))


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, (tuple, list, np.ndarray)) and all(check(e) for e in v)


_KINDS: dict[Any, _Kind] = {
    int: _Kind("an integer", _is_int, i64_attribute, lambda a: ir.IntegerAttr(a).value),
    float: _Kind("a number", _is_float, lambda v: ir.FloatAttr.get_f64(float(v)), lambda a: ir.FloatAttr(a).value),
    bool: _Kind("a bool", lambda v: isinstance(v, (bool, np.bool_)), lambda v: ir.BoolAttr.get(bool(v)), lambda a: ir.BoolAttr(a).value),
    str: _Kind("a string", lambda v: isinstance(v, str), ir.StringAttr.get, lambda a: ir.StringAttr(a).value),
    Ints: _Kind(
        "a sequence of integers",
        _all(_is_int),
        lambda v: ir.DenseI64ArrayAttr.get([in_64_bits(e) for e in v]),
        lambda a: tuple(ir.DenseI64ArrayAttr(a)),
    ),
    Size: _Kind("an integer or a symbolic size", _is_size, size_attribute, read_size_attribute),
    Sizes: _Kind("a sequence of sizes", _all(_is_size), _sizes_attribute, _sizes),
    Floats: _Kind(
        "a sequence of numbers",
        _all(_is_float),
        lambda v: ir.DenseF64ArrayAttr.get([float(e) for e in v]),
        lambda a: tuple(ir.DenseF64ArrayAttr(a)),
    ),
    Number: _Kind(
        "a number or a symbolic size",
        lambda v: isinstance(v, Dim) or _is_float(v),
        lambda v: ir.StringAttr.get(str(v)) if isinstance(v, Dim) else ir.FloatAttr.get_f64(float(v)),
        lambda a: parse(a.value) if isinstance(a, ir.StringAttr) else ir.FloatAttr(a).value,
    ),
    int | Sizes: _Kind(
        "an integer or a sequence of sizes",
        lambda v: _is_int(v) or _all(_is_size)(v),
        lambda v: i64_attribute(v) if _is_int(v) else _sizes_attribute(v),
        lambda a: ir.IntegerAttr(a).value if isinstance(a, ir.IntegerAttr) else _sizes(a),
    ),
    Names: _Kind(
        "a sequence of strings",
        _all(lambda v: isinstance(v, str)),
        lambda v: ir.ArrayAttr.get([ir.StringAttr.get(e) for e in v]),
        lambda a: tuple(ir.StringAttr(e).value for e in ir.ArrayAttr(a)),
    ),
    ir.Attribute: _Kind("an MLIR attribute", lambda v: isinstance(v, ir.Attribute), lambda v: v, lambda a: a),
}

_OF_SIZES = [_KINDS[kind] for kind in (Size, Sizes, Number, int | Sizes)]

REQUIRED = object()
"""The default of a required attribute."""


@dataclass(frozen=True)
class AttrSpec:
    """One attribute of an operator: its name, kind, default and whether None (absent from the IR) is allowed."""

    name: str
    kind: _Kind
    default: Any
    optional: bool
    key: str
    """Its name in the IR, if upstream MLIR uses another name in the operation that represents the operator."""

    @property
    def says_sizes(self) -> bool:
        """Whether its value may be or have expressions over symbols."""
        return self.kind in _OF_SIZES

    def check(self, value: Any) -> None:
        """Raises RelayError for a value of another kind."""
        if not (value is None and self.optional) and not self.kind.check(value):
            raise RelayError(f"attribute {self.name}: expected {self.kind.expected}, found {value!r}")

    def encode(self, value: Any) -> ir.Attribute | None:
        self.check(value)
        if value is None:
            return None
        try:
            return self.kind.encode(value)
        except OverflowError:
            raise RelayError(f"attribute {self.name}: expected {self.kind.expected} of 64 bits, found {value!r}") from None

    def read(self, attributes: Any) -> Any:
        if self.key not in attributes:
            if self.optional:
                return None
            if self.default is not REQUIRED:
                return self.default
            raise RelayError(f"attribute {self.name}: expected {self.kind.expected}, found none")
        attribute = attributes[self.key]
        try:
            return self.kind.decode(attribute)
        except (TypeError, ValueError) as e:
            raise RelayError(f"attribute {self.name}: expected {self.kind.expected}, found {attribute}") from e


def attr_spec(name: str, annotation: Any, default: Any, key: str) -> AttrSpec:
    """The attribute that an annotated field of an operator's class stands for. Raises TypeError for an annotation of no kind."""
    optional = type(None) in typing.get_args(annotation)
    if optional:
        annotation = functools.reduce(operator.or_, [a for a in typing.get_args(annotation) if a is not type(None)])
    if annotation not in _KINDS:
        raise TypeError(f"field {name}: {annotation} is not a kind of attribute")
    return AttrSpec(name, _KINDS[annotation], default, optional, key)
