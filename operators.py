"""Python's operators of classes whose objects stand for what is computed later: each calls one method with the name of an operation."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

E = TypeVar("E")


def forward(name: str, method: str = "_apply") -> Any:
    """An operator of a class: `method(name, self, *others)`."""

    def operator(self: Any, *others: Any) -> Any:
        return getattr(self, method)(name, self, *others)

    return operator


def reflected(name: str, method: str = "_apply") -> Any:
    """An operator whose other operand is on the left: `method(name, other, self)`."""

    def operator(self: Any, other: Any) -> Any:
        return getattr(self, method)(name, other, self)

    return operator


class Arithmetic(Generic[E]):
    """The operators of arithmetic. `E` is the class of the results."""

    __slots__ = ()

    @abstractmethod
    def _apply(self, name: str, *operands: Any) -> E:
        """The operation of a name, of operands of which one is this object."""

    __add__: Callable[[Any, Any], E] = forward("add")
    __radd__: Callable[[Any, Any], E] = reflected("add")
    __sub__: Callable[[Any, Any], E] = forward("subtract")
    __rsub__: Callable[[Any, Any], E] = reflected("subtract")
    __mul__: Callable[[Any, Any], E] = forward("multiply")
    __rmul__: Callable[[Any, Any], E] = reflected("multiply")
    __truediv__: Callable[[Any, Any], E] = forward("divide")
    __rtruediv__: Callable[[Any, Any], E] = reflected("divide")
