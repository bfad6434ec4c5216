"""Python's operators on tensors of Relay programs, however a program is written."""

from collections.abc import Callable
from typing import Any

from relayc.operators import Arithmetic, E, forward


class Operators(Arithmetic[E]):
    """Arithmetic and comparisons, each as an operator of the program by Relay's name."""

    __slots__ = ()
    __neg__: Callable[[Any], E] = forward("negative")
    __lt__: Callable[[Any, Any], E] = forward("less")
    __le__: Callable[[Any, Any], E] = forward("less_equal")
    __gt__: Callable[[Any, Any], E] = forward("greater")
    __ge__: Callable[[Any, Any], E] = forward("greater_equal")
