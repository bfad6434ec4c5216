"""Arithmetic on the elements of tensors of sizes: exact, or not done here.

A comparison is known where it has one answer for all sizes. Elements are those of relayc.frontend.sizes; functions raise Inexact, or
Undecided, where there is no expression.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from relayc.frontend.converter import may_equal
from relayc.frontend.sizes import Inexact, Ratio, objects
from relayc.symbolic import Size, maximum, minimum, proves

Elements = np.ndarray
"""Of objects."""


def each(compute: Callable[..., Any], *arrays: Elements) -> Elements:
    """Element by element, under broadcasting."""
    broadcast = np.broadcast_arrays(*arrays)
    return objects(broadcast[0].shape, [compute(*e) for e in zip(*(a.reshape(-1) for a in broadcast), strict=True)])


def quotient(a: Any, b: Any) -> Any:
    """a / b, of integers towards zero."""
    if isinstance(a, Ratio):
        return a / b
    if b == 0 or not proves(lambda: b >= 0):
        raise Inexact
    # Down what is positive, up what is negative. One of the terms is 0 where the sign is known.
    return maximum(a, 0) // b - maximum(-a, 0) // b


def remainder(fmod: bool) -> Callable[[Any, Any], Any]:
    """The remainder with the sign of the divisor, or of the dividend (`fmod`)."""

    def compute(a: Any, b: Any) -> Any:
        if isinstance(a, Ratio) or b == 0 or not proves(lambda: b >= 0) or (fmod and not proves(lambda: a >= 0)):
            raise Inexact
        return a % b

    return compute


def pick(choose: Callable[..., Size]) -> Callable[[Any, Any], Any]:
    """The larger or the smaller one."""

    def compute(a: Any, b: Any) -> Any:
        if not isinstance(a, Ratio):
            return choose(a, b)
        if a.den != b.den:
            raise Inexact
        return Ratio.of(choose(a.num, b.num), a.den)

    return compute


def magnitude(a: Any) -> Any:
    """|a|."""
    num = a.num if isinstance(a, Ratio) else a
    if proves(lambda: num >= 0):
        return a
    return -a if proves(lambda: num <= 0) else maximum(a, -a) if not isinstance(a, Ratio) else inexact()


def inexact() -> Any:
    """Raises Inexact, in an expression."""
    raise Inexact


def crossed(a: Any, b: Any) -> tuple[Size, Size]:
    """Two numbers as sizes that compare as they do."""
    return (a.num * b.den, b.num * a.den) if isinstance(a, Ratio) else (a, b)


def same(a: Any, b: Any) -> bool:
    """Whether two elements are equal for all sizes; Inexact where some sizes make them equal."""
    x, y = crossed(a, b)
    if x == y:
        return True
    if may_equal(x, y):
        raise Inexact
    return False


def compared(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A comparison of two elements, as a bool."""
    return lambda a, b: bool(compare(*crossed(a, b)))


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "abs": magnitude,
    "add": lambda a, b: a + b,
    "divide": quotient,
    "maximum": pick(maximum),
    "minimum": pick(minimum),
    "multiply": lambda a, b: a * b,
    "negative": lambda a: -a,
    "subtract": lambda a, b: a - b,
    "equal": same,
    "not_equal": lambda a, b: not same(a, b),
    "less": compared(lambda a, b: a < b),
    "less_equal": compared(lambda a, b: a <= b),
    "greater": compared(lambda a, b: a > b),
    "greater_equal": compared(lambda a, b: a >= b),
}
"""Of elements, by Relay's names of the operators."""


def converted(elements: Elements, own: str, target: str) -> tuple[Elements, str]:
    """Elements in another dtype, and it."""
    floats, integers = ("float32", "float64"), ("int64", "int32")

    def convert(e: Any) -> Any:
        if target in floats:
            return e if isinstance(e, Ratio) else Ratio(int(e) if isinstance(e, bool) else e)
        if target in integers:
            if isinstance(e, Ratio):
                return e.num if e.den == 1 else e.floor().num if proves(lambda: e.num >= 0) else inexact()
            return e
        if target == "bool":
            return not same(e, Ratio(0) if isinstance(e, Ratio) else 0)
        raise Inexact

    if own not in (*floats, *integers, "bool"):
        raise Inexact
    return each(convert, elements), target
