"""The error of programs that break an operator's rules, and the check that raises it."""

from typing import Any

from relayc.symbolic import Size


class RelayError(ValueError):
    """A program that breaks an operator's rules: names the operator, its source, what was found and what was expected."""


class Unequal(RelayError):
    """Two sizes, `a` and `b`, that an operator wants to be equal and that are not the same expression."""

    def __init__(self, message: str, a: Size, b: Size) -> None:
        super().__init__(message)
        self.a, self.b = a, b


def check(condition: bool, what: object, expected: Any, found: Any) -> None:
    """Raises RelayError `what: expected ..., found ...` unless `condition`: the form of every message of the type relations."""
    if not condition:
        raise RelayError(f"{what}: expected {expected}, found {found}")
