"""Programs as records: the JSON form of an artifact, and its inverse. The cache and exported libraries store programs in this form."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from relayc.runtime.artifact import Artifact, Node
from relayc.symbolic import Dim, parse

_FIELDS = ("programs", "kernels", "ranges", "target", "device", "permissions", "precision", "strings", "parameters", "signature", "native")


def program_record(artifact: Artifact) -> dict[str, Any]:
    """The description of a program without code and parameters, for `json.dumps(..., default=as_plain)`."""
    return {name: getattr(artifact, name) for name in _FIELDS}


def program_fields(program: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an artifact from its record. Raises KeyError, TypeError or ValueError for an invalid record."""
    types, given = get_type_hints(Artifact), {"signature": "", **program}
    return {name: _reader(types[name])(given[name]) for name in _FIELDS}


def as_plain(value: Any) -> dict[str, Any] | str:
    """A dataclass as a dictionary of its fields, and the kind of a node; the text of an expression."""
    if isinstance(value, Dim):
        return str(value)
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {"kind": type(value).__name__, **fields} if isinstance(value, Node) else fields


@functools.cache
def _reader(of: Any) -> Callable[[Any], Any]:
    """The function that makes a value of a type from what `as_plain` and JSON made of it."""
    origin, parts = get_origin(of), get_args(of)
    if dataclasses.is_dataclass(of):
        return _fields_reader(of)
    if origin is tuple and parts[-1] is ...:
        each = _reader(parts[0])
        return lambda values: tuple(map(each, values))
    if origin is tuple:
        readers = [_reader(part) for part in parts]
        return lambda values: tuple(read(value) for read, value in zip(readers, values, strict=True))
    if origin is Mapping:
        of_values = _reader(parts[1])
        return lambda values: {name: of_values(value) for name, value in values.items()}
    return _union_reader(parts) if origin in (Union, UnionType) else lambda value: value


def _fields_reader(of: Any) -> Callable[[Mapping[str, Any]], Any]:
    """The function that makes an object of a dataclass from its fields."""
    readers: list[tuple[str, Callable[[Any], Any]]] = []

    def read(row: Mapping[str, Any]) -> Any:
        if not readers:  # not earlier: a type may contain itself
            readers[:] = [(name, _reader(type_)) for name, type_ in get_type_hints(of).items()]
        return of(*[reader(row[name]) for name, reader in readers])

    return read


def _union_reader(parts: tuple[Any, ...]) -> Callable[[Any], Any]:
    """The function for one of several types: of the dataclasses the one with the fields of a record; a text is an expression of sizes."""
    classes: list[Any] = [part for part in parts if dataclasses.is_dataclass(part)]
    by_fields = {frozenset(f.name for f in dataclasses.fields(part)): _reader(part) for part in classes}

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            return by_fields[frozenset(value) - {"kind"}](value)
        return parse(value) if isinstance(value, str) else value

    return read
