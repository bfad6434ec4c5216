"""Orthogonal polynomials, by the recurrences of the Digital Library of Mathematical Functions, 18.9.

The degree is data: the loop runs as often as the largest one says, and each element keeps the polynomial of its own degree.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from relayc.frontend.common.loops import counted
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.pytorch.operands import flat, operand, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.sizes import sizes
from relayc.frontend.steps import add, binary, broadcast_to, cast, divide, like, multiply, reshape, subtract

Step = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def _chebyshev(k: Tensor, x: Tensor, now: Tensor, before: Tensor) -> Tensor:
    return subtract(multiply(multiply(x, now), 2.0), before)


def _hermite(scale: float) -> Step:
    return lambda k, x, now, before: multiply(subtract(multiply(x, now), multiply(k, before)), scale)


def _laguerre(k: Tensor, x: Tensor, now: Tensor, before: Tensor) -> Tensor:
    total = subtract(multiply(subtract(add(multiply(k, 2.0), 1.0), x), now), multiply(k, before))
    return divide(total, add(k, 1.0))


def _legendre(k: Tensor, x: Tensor, now: Tensor, before: Tensor) -> Tensor:
    total = subtract(multiply(multiply(add(multiply(k, 2.0), 1.0), x), now), multiply(k, before))
    return divide(total, add(k, 1.0))


_FAMILIES: dict[str, tuple[float, float, Step]] = {
    "chebyshev_polynomial_t": (1, 0, _chebyshev),
    "chebyshev_polynomial_u": (2, 0, _chebyshev),
    "chebyshev_polynomial_v": (2, -1, _chebyshev),
    "chebyshev_polynomial_w": (2, 1, _chebyshev),
    "hermite_polynomial_h": (2, 0, _hermite(2.0)),
    "hermite_polynomial_he": (1, 0, _hermite(1.0)),
    "laguerre_polynomial_l": (-1, 1, _laguerre),
    "legendre_polynomial_p": (1, 0, _legendre),
}
"""Of each family the polynomial of degree 1, a x + b, and what follows from those of degrees k and k - 1."""


def _polynomial(slope: float, offset: float, following: Step, is_shifted: bool, x: Any, n: Any) -> Tensor:
    shape = node().sizes
    degree = flat(broadcast_to(cast(operand(n), "int64"), shape))
    given = flat(broadcast_to(operand(x, "float64"), shape))
    at = subtract(multiply(given, 2.0), 1.0) if is_shifted else given
    (largest,) = sizes(emit("maximum", emit("max", degree, axis=(0,)), like(0, degree)), "degree")

    def step(number: Tensor, states: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        now, before = states
        k = cast(number, "float64")
        first = add(multiply(at, slope), offset)
        after = where(binary("equal", number, 0), first, following(k, at, now, before))
        goes_on = emit("less", number, degree)
        return [where(goes_on, after, now), where(goes_on, now, before)], []

    (found, _), _ = counted(largest, [add(multiply(at, 0.0), 1.0), multiply(at, 0.0)], ["now", "before"], step, [])
    found = where(binary("less", degree, 0), like(0, found), found)
    return cast(reshape(found, shape), node().dtype)


for _name, _family in _FAMILIES.items():
    aten(f"special_{_name}")(partial(_polynomial, *_family, False))
    if _name.startswith("chebyshev"):
        aten(f"special_shifted_{_name}")(partial(_polynomial, *_family, True))
