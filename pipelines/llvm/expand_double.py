"""Mathematical functions of f64 that `expand_math` leaves to the C library, as arithmetic: for devices without one.

Largest errors, measured over dense samples of all magnitudes (test/python/llvm/test_expand_double.py), in units of the last place:

| sin, cos (below 2**45) | 2 | tan (below 2**45) | 3 | asin, acos, atan | 2 |
|---|---|---|---|---|---|
| sinh, cosh, asinh, acosh, atanh | 3 | erf | 2 | powf | 2 |

Infinities and NaN are handled as in IEEE 754 and C; results below twice the smallest normal number may be 0.
"""

import math as pymath
from collections.abc import Callable

from relayc.dialects.mlir import arith
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.number import INF, NAN, Bits, Number, polynomial, select
from relayc.pipelines.llvm import expand_math

Function = Callable[..., Number | None]


def _fma(a: Number, b: Number, c: Number) -> Number:
    """a * b + c, rounded once."""
    return Number(emit.multiply_add(a.value, b.value, c.value))


def _product(a: Number, b: Number) -> Number:
    """a * b, rounded: never contracted into a fused operation, so that `_fma(a, b, -product)` is the rounding error."""
    return Number(arith.mulf(a.value, b.value))


def _negative(x: Number) -> Number:
    return Number(arith.negf(x.value))


# ---- trigonometry -----------------------------------------------------------------------------------------------------------------

