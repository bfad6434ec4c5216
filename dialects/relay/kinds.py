"""Which element types an operator takes: named sets of dtypes, and the check with its message."""

from collections.abc import Callable
from dataclasses import dataclass

from relayc.dialects.relay.base import check
from relayc.dialects.relay.types import TensorType


@dataclass(frozen=True)
class Kind:
    """A set of element types and how error messages call it."""

    expected: str
    contains: Callable[[TensorType], bool]

    def require(self, name: str, type_: TensorType) -> None:
        """Raises RelayError if the operand `name` has an element type outside the set."""
        check(self.contains(type_), name, self.expected, f"strings, {type_}" if type_.dtype == "string" else type_)


ANY = Kind("any element type", lambda t: True)
FLOAT = Kind("a floating-point element type", lambda t: t.is_float)
COMPUTED = Kind("an element type that is computed in, a bool or a number of at least 8 bits, 16 of a float", lambda t: t.is_computed)
COMPARED = Kind("an element type that is computed in, or string", lambda t: not t.is_narrow)
INTEGER = Kind("an integer element type", lambda t: not t.is_float and t.is_computed and t.dtype != "bool")
NUMBER = Kind("a numeric element type", lambda t: t.is_computed and t.dtype != "bool")
BITS = Kind("an integer or bool element type", lambda t: not t.is_float and t.is_computed)
BOOL = Kind("element type bool (i1)", lambda t: t.dtype == "bool")


def check_conversion(source: str, target: str) -> None:
    """Raises RelayError for dtypes between which no operator converts: what strings say, packed functions find out."""
    check(source == target or "string" not in (source, target), "dtype", "numbers, or strings that stay strings", f"{source} to {target}")


def check_factors(a: TensorType, b: TensorType, names: tuple[str, str], out_dtype: str) -> None:
    """Raises RelayError for operands of a product that have not one numeric element type; integers of 8 bits may differ in their signs,
    where the result has more bits."""
    both = f"the dtype of {names[0]}, {a.dtype}"
    if {a.dtype, b.dtype} == {"int8", "uint8"}:
        check(out_dtype not in ("", "int8", "uint8"), "out_dtype", f"more bits than {names[0]} and {names[1]}, of unlike signs", out_dtype)
    else:
        check(a.dtype == b.dtype, names[1], both, b.dtype)
    NUMBER.require(names[0], a)
    NUMBER.require("out_dtype", TensorType((), out_dtype or a.dtype))


def same_dtype(**operands: TensorType) -> str:
    """The element type that all operands share. Raises RelayError naming the first that differs."""
    (first_name, first), *rest = operands.items()
    for name, type_ in rest:
        check(type_.dtype == first.dtype, name, f"the element type of {first_name}, {first.dtype}", type_)
    return first.dtype
