"""Python's operators on expressions, for every language whose expressions compute the Relay operators of these names."""

from collections.abc import Callable
from typing import Any

from relayc.operators import Arithmetic, E, forward, reflected


class Operators(Arithmetic[E]):
    """Python's operators, each as a call of one of five methods with the name of the Relay operator."""

    dtype: str
    __array_ufunc__ = None  # makes numpy scalars defer to the expression
    __hash__ = object.__hash__

    def _bitwise(self, name: str, a: Any, b: Any) -> E:
        """An operation on the bits of integers, or on conditions."""
        raise NotImplementedError

    def _compare(self, name: str, a: Any, b: Any) -> E:
        """A comparison: "eq", "ne", "lt", "le", "gt" or "ge"."""
        raise NotImplementedError

    def _unary(self, name: str, value: Any) -> E:
        """An operation on this expression: "negative", "abs" or "bitwise_not"; the last one also on conditions."""
        raise NotImplementedError

    def astype(self, dtype: str) -> E:
        """The value in another dtype, as `cast`."""
        raise NotImplementedError

    __floordiv__: Callable[[Any, Any], E] = forward("floor_divide")
    __rfloordiv__: Callable[[Any, Any], E] = reflected("floor_divide")
    __mod__: Callable[[Any, Any], E] = forward("floor_mod")
    __rmod__: Callable[[Any, Any], E] = reflected("floor_mod")
    __pow__: Callable[[Any, Any], E] = forward("power")
    __rpow__: Callable[[Any, Any], E] = reflected("power")
    __and__: Callable[[Any, Any], E] = forward("bitwise_and", "_bitwise")
    __rand__: Callable[[Any, Any], E] = reflected("bitwise_and", "_bitwise")
    __or__: Callable[[Any, Any], E] = forward("bitwise_or", "_bitwise")
    __ror__: Callable[[Any, Any], E] = reflected("bitwise_or", "_bitwise")
    __xor__: Callable[[Any, Any], E] = forward("bitwise_xor", "_bitwise")
    __rxor__: Callable[[Any, Any], E] = reflected("bitwise_xor", "_bitwise")
    __lshift__: Callable[[Any, Any], E] = forward("left_shift", "_bitwise")
    __rlshift__: Callable[[Any, Any], E] = reflected("left_shift", "_bitwise")
    __rshift__: Callable[[Any, Any], E] = forward("right_shift", "_bitwise")
    __rrshift__: Callable[[Any, Any], E] = reflected("right_shift", "_bitwise")
    __neg__: Callable[[Any], E] = forward("negative", "_unary")
    __abs__: Callable[[Any], E] = forward("abs", "_unary")
    __invert__: Callable[[Any], E] = forward("bitwise_not", "_unary")
    __eq__: Callable[[Any, object], E] = forward("eq", "_compare")  # type: ignore[assignment] # a comparison is an expression
    __ne__: Callable[[Any, object], E] = forward("ne", "_compare")  # type: ignore[assignment] # a comparison is an expression
    __lt__: Callable[[Any, Any], E] = forward("lt", "_compare")
    __le__: Callable[[Any, Any], E] = forward("le", "_compare")
    __gt__: Callable[[Any, Any], E] = forward("gt", "_compare")
    __ge__: Callable[[Any, Any], E] = forward("ge", "_compare")

    def __pos__(self) -> E:
        return self  # type: ignore[return-value] # E is the class of the expression itself
