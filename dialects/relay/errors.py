"""The error of programs that break an operator's rules, and the check that raises it."""

from typing import Any

from relayc.symbolic import Size, bounds


def may_equal(a: Size, b: Size) -> bool:
    """Whether two sizes are the same for some values of their symbols, as far as is known."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    low, high = bounds(a - b)
    return low <= 0 <= high


class RelayError(ValueError):
    """A program that violates an operator's rules: gives the operator, its source, the value found and the value expected."""


class Unequal(RelayError):
    """Two sizes, `a` and `b`, that an operator wants to be equal: they are not the same expression, and may have the same value."""

    def __init__(self, message: str, a: Size, b: Size) -> None:
        super().__init__(message)
        self.a, self.b = a, b


def unequal(message: str, a: Size, b: Size) -> RelayError:
    """The error that two sizes are not the same expression: Unequal where they may have the same value."""
    return Unequal(message, a, b) if may_equal(a, b) else RelayError(message)


def check(condition: bool, what: object, expected: Any, found: Any) -> None:
    """Raises RelayError `what: expected ..., found ...` unless `condition`: the form of every message of the type relations."""
    if not condition:
        raise RelayError(f"{what}: expected {expected}, found {found}")


class NeedsControl(RelayError):
    """A program that makes values which are no tensors when it runs: data types, references, functions.

    Attributes:
      program: the module of the Relay language, where it is at hand.
    """

    program: Any = None
