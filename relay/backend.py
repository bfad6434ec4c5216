"""`relayc.relay.backend`: which executor and which runtime a build is for, by Relay's names.

A module of relayc serves the graph executor, the virtual machine and callers of its packed functions at once: `relay.build` reads the
options below to refuse an interface that the module does not have.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = ["Executor", "Runtime"]

_TYPES = {bool: "runtime.BoxBool", int: "runtime.BoxInt", str: "runtime.String", float: "runtime.BoxFloat"}
"""Relay's names of the types of options."""


class _Choice:
    """One of some kinds, with options. `choice[name]` is the value of an option, and `name in choice` whether it has a value.

    Attributes:
      name: of the kind.
      options: values by name; options with a default that were not given have it.
    """

    _known: ClassVar[dict[str, dict[str, type]]]
    _defaults: ClassVar[dict[str, dict[str, Any]]] = {}

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        """Raises ValueError for an unknown name or option, or a value of another type."""
        known, kind = self._options_of(name), type(self).__name__
        for option, value in (options or {}).items():
            if option not in known:
                raise ValueError(f'Attribute "{option}" is not available on this {kind}: expected one of {", ".join(known)}')
            found, expected = _TYPES.get(type(value), type(value).__name__), _TYPES[known[option]]
            if found != expected:
                raise ValueError(f'Attribute "{option}" should have type "{expected}" but instead found "{found}"')
        self.name = name
        self.options = {**self._defaults.get(name, {}), **(options or {})}

    @classmethod
    def _options_of(cls, name: Any) -> dict[str, type]:
        known = cls._known.get(str(name))
        if known is None:
            raise ValueError(f'{cls.__name__} "{name}" is not defined: expected one of {", ".join(cls._known)}')
        return known

    def __getitem__(self, option: str) -> Any:
        return self.options[option]

    def __contains__(self, option: str) -> bool:
        return option in self.options

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (other.name, other.options) == (self.name, self.options)

    __hash__ = None  # type: ignore[assignment] # options may change

    @classmethod
    def list_registered(cls) -> list[str]:
        """Names of the kinds."""
        return list(cls._known)

    @classmethod
    def list_registered_options(cls, name: Any) -> dict[str, str]:
        """Relay's names of the types of the options of a kind, by option. Raises ValueError for an unknown name."""
        return {option: _TYPES[type_] for option, type_ in cls._options_of(name).items()}


class Executor(_Choice):
    """Who runs the graph: "graph" or "aot"."""

    _known: ClassVar = {
        "aot": {
            "link-params": bool,
            "unpacked-api": bool,
            "interface-api": str,
            "workspace-byte-alignment": int,
            "constant-byte-alignment": int,
        },
        "graph": {"link-params": bool},
    }
    _defaults: ClassVar = {"aot": {"link-params": True}, "graph": {"link-params": False}}


class Runtime(_Choice):
    """The runtime that generated code calls: "cpp" or "crt"."""

    _known: ClassVar = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}


def check(executor: Any, runtime: Any) -> None:
    """Raises ValueError for an interface that modules do not have: functions in C style, system libraries."""
    options = executor.options if isinstance(executor, Executor) else {}
    if options.get("interface-api", "packed") != "packed" or options.get("unpacked-api"):
        raise ValueError("relay.build: expected packed functions (interface-api packed), found an executor with functions in C style")
    if isinstance(runtime, Runtime) and runtime.options.get("system-lib"):
        raise ValueError("relay.build: expected a library that is loaded, found a runtime with system-lib")
