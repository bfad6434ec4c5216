"""Modules: functions by global variable, and definitions of data types."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from relayc.frontend.relay.ast.analysis import free_type_vars, free_vars
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.base import Node, node_of
from relayc.frontend.relay.ast.expr import Constructor, Expr, Function, GlobalVar, TypeData
from relayc.frontend.relay.ast.types import GlobalTypeVar
from relayc.nearest import nearest


class UnknownName(KeyError, ValueError):
    """A name that a module has not; Relay's programs expect ValueError."""


class RelayModule(Node):
    """A program of the Relay language (Relay's IRModule; `relayc.IRModule` is one of the relay dialect). Functions can be added.

    Attributes:
      functions: by global variable.
      type_definitions: by global type variable.
      attrs: attributes of the module.
    """

    __slots__ = ("attrs", "functions", "type_definitions")
    functions: dict[GlobalVar, Function]
    type_definitions: dict[GlobalTypeVar, TypeData]
    attrs: Attrs

    mutable = frozenset({"functions", "type_definitions", "attrs"})

    def __init__(
        self,
        functions: Mapping[Any, Function] | None = None,
        type_definitions: Mapping[GlobalTypeVar, TypeData] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        self.functions, self.type_definitions = {}, dict(type_definitions or {})
        self.attrs = attrs if isinstance(attrs, Attrs) else Attrs(attrs)
        for name, function in (functions or {}).items():
            self[name] = function

    @staticmethod
    def from_expr(
        expr: Expr,
        functions: Mapping[Any, Function] | None = None,
        type_defs: Mapping[GlobalTypeVar, TypeData] | None = None,
    ) -> "RelayModule":
        """A module whose function main is an expression: the expression itself if it is a function, otherwise a function of its free
        variables."""
        module = RelayModule(functions, type_defs)
        module["main"] = node_of(expr)
        return module

    def structural_parts(self) -> list[Any]:
        """The parts compared for equality: the number of functions, then names and definitions, sorted by name."""
        functions = sorted(self.functions.items(), key=lambda item: item[0].name_hint)
        types = sorted(self.type_definitions.items(), key=lambda item: item[0].name_hint)
        names = tuple(var.name_hint for var, _ in functions)
        return [names, *(data for _, data in types), *(function for _, function in functions)]

    # ---- functions and types by name

    def __setitem__(self, var: GlobalVar | GlobalTypeVar | str, value: Any) -> None:
        """Adds a function or a type, or puts it in the place of one of the name. An expression is made a function. Raises TypeError."""
        if isinstance(value, TypeData):
            self.type_definitions[value.header] = value  # type: ignore[index] # the header of a definition is global
            return
        if isinstance(value, RelayModule):
            value = value["main"]
        if not isinstance(value, Expr):
            raise TypeError(f"function {var}: expected an expression, found {type(value).__name__}")
        name = var if isinstance(var, str) else var.name_hint
        key = self._find(name) or (var if isinstance(var, GlobalVar) else GlobalVar(name))
        self.functions[key] = value if isinstance(value, Function) else Function(free_vars(value), value, None, free_type_vars(value))

    def __getitem__(self, var: GlobalVar | GlobalTypeVar | str) -> Any:
        """A function or a type by its variable or name. Raises KeyError."""
        if isinstance(var, GlobalTypeVar):
            return self.type_definitions[self.get_global_type_var(var.name_hint)]
        return self.functions[self.get_global_var(var if isinstance(var, str) else var.name_hint)]

    def __contains__(self, var: GlobalVar | str) -> bool:
        return self._find(var if isinstance(var, str) else var.name_hint) is not None

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.functions)

    def _find(self, name: str) -> GlobalVar | None:
        return next((var for var in self.functions if var.name_hint == name), None)

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable of a function. Raises KeyError."""
        found = self._find(name)
        if found is None:
            raise UnknownName(f"no function @{name} in the module{nearest(name, [v.name_hint for v in self.functions])}")
        return found

    def get_global_vars(self) -> list[GlobalVar]:
        """The variables of all functions."""
        return list(self.functions)

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The variable of a type. Raises KeyError."""
        found = next((var for var in self.type_definitions if var.name_hint == name), None)
        if found is None:
            raise UnknownName(f"no type {name} in the module{nearest(name, [v.name_hint for v in self.type_definitions])}")
        return found

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        """The variables of all types."""
        return list(self.type_definitions)

    def get_type(self, name: str) -> tuple[Any, ...]:
        """The variable of a type, and its constructors. Raises KeyError."""
        var = self.get_global_type_var(name)
        return (var, *self.type_definitions[var].constructors)

    def get_constructor(self, type_name: str, name: str) -> Constructor:
        """A constructor of a type. Raises KeyError."""
        for constructor in self.get_type(type_name)[1:]:
            if constructor.name_hint == name:
                return constructor
        raise UnknownName(f"type {type_name} has no constructor {name}")

    def update(self, other: "RelayModule | Mapping[Any, Function]") -> None:
        """Adds the contents of another module, replacing entries of the same name."""
        if isinstance(other, RelayModule):
            for data in other.type_definitions.values():
                self[data.header] = data  # type: ignore[index]
            other = other.functions
        for var, function in other.items():
            self[var] = function

    def import_from_std(self, name: str) -> None:
        """Adds a standard text: "prelude.rly", "nat.rly", "gradient.rly" or "core.rly" (relayc.frontend.relay.prelude). Raises KeyError."""
        from relayc.frontend.relay.prelude import import_from_std

        import_from_std(self, name)

    def update_func(self, var: GlobalVar, function: Function) -> None:
        """Puts a function in the place of another."""
        self[var] = function

    def shallow_copy(self) -> "RelayModule":
        """A module with the same functions."""
        return RelayModule(self.functions, self.type_definitions, self.attrs)

    def with_attr(self, key: str, value: Any) -> "RelayModule":
        """A module with the same functions, and an attribute."""
        return RelayModule(self.functions, self.type_definitions, {**self.attrs, key: value})

    def map_functions(self, change: Callable[[Function], Expr]) -> "RelayModule":
        """A module with each function replaced by the result of `change`."""
        found = self.shallow_copy()
        for var, function in self.functions.items():
            found[var] = change(function)
        return found
