"""The gamma function's relatives, in float64: by their series at large arguments, to which recurrences and reflections lead.

The series are those of the Digital Library of Mathematical Functions: 5.11.1 (lgamma), 5.11.2 (digamma), 25.11.5 (zeta of Hurwitz).
"""

from functools import reduce
from math import factorial, inf, log, nan, pi

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.pytorch.elementwise import in_float64
from relayc.frontend.pytorch.operands import operand, where
from relayc.frontend.pytorch.registry import aten, node
from relayc.frontend.steps import add, binary, cast, divide, like, multiply, subtract

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""Bernoulli's numbers B2, B4, ..."""
_FAR = 16
"""From this argument on the series with so many terms have the precision of float64."""


def _shifted(x: Tensor) -> list[Tensor]:
    """x, x + 1, ... before x + _FAR."""
    return [add(x, float(k)) if k else x for k in range(_FAR)]


@aten("lgamma", "special_gammaln")
def lgamma(self: Tensor) -> Tensor:
    def of_positive(x: Tensor) -> Tensor:
        near = binary("less", x, float(_FAR))
        a = where(near, add(x, float(_FAR)), x)
        before = where(near, reduce(multiply, _shifted(x)), like(1, x))
        series = [multiply(binary("power", a, 1.0 - 2 * j), b / (2 * j * (2 * j - 1))) for j, b in enumerate(_BERNOULLI, 1)]
        main = subtract(multiply(subtract(a, 0.5), emit("log", a)), subtract(a, log(2 * pi) / 2))
        found = emit("subtract", emit("add", main, reduce(add, series)), emit("log", before))
        return where(binary("equal", x, inf), x, found)

    def compute(x: Tensor) -> Tensor:
        below = binary("less", x, 0.5)
        there = of_positive(where(below, subtract(like(1, x), x), x))
        # The sine of what is left of a whole number: zero at the poles.
        sine = emit("abs", emit("sin", multiply(emit("subtract", x, emit("round", x)), pi)))
        found = where(below, emit("subtract", subtract(like(log(pi), x), emit("log", sine)), there), there)
        return where(binary("equal", x, -inf), like(inf, x), found)

    return in_float64(self, compute)


@aten("digamma", "special_digamma", "special_psi")
def digamma(self: Tensor) -> Tensor:
    def compute(x: Tensor) -> Tensor:
        below = binary("less", x, 0.0)
        y = where(below, subtract(like(1, x), x), x)
        a = add(y, float(_FAR))
        series = [multiply(binary("power", a, -2.0 * j), b / (2 * j)) for j, b in enumerate(_BERNOULLI, 1)]
        before = reduce(add, [divide(like(1, t), t) for t in _shifted(y)])
        main = emit("subtract", emit("log", a), divide(like(0.5, a), a))
        there = emit("subtract", emit("subtract", main, reduce(add, series)), before)
        left = emit("subtract", x, emit("round", x))
        reflected = emit("subtract", there, divide(like(pi, x), emit("tan", multiply(left, pi))))
        return where(below, where(binary("equal", left, 0.0), like(nan, x), reflected), there)

    return in_float64(self, compute)


def _zeta(s: Tensor, x: Tensor) -> Tensor:
    """The sum of (x + k) ** -s over all k, for x above -_FAR / 2."""
    a, minus = add(x, float(_FAR)), emit("negative", s)
    terms = [emit("power", t, minus) for t in _shifted(x)]
    terms += [emit("divide", emit("power", a, add(minus, 1.0)), subtract(s, 1.0)), multiply(emit("power", a, minus), 0.5)]
    rising = s
    for j, b in enumerate(_BERNOULLI, 1):
        terms.append(multiply(emit("multiply", rising, emit("power", a, add(minus, 1.0 - 2 * j))), b / factorial(2 * j)))
        rising = emit("multiply", rising, emit("multiply", add(s, 2.0 * j - 1), add(s, 2.0 * j)))
    return reduce(add, terms)


@aten("polygamma", "special_polygamma")
def polygamma(n: int, self: Tensor) -> Tensor:
    if n == 0:
        return digamma(self)
    return in_float64(self, lambda x: multiply(_zeta(like(n + 1, x), x), float((-1) ** (n + 1) * factorial(n))))


@aten("special_zeta")
def zeta(self: Tensor, other: Tensor) -> Tensor:
    """Infinite at s = 1 and at the poles, undefined at s below 1 and at negative x where the power is."""
    s, x = operand(self, "float64"), operand(other, "float64")
    found = where(binary("equal", s, 1.0), like(inf, s), _zeta(s, x))
    found = where(binary("less", s, 1.0), like(nan, s), found)
    return cast(found, node().dtype)
