"""Python's operators on tensors of Relay programs, however a program is written."""

from typing import Any, Generic, TypeVar

E = TypeVar("E")


class Operators(Generic[E]):
    """Arithmetic and comparisons, each as an operator of the program by Relay's name. `E` is the class of the results."""

    __slots__ = ()

    def _apply(self, name: str, *operands: Any) -> E:
        """The operator on operands, of which one is this tensor."""
        raise NotImplementedError

    def __neg__(self) -> E:
        return self._apply("negative", self)

    def __add__(self, other: Any) -> E:
        return self._apply("add", self, other)

    def __radd__(self, other: Any) -> E:
        return self._apply("add", other, self)

    def __sub__(self, other: Any) -> E:
        return self._apply("subtract", self, other)

    def __rsub__(self, other: Any) -> E:
        return self._apply("subtract", other, self)

    def __mul__(self, other: Any) -> E:
        return self._apply("multiply", self, other)

    def __rmul__(self, other: Any) -> E:
        return self._apply("multiply", other, self)

    def __truediv__(self, other: Any) -> E:
        return self._apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> E:
        return self._apply("divide", other, self)

    def __lt__(self, other: Any) -> E:
        return self._apply("less", self, other)

    def __le__(self, other: Any) -> E:
        return self._apply("less_equal", self, other)

    def __gt__(self, other: Any) -> E:
        return self._apply("greater", self, other)

    def __ge__(self, other: Any) -> E:
        return self._apply("greater_equal", self, other)
