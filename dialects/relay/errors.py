"""The error of programs that break an operator's rules, and the check that raises it."""

from typing import Any


class RelayError(ValueError):
    """A program that breaks an operator's rules: names the operator, its source, what was found and what was expected."""


def check(condition: bool, what: str, expected: Any, found: Any) -> None:
    """Raises RelayError `what: expected ..., found ...` unless `condition`: the form of every message of the type relations."""
    if not condition:
        raise RelayError(f"{what}: expected {expected}, found {found}")
