"""Functions of floats that Relay spells out."""

import math
from collections.abc import Sequence

from relayc.frontend.converter import Tensor, emit
from relayc.frontend.steps import add, binary, divide, like, multiply, subtract

BITS = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}
"""The whole numbers as wide as floats."""


def expm1(x: Tensor) -> Tensor:
    """2 exp(x / 2) sinh(x / 2), which does not cancel near 0."""
    half = multiply(x, 0.5)
    small = multiply(multiply(emit("exp", half), emit("sinh", half)), 2.0)
    return emit("where", binary("less", emit("abs", x), 1.0), small, subtract(emit("exp", x), 1.0))


def log1p(x: Tensor) -> Tensor:
    """log(1 + x) with what 1 + x rounds off made good."""
    whole = add(x, 1.0)
    corrected = divide(multiply(emit("log", whole), x), subtract(whole, 1.0))
    found = emit("where", binary("equal", whole, 1.0), x, corrected)
    return emit("where", binary("less", x, 1e6), found, emit("log", whole))


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """c0 + c1 x + c2 x**2 + ..., by Horner's rule; of degree 1 or more."""
    first, *middle, last = coefficients
    found = multiply(x, last)
    for c in reversed(middle):
        found = multiply(add(found, c), x)
    return add(found, first)


def cubic_kernel(distance: Tensor, a: float, is_near: bool) -> Tensor:
    """Keys' cubic convolution kernel with the coefficient `a`, at distances up to 1 (`is_near`) or from 1 to 2."""
    return polynomial(distance, (1.0, 0.0, -(a + 3), a + 2) if is_near else (-4 * a, 8 * a, -5 * a, a))


def signbit(x: Tensor) -> Tensor:
    """Whether a float is negative, -0.0 and NaN by their sign bit."""
    return binary("less", emit("reinterpret", x, dtype=BITS[x.dtype]), 0)


def with_sign(value: float, sign: Tensor) -> Tensor:
    """A number with the sign of each element."""
    return emit("where", signbit(sign), like(-value, sign), like(value, sign))


def hypot(a: Tensor, b: Tensor) -> Tensor:
    """The root of the sum of squares, by the quotient of the smaller magnitude and the larger one: squares do not overflow."""
    a, b = emit("abs", a), emit("abs", b)
    large, small = emit("maximum", a, b), emit("minimum", a, b)
    ratio = divide(small, emit("where", binary("equal", large, 0.0), like(1, large), large))
    return multiply(large, emit("sqrt", add(multiply(ratio, ratio), 1.0)))


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of (x, y), tensors of one shape, by the signs of both."""
    turn = with_sign(math.pi, y)
    found = emit("atan", divide(y, x))
    found = emit("where", signbit(x), add(found, turn), found)
    at_zero = emit("where", signbit(x), turn, with_sign(0.0, y))
    upright = emit("where", binary("equal", y, 0.0), at_zero, with_sign(math.pi / 2, y))
    found = emit("where", binary("equal", x, 0.0), upright, found)
    both = emit("logical_and", emit("isinf", x), emit("isinf", y))
    return emit("where", both, emit("where", signbit(x), with_sign(0.75 * math.pi, y), with_sign(0.25 * math.pi, y)), found)