_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""pi/2 as a sum of three numbers of 53 bits each. The second one, a quarter of the last place of 1, changes no result above 1."""
_ROUNDING = 1.5 * 2.0**52
"""Adding this to a number rounds it to an integer in the low bits."""


def _taylor(first: int) -> list[float]:
    """Eight coefficients, of r**first, r**(first + 2), ..., of sine (odd) or cosine (even): omitted terms are below 2**-57."""
    return [(-1) ** (n // 2) / pymath.factorial(n) for n in range(first, first + 16, 2)]


_SIN, _COS = _taylor(3), _taylor(4)


def _quadrant(x: Number) -> tuple[Number, Number, Bits]:
    """sin(r), cos(r) and the integer q with x = q * pi/2 + r, |r| <= pi/4."""
    shifted = _product(x, x.of(2 / pymath.pi)) + _ROUNDING
    n = shifted - _ROUNDING
    r = x
    for part in _HALF_PI:
        r = _fma(n, r.of(-part), r)
    # Beyond the range of the reduction r would grow without bound.
    r = r.at_least(-0.8).at_most(0.8)
    square = r * r
    sine = _fma(polynomial(square, _SIN) * square, r, r)
    # The rounding error of 1 - square / 2 is added to the smaller terms.
    half = square * 0.5
    head = 1.0 - half
    cosine = head + (((1.0 - head) - half) + polynomial(square, _COS) * (square * square))
    return sine, cosine, shifted.bits()


def _finite(x: Number, result: Number) -> Number:
    """`result` for finite x, otherwise NaN."""
    return select(x.abs().compare("olt", INF), result, NAN)


def sin(x: Number) -> Number:
    sine, cosine, quadrant = _quadrant(x)
    # For 0 and the smallest numbers the sine is the number, with its sign.
    return select(x.abs().compare("olt", 2.0**-27), x, _finite(x, expand_math.turn(sine, cosine, quadrant)))


def cos(x: Number) -> Number:
    sine, cosine, quadrant = _quadrant(x)
    return _finite(x, expand_math.turn(sine, cosine, quadrant + 1))


def tan(x: Number) -> Number:
    sine, cosine, quadrant = _quadrant(x)
    odd = (quadrant & 1).is_nonzero()
    result = select(odd, cosine, sine) / select(odd, _negative(sine), cosine)
    return select(x.abs().compare("olt", 2.0**-27), x, _finite(x, result))


# ---- inverse trigonometry ---------------------------------------------------------------------------------------------------------

# (atan(x) - x) / x**3 for |x| <= tan(pi/8) and (asin(x) - x) / x**3 for |x| <= 1/2, in x**2
_ATAN = (
    -0.3333333333333333,
    0.19999999999999993,
    -0.14285714285711587,
    0.11111111110762285,
    -0.09090909067432656,
    0.07692306749955377,
    -0.06666642312237046,
    0.05881929281232084,
    -0.05258078606557387,
    0.04719620191427087,
    -0.04105304123746831,
    0.03065492316979994,
    -0.013936852668898339,
)
_ASIN = (
    0.16666666666666669,
    0.0749999999999834,
    0.04464285714653523,
    0.03038194412500875,
    0.022372173467043486,
    0.017352380709839098,
    0.01397138708310213,
    0.011477517005507167,
    0.01033337215296726,
    0.005413184483715509,
    0.01751883397953867,
    -0.015032162599250314,
    0.028878362746452394,
)
_EIGHTH_TURN = 0.41421356237309503
"""tan(pi/8)"""


def _odd(x: Number, tail: tuple[float, ...]) -> Number:
    """x + x**3 * tail(x**2)"""
    square = x * x
    return _fma(polynomial(square, tail) * square, x, x)


def atan(x: Number) -> Number:
    a = x.abs()
    large = a.compare("ogt", 1.0)
    a = select(large, 1.0 / a, a)
    steep = a.compare("ogt", _EIGHTH_TURN)
    part = _odd(select(steep, (a - 1.0) / (a + 1.0), a), _ATAN)
    quarter, rest = _HALF_PI[0] / 2, _HALF_PI[1] / 2
    part = select(steep, (part + rest) + quarter, part)
    return select(large, (_HALF_PI[0] - part) + _HALF_PI[1], part).with_sign_of(x)


def _asin_parts(x: Number) -> tuple[object, Number]:
    """Whether |x| > 1/2, and the arc sine of |x|, or in that case of sqrt((1 - |x|) / 2), which is half the arc cosine of |x|."""
    large = x.abs().compare("ogt", 0.5)
    return large, _odd(select(large, (0.5 - x.abs() * 0.5).sqrt(), x.abs()), _ASIN)


def asin(x: Number) -> Number:
    large, part = _asin_parts(x)
    return select(large, (_HALF_PI[0] - part * 2.0) + _HALF_PI[1], part).with_sign_of(x)


def acos(x: Number) -> Number:
    large, part = _asin_parts(x)
    of_large = select(x.compare("olt", 0.0), 2 * _HALF_PI[0] - part * 2.0, part * 2.0)
    return select(large, of_large, _HALF_PI[0] - part.with_sign_of(x))


# ---- hyperbolic functions ---------------------------------------------------------------------------------------------------------

_LARGE = 40.0
"""From here on the smaller of e**x and e**-x is negligible."""
_HUGE = 2.0**28
"""From here on a square plus one rounds to the square."""


def _half_exp(a: Number) -> Number:
    """e**a / 2, also if e**a overflows."""
    root = expand_math.exp(a * 0.5)
    return root * 0.5 * root


def sinh(x: Number) -> Number:
    a = x.abs()
    e = expand_math.expm1(a.at_most(_LARGE))
    return select(a.compare("ogt", _LARGE), _half_exp(a), (e + e / (e + 1.0)) * 0.5).with_sign_of(x)


def cosh(x: Number) -> Number:
    a = x.abs()
    e = expand_math.exp(a.at_most(_LARGE))
    return select(a.compare("ogt", _LARGE), _half_exp(a), (e + 1.0 / e) * 0.5)


def asinh(x: Number) -> Number:
    a = x.abs()
    b = a.at_most(_HUGE)
    small = expand_math.log1p(b + b * b / ((b * b + 1.0).sqrt() + 1.0))
    result = select(a.compare("ogt", _HUGE), expand_math.log(a) + pymath.log(2), small)
    return select(a.compare("olt", 2.0**-28), x, result.with_sign_of(x))


def acosh(x: Number) -> Number:
    t = x.at_most(_HUGE) - 1.0
    small = expand_math.log1p(t + (t * (t + 2.0)).sqrt())
    result = select(x.compare("ogt", _HUGE), expand_math.log(x) + pymath.log(2), small)
    return select(x.compare("oge", 1.0), result, NAN)


def atanh(x: Number) -> Number:
    a = x.abs()
    result = (expand_math.log1p(a * 2.0 / (1.0 - a)) * 0.5).with_sign_of(x)
    return select(a.compare("olt", 2.0**-28), x, result)


# ---- the error function -----------------------------------------------------------------------------------------------------------

# erf(x) / x in x**2 for |x| <= 1, and e**(x**2) * erfc(x) in (x - c) / (x + c) for 1 <= x <= 6
_ERF = (
    1.1283791670955126,
    -0.37612638903183754,
    0.1128379167095512,
    -0.026866170645129854,
    0.005223977625423455,
    -0.0008548327021945428,
    0.00012055332903350668,
    -1.4925647581008593e-05,
    1.6462045711013026e-06,
    -1.6364645854816389e-07,
    1.479243542696247e-08,
    -1.2164764337224506e-09,
    8.709755232851789e-11,
    -4.2320376764874594e-12,
)
_ERFC_CENTRE = 2.45
_ERFC = (
    0.2145870922410938,
    -0.37682183405934966,
    0.25166813276681993,
    -0.12148868975155663,
    0.036344897093040535,
    -0.0022858446633387676,
    -0.0028557759135350667,
    0.0006875688311381083,
    0.00029437955159488353,
    -0.00010354563225928299,
    -4.6593444606017346e-05,
    1.3465418043872159e-05,
    9.56783112623672e-06,
    -9.811295286864679e-07,
    -2.0120482854209535e-06,
    -2.4799196177542076e-07,
    3.281412155081473e-07,
    1.2245682201153933e-07,
)


def erf(x: Number) -> Number:
    a = x.abs().at_most(6.0)
    inner = x * polynomial(x * x, _ERF)
    u = (a - _ERFC_CENTRE) / (a + _ERFC_CENTRE)
    outer = 1.0 - expand_math.exp(_negative(a * a)) * polynomial(u, _ERFC)
    return select(x.abs().compare("olt", 1.0), inner, outer.with_sign_of(x))


# ---- powers -----------------------------------------------------------------------------------------------------------------------

# (log((1 + s) / (1 - s)) / s - 2 - 2/3 s**2) / s**4 in s**2, for |s| <= 1/5: omitted terms are below 2**-57
_LOG_TAIL = tuple(2 / n for n in range(5, 27, 2))
_TWO_THIRDS, _TWO_THIRDS_REST = 2 / 3, 3.700743415417188e-17
_LOG2E, _LOG2E_REST = 1.4426950408889634, 2.0355273740931033e-17
_EXPONENT_LIMIT = 1100.0


def _log2_in_two(a: Number) -> tuple[Number, Number]:
    """log2(a) as a sum of two numbers, for positive finite a, with relative error 2**-64."""
    exponent, f = expand_math.split(a)
    d = f + 2.0
    d_rest = f - (d - 2.0)
    s = f / d
    s_rest = _fma(d_rest, _negative(s), _fma(_negative(s), d, f)) / d
    z = _product(s, s)
    z_rest = _fma(s, s, _negative(z)) + s * s_rest * 2.0
    # w = z * (2/3 + z * tail) in two numbers, so that log(1 + f) = s * (2 + w)
    tail = _product(z, polynomial(z, _LOG_TAIL))
    inner = tail + _TWO_THIRDS
    inner_rest = ((_TWO_THIRDS - inner) + tail) + _TWO_THIRDS_REST
    w = _product(z, inner)
    w_rest = _fma(z, inner, _negative(w)) + (z * inner_rest + z_rest * inner)
    v = _product(s, w)
    v_rest = _fma(s, w, _negative(v)) + (s * w_rest + s_rest * w)
    double = s * 2.0
    log = double + v
    log_rest = ((double - log) + v) + (s_rest * 2.0 + v_rest)
    m = _product(log, log.of(_LOG2E))
    m_rest = _fma(log, log.of(_LOG2E), _negative(m)) + (log * _LOG2E_REST + log_rest * _LOG2E)
    total = exponent + m
    # The exponent is larger than the rest, or 0.
    return total, ((exponent - total) + m) + m_rest


def powf(x: Number, y: Number) -> Number:
    a = x.abs()
    log, rest = _log2_in_two(a)
    ordinary = arith.andi(a.compare("ogt", 0.0), a.compare("olt", INF))
    log = expand_math.log_limits(a, log)
    power = _product(log, y)
    lacks = _fma(log, y, _negative(power)) + select(ordinary, rest, 0.0) * y
    # Beyond the range of the result, and for infinite factors, the rest is meaningless.
    lacks = select(power.abs().compare("olt", _EXPONENT_LIMIT), lacks, 0.0)
    bounded = power.at_least(1.0 - expand_math.DOUBLE.bias).at_most(expand_math.DOUBLE.bias + 1.25)
    n, half_scale = expand_math.power_of_two(bounded)
    magnitude = expand_math.exp_of_remainder(((bounded - n) + lacks) * expand_math.LN2) * half_scale
    return expand_math.signed_power(x, y, select(a.compare("oeq", 1.0), 1.0, magnitude))


# ---- the table --------------------------------------------------------------------------------------------------------------------

_DOUBLES: dict[str, Function] = {
    f"math.{f.__name__}": f for f in (sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, erf, powf)
}


def _with_double(name: str, expand: Function) -> Function:
    double = _DOUBLES.get(name)
    if double is None:
        return expand

    def either(*operands: Number) -> Number | None:
        found = expand(*operands)
        return double(*operands) if found is None else found

    return either


EXPANSIONS: dict[str, Function] = {
    name: _with_double(name, expand) for name, expand in expand_math.EXPANSIONS.items() if name.startswith("math.")
}
"""Expansions of the mathematical functions for f32 and f64. NaN-propagating extrema are omitted: devices have instructions for them."""
