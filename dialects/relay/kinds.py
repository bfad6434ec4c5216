"""Which element types an operator takes: named sets of dtypes, and the check with its message."""

from collections.abc import Callable
from dataclasses import dataclass

from relayc.dialects.relay.base import check
from relayc.dialects.relay.types import TensorType

__all__ = ["ANY", "BITS", "BOOL", "COMPUTED", "FLOAT", "INTEGER", "NUMBER", "Kind", "same_dtype"]


@dataclass(frozen=True)
class Kind:
    """A set of element types and how error messages call it."""

    expected: str
    contains: Callable[[TensorType], bool]

    def require(self, name: str, type_: TensorType) -> None:
        """Raises RelayError where the operand `name` has an element type outside the set."""
        check(self.contains(type_), name, self.expected, type_)


ANY = Kind("any element type", lambda t: True)
FLOAT = Kind("a floating-point element type", lambda t: t.is_float)
COMPUTED = Kind("an element type that is computed in, a bool or a number of at least 8 bits, 16 of a float", lambda t: not t.is_narrow)
INTEGER = Kind("an integer element type", lambda t: not t.is_float and not t.is_narrow and t.dtype != "bool")
NUMBER = Kind("a numeric element type", lambda t: not t.is_narrow and t.dtype != "bool")
BITS = Kind("an integer or bool element type", lambda t: not t.is_float and not t.is_narrow)
BOOL = Kind("element type bool (i1)", lambda t: t.dtype == "bool")


def same_dtype(**operands: TensorType) -> str:
    """The element type that all operands share. Raises RelayError naming the first that differs."""
    (first_name, first), *rest = operands.items()
    for name, type_ in rest:
        check(type_.dtype == first.dtype, name, f"the element type of {first_name}, {first.dtype}", type_)
    return first.dtype
