"""What a type relation demands of sizes that are not known yet: proved, an error, or left for when the program runs."""

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from relayc.dialects.relay.errors import check, may_equal, unequal
from relayc.dialects.relay.types import TensorType
from relayc.symbolic import Dim, Size, bounds, exact


@dataclass(frozen=True)
class Condition:
    """What must hold when a program runs: `size` is 0 or more.

    Attributes:
      size: an expression that may be negative for some values of its symbols.
      text: `what: expected ..., found ...`, in expressions.
    """

    size: Dim
    text: str


def message_of(size: Size, text: str) -> str:
    """The message where a condition does not hold, in which the value of its size replaces `%lld`."""
    return f"{text} ({size} is %lld)"


_COLLECTED: contextvars.ContextVar[list[Condition] | None] = contextvars.ContextVar("relayc_conditions", default=None)


@contextmanager
def collected() -> Iterator[list[Condition]]:
    """Context in which conditions that checks cannot prove are collected in the list it yields."""
    found: list[Condition] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def require_at_least(least: Size, size: Size | None, what: str, expected: Any, found: Any) -> None:
    """Requires `least <= size`. Raises RelayError if it is disproved; if it is undecided, it becomes a condition of the program."""
    if size is None:
        return
    if isinstance(size, int) and isinstance(least, int):
        check(least <= size, what, expected, found)
        return
    low, high = bounds(size - least)
    check(high >= 0, what, expected, found)
    conditions = _COLLECTED.get()
    if low < 0 and conditions is not None:
        left = size - least
        assert isinstance(left, Dim)  # else low is high
        conditions.append(Condition(left, f"{what}: expected {expected}, found {found}"))


def require_at_most(most: Size | None, size: Size | None, what: str, expected: Any, found: Any) -> None:
    """Demands `size <= most`, as `require_at_least` does."""
    if size is not None:
        require_at_least(size, most, what, expected, found)


def require_equal(a: Size | None, b: Size | None, what: str, expected: Any, found: Any) -> None:
    """Raises RelayError if two known sizes are not the same expression: Unequal if their values may be the same."""
    if a is not None and b is not None and a != b:
        raise unequal(f"{what}: expected {expected}, found {found}", a, b)


def require_type(expected: TensorType, found: TensorType, what: str) -> None:
    """Raises RelayError if a type is not the expected one: Unequal where only sizes differ that may have the same value."""
    check(expected.dtype == found.dtype and expected.rank == found.rank, what, expected, found)
    pairs = [(a, b) for a, b in zip(expected.shape, found.shape, strict=True) if a is not None and b is not None and a != b]
    for a, b in sorted(pairs, key=lambda pair: may_equal(*pair)):
        require_equal(a, b, what, expected, found)


def require_divides(den: Size, num: Size | None, what: str, expected: Any, found: Any) -> Size | None:
    """num / den, of sizes; None if num is unknown. Raises RelayError unless the quotient is exact for all values of the symbols: Unequal if
    it is exact for some."""
    if num is None:
        return None
    if den == 0 or (isinstance(num, int) and isinstance(den, int)):
        check(den != 0 and num % den == 0, what, expected, found)
        return num // den
    quotient = exact(num, den)
    if quotient is None:
        # A quotient that is no polynomial may still be one of atoms: floor divisions that cancel.
        rounded = num // den
        quotient = rounded if rounded * den == num else None
    if quotient is None:
        raise unequal(f"{what}: expected {expected}, found {found}", num, num // den * den)
    return quotient
