"""The values of variables and expressions while code is built of a program."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from relayc.frontend.relay.ast import expr as e
from relayc.trampoline import Call


@dataclass
class Scope:
    """The values of variables and expressions where code is built, and in the scopes around.

    A value that a branch, a loop or a call has computed is known in it only: it is none of the block around, or depends on arguments.
    """

    outer: "Scope | None" = None
    values: dict[Any, Any] = field(default_factory=dict)

    def find(self, expr: e.Expr) -> Any:
        """The value of an expression, of a variable by its identity; None if it has none."""
        key, scope = expr.vid if isinstance(expr, e.Var) else expr, self
        while scope.outer is not None and key not in scope.values:
            scope = scope.outer
        return scope.values.get(key)

    def value(self, expr: e.Expr, make: "Callable[[e.Expr, Scope], Call[Any]]") -> Call[Any]:
        """The value of an expression; if it has none, the result of `make` for the expression in this scope."""
        found = self.find(expr)
        if found is None:
            found = self.values[expr.vid if isinstance(expr, e.Var) else expr] = yield make(expr, self)
        return found
