"""Python's operators on expressions, for every language whose expressions compute what Relay's operators of these names compute."""

from typing import Any, Generic, TypeVar

E = TypeVar("E")


class Operators(Generic[E]):
    """Python's operators, each as a call of one of five methods with the name of the Relay operator. `E` is the class of the results."""

    dtype: str
    __array_ufunc__ = None  # numpy's scalars leave the operators to the expression
    __hash__ = object.__hash__

    def _binary(self, name: str, a: Any, b: Any) -> E:
        """An arithmetic operation."""
        raise NotImplementedError

    def _bitwise(self, name: str, a: Any, b: Any) -> E:
        """An operation on bits of integers, or on conditions."""
        raise NotImplementedError

    def _compare(self, name: str, a: Any, b: Any) -> E:
        """A comparison: "eq", "ne", "lt", "le", "gt" or "ge"."""
        raise NotImplementedError

    def _unary(self, name: str) -> E:
        """An operation on this expression: "negative", "abs" or "bitwise_not"; the last one of conditions too."""
        raise NotImplementedError

    def astype(self, dtype: str) -> E:
        """The value in another dtype, as `cast`."""
        raise NotImplementedError

    def __add__(self, other: Any) -> E:
        return self._binary("add", self, other)

    def __radd__(self, other: Any) -> E:
        return self._binary("add", other, self)

    def __sub__(self, other: Any) -> E:
        return self._binary("subtract", self, other)

    def __rsub__(self, other: Any) -> E:
        return self._binary("subtract", other, self)

    def __mul__(self, other: Any) -> E:
        return self._binary("multiply", self, other)

    def __rmul__(self, other: Any) -> E:
        return self._binary("multiply", other, self)

    def __truediv__(self, other: Any) -> E:
        return self._binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> E:
        return self._binary("divide", other, self)

    def __floordiv__(self, other: Any) -> E:
        return self._binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> E:
        return self._binary("floor_divide", other, self)

    def __mod__(self, other: Any) -> E:
        return self._binary("floor_mod", self, other)

    def __rmod__(self, other: Any) -> E:
        return self._binary("floor_mod", other, self)

    def __pow__(self, other: Any) -> E:
        return self._binary("power", self, other)

    def __rpow__(self, other: Any) -> E:
        return self._binary("power", other, self)

    def __and__(self, other: Any) -> E:
        return self._bitwise("bitwise_and", self, other)

    def __rand__(self, other: Any) -> E:
        return self._bitwise("bitwise_and", other, self)

    def __or__(self, other: Any) -> E:
        return self._bitwise("bitwise_or", self, other)

    def __ror__(self, other: Any) -> E:
        return self._bitwise("bitwise_or", other, self)

    def __xor__(self, other: Any) -> E:
        return self._bitwise("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> E:
        return self._bitwise("bitwise_xor", other, self)

    def __lshift__(self, other: Any) -> E:
        return self._bitwise("left_shift", self, other)

    def __rlshift__(self, other: Any) -> E:
        return self._bitwise("left_shift", other, self)

    def __rshift__(self, other: Any) -> E:
        return self._bitwise("right_shift", self, other)

    def __rrshift__(self, other: Any) -> E:
        return self._bitwise("right_shift", other, self)

    def __neg__(self) -> E:
        return self._unary("negative")

    def __pos__(self) -> E:
        return self  # type: ignore[return-value] # E is the class of the expression itself

    def __abs__(self) -> E:
        return self._unary("abs")

    def __invert__(self) -> E:
        return self._unary("bitwise_not")

    def __eq__(self, other: object) -> E:  # type: ignore[override] # a comparison is an expression
        return self._compare("eq", self, other)

    def __ne__(self, other: object) -> E:  # type: ignore[override] # a comparison is an expression
        return self._compare("ne", self, other)

    def __lt__(self, other: Any) -> E:
        return self._compare("lt", self, other)

    def __le__(self, other: Any) -> E:
        return self._compare("le", self, other)

    def __gt__(self, other: Any) -> E:
        return self._compare("gt", self, other)

    def __ge__(self, other: Any) -> E:
        return self._compare("ge", self, other)
