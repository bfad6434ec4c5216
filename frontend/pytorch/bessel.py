"""Bessel functions of the orders 0 and 1, in float64: by power series near 0, and by asymptotic series far from it.

The series are those of the Digital Library of Mathematical Functions: 10.2.2, 10.8.1 and 10.17.3 (J, Y), 10.25.2, 10.31.1 and 10.40.1
(I, K). Those of alternating signs, and the asymptotic ones, hold to 1e-7 of the result or better: the precision of float32.
"""

from collections.abc import Callable
from functools import partial
from math import factorial, inf, nan, pi, sqrt

import numpy as np

from relayc.frontend.common.functions import polynomial
from relayc.frontend.converter import Tensor, emit
from relayc.frontend.pytorch.elementwise import in_float64
from relayc.frontend.pytorch.operands import where
from relayc.frontend.pytorch.registry import aten
from relayc.frontend.steps import binary, divide, like, multiply, subtract

_TERMS = 60


def _hankel(order: int, count: int) -> list[float]:
    """The coefficients a_k of the asymptotic series in 1 / x."""
    found = [1.0]
    for k in range(1, count):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


def _power_series(x: Tensor, order: int, sign: int) -> Tensor:
    """I (sign 1) or J (sign -1)."""
    square = multiply(multiply(x, x), 0.25)
    found = polynomial(square, [sign**k / (factorial(k) * factorial(k + order)) for k in range(_TERMS)])
    return multiply(multiply(found, x), 0.5) if order else found


def _logarithmic(x: Tensor, order: int, sign: int) -> Tensor:
    """What the second solution has beside the first one's logarithm: the sum over psi(k + 1) + psi(k + order + 1), halved."""
    psi = np.concatenate([[0.0], np.cumsum(1 / np.arange(1.0, _TERMS + 2))]) - np.euler_gamma
    square = multiply(multiply(x, x), 0.25)
    weights = [sign**k * (psi[k] + psi[k + order]) / 2 / (factorial(k) * factorial(k + order)) for k in range(_TERMS)]
    found = polynomial(square, weights)
    return multiply(multiply(found, x), 0.5) if order else found


def _i(x: Tensor, order: int, scaled: bool) -> Tensor:
    """Of magnitudes; the odd one gets the sign of x."""
    size = emit("abs", x)
    near, far = emit("minimum", size, like(30.0, x)), emit("maximum", size, like(30.0, x))
    series = _power_series(near, order, 1)
    signs = [c * (-1) ** k for k, c in enumerate(_hankel(order, 20))]
    tail = divide(polynomial(divide(like(1, x), far), signs), emit("sqrt", multiply(far, 2 * pi)))
    decay = emit("exp", emit("negative", size))
    series = multiply(series, decay) if scaled else series
    # In two factors, the product of which is finite longer than exp(x).
    half = emit("exp", multiply(far, 0.5))
    tail = tail if scaled else multiply(multiply(tail, half), half)
    found = where(binary("less", size, 30.0), series, where(binary("equal", size, inf), like(0 if scaled else inf, x), tail))
    return where(binary("less", x, 0.0), emit("negative", found), found) if order else found


def _k(x: Tensor, order: int, scaled: bool) -> Tensor:
    near, far = emit("minimum", x, like(8.0, x)), emit("maximum", x, like(8.0, x))
    sign = (-1) ** order
    series = multiply(multiply(emit("log", multiply(near, 0.5)), _power_series(near, order, 1)), -float(sign))
    series = emit("add", series, multiply(_logarithmic(near, order, 1), float(sign)))
    series = emit("add", series, divide(like(1, x), near)) if order else series
    tail = multiply(polynomial(divide(like(1, x), far), _hankel(order, 16)), sqrt(pi / 2))
    tail = divide(tail, emit("sqrt", far))
    series = multiply(series, emit("exp", near)) if scaled else series
    tail = tail if scaled else multiply(tail, emit("exp", emit("negative", far)))
    return _of_positive(x, where(binary("less", x, 8.0), series, tail), inf)


def _of_positive(x: Tensor, found: Tensor, at_zero: float) -> Tensor:
    return where(binary("equal", x, 0.0), like(at_zero, x), where(binary("less", x, 0.0), like(nan, x), found))


def _waves(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """J and Y of positive x far from 0."""
    inverse = divide(like(1, x), x)
    a, square = _hankel(order, 24), multiply(inverse, inverse)
    p = polynomial(square, [(-1) ** k * a[2 * k] for k in range(12)])
    q = multiply(polynomial(square, [(-1) ** k * a[2 * k + 1] for k in range(12)]), inverse)
    angle = subtract(x, (order / 2 + 0.25) * pi)
    cosine, sine = emit("cos", angle), emit("sin", angle)
    size = emit("sqrt", divide(like(2 / pi, x), x))
    j = subtract(multiply(p, cosine), multiply(q, sine))
    y = emit("add", multiply(p, sine), multiply(q, cosine))
    return multiply(size, j), multiply(size, y)


def _j(x: Tensor, order: int) -> Tensor:
    size = emit("abs", x)
    series = _power_series(emit("minimum", size, like(14.0, x)), order, -1)
    tail = where(binary("equal", size, inf), like(0, x), _waves(emit("maximum", size, like(14.0, x)), order)[0])
    found = where(binary("less", size, 14.0), series, tail)
    return where(binary("less", x, 0.0), emit("negative", found), found) if order else found


def _y(x: Tensor, order: int) -> Tensor:
    near = emit("minimum", x, like(14.0, x))
    logarithm = multiply(emit("log", multiply(near, 0.5)), _power_series(near, order, -1))
    series = multiply(subtract(logarithm, _logarithmic(near, order, -1)), 2 / pi)
    series = subtract(series, divide(like(2 / pi, x), near)) if order else series
    tail = where(binary("equal", x, inf), like(0, x), _waves(emit("maximum", x, like(14.0, x)), order)[1])
    return _of_positive(x, where(binary("less", x, 14.0), series, tail), -inf)


_FUNCTIONS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "i0 special_i0 special_modified_bessel_i0 special_i1 special_modified_bessel_i1": partial(_i, scaled=False),
    "special_i0e special_i1e": partial(_i, scaled=True),
    "special_modified_bessel_k0 special_modified_bessel_k1": partial(_k, scaled=False),
    "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1": partial(_k, scaled=True),
    "special_bessel_j0 special_bessel_j1": _j,
    "special_bessel_y0 special_bessel_y1": _y,
}


def _of_order(function: Callable[[Tensor, int], Tensor], order: int, self: Tensor) -> Tensor:
    return in_float64(self, lambda x: function(x, order))


for _names, _function in _FUNCTIONS.items():
    for _name in _names.split():
        aten(_name, x="self")(partial(_of_order, _function, int(_name.removesuffix("e")[-1])))


@aten("special_spherical_bessel_j0")
def spherical_j0(x: Tensor) -> Tensor:
    def compute(wide: Tensor) -> Tensor:
        found = where(binary("equal", wide, 0.0), like(1, wide), divide(emit("sin", wide), wide))
        return where(emit("isinf", wide), like(0, wide), found)

    return in_float64(x, compute)
