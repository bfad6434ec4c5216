"""Attributes of calls and functions: values by name, read as items or as Python attributes."""

from abc import ABCMeta
from collections.abc import Iterator, Mapping
from typing import Any

from relayc.frontend.relay.ast.base import Fields, Node, store

DICT_ATTRS = "DictAttrs"
"""The type of attributes that belong to no operator."""


class _MappingFields(Fields, ABCMeta):
    """The class of Attrs, which is a mapping too."""


class Attrs(Node, Mapping[str, Any], metaclass=_MappingFields):
    """Attributes of one call or function, by name.

    Attributes:
      type_key: what they are the attributes of: the name of an operator's attributes ("relay.attrs.Conv2DAttrs"), or DICT_ATTRS.
    """

    values_: dict[str, Any]
    type_key: str

    def __init__(self, values: Mapping[str, Any] | None = None, type_key: str = DICT_ATTRS) -> None:
        store(self, values_={name: _frozen(value) for name, value in (values or {}).items()}, type_key=type_key)

    def __getitem__(self, name: str) -> Any:
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    def __getattr__(self, name: str) -> Any:
        if name in type(self).__slots__ or name not in self.values_:
            raise AttributeError(f"no attribute {name}")
        return self.values_[name]

    def get_str(self, name: str) -> str:
        """An attribute that is a text."""
        return str(self.values_[name])

    def get_int(self, name: str) -> int:
        """An attribute that is an integer."""
        return int(self.values_[name])

    def get_int_tuple(self, name: str) -> tuple[int, ...]:
        """An attribute that is several integers."""
        return tuple(int(v) for v in self.values_[name])

    def list_field_info(self) -> list[str]:
        """The names of the attributes."""
        return list(self.values_)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __str__(self) -> str:
        return f"{{{', '.join(f'{name!r}: {value}' for name, value in self.values_.items())}}}"

    __repr__ = __str__


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
