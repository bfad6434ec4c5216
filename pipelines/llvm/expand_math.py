"""Expands mathematical functions without an instruction into arithmetic on scalars and vectors.

Largest errors, measured over dense samples of all magnitudes with fused multiply-add (test/python/llvm/test_expand_math.py):

| f32 | ulp | f32 | ulp | f64 | ulp |
|---|---|---|---|---|---|
| exp, exp2 | 1 | sin, cos (below 2**45) | 2 | exp, exp2 | 1.5 |
| expm1 | 2 | tan (below 2**45) | 4 | expm1 | 3 |
| log, log2 | 2 | tanh | 6 | log, log2 | 2 |
| log10 | 3 | erf | 6 | log10 | 3 |
| log1p | 4 | powf | 1 | log1p, tanh | 4 |
| asin, acos, atan | 3 | sinh to atanh | 1 | | |

Without fused multiply-add they are a tenth larger, and the errors of sin, cos and tan hold below 2**7 only: reduced by a multiple of pi/2
an argument x is off by 2**-53 * x.

Infinities and NaN are handled as in IEEE 754 and C; results below twice the smallest normal number may be 0. Other functions, and f64
functions without a fast form, are left to the C library, one element at a time. f16 and bf16 are computed in f32.
"""

import math as pymath
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from relayc.dialects.mlir import arith, ir
from relayc.dialects.operations import find_operations
from relayc.pipelines.emission.emit import element_of, like
from relayc.pipelines.emission.number import INF, NAN, Bits, Number, constant_value, contract, float_bits, polynomial, select

LN2, LOG2E, LOG10E, LOG10_2 = pymath.log(2), 1 / pymath.log(2), 1 / pymath.log(10), pymath.log10(2)


@dataclass(frozen=True)
class Format:
    """A floating-point format and the constants of its expansions.

    The polynomials are minimax fits (Remez exchange in 60 digits); `exp_tail` is (e**r - 1 - r) / r**2 for |r| <= ln(2)/2.
    """

    width: int
    mantissa: int
    bias: int
    ln2_high: float
    ln2_low: float
    exp_tail: tuple[float, ...]

    @property
    def magic(self) -> float:
        """Adding this to a small number rounds it to an integer in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def tiny(self) -> float:
        """Smallest normal number."""
        return 2.0 ** (1 - self.bias)


# ln2_high has so few bits that its product with an exponent is exact.
SINGLE = Format(
    width=32,
    mantissa=23,
    bias=127,
    ln2_high=0.693115234375,
    ln2_low=3.1946184945309415e-05,
    exp_tail=(0.5, 0.16666515171527863, 0.041666582226753235, 0.0083693079650402069, 0.0013921982608735561),
)
DOUBLE = Format(
    width=64,
    mantissa=52,
    bias=1023,
    ln2_high=0.6931471803691238,
    ln2_low=1.9082149292705877e-10,
    exp_tail=(
        0.5,
        0.16666666666666685,
        0.041666666666666671,
        0.0083333333333157553,
        0.0013888888888881758,
        0.00019841269899421724,
        2.4801587332928391e-05,
        2.7557231957235505e-06,
        2.7557263752116657e-07,
        2.5113087062661286e-08,
        2.0918893681100952e-09,
    ),
)


def _format(x: Number) -> Format:
    return DOUBLE if x.is_double else SINGLE


# ---- exponentials -----------------------------------------------------------------------------------------------------------------


def power_of_two(n_log2: Number) -> tuple[Number, Number]:
    """The nearest integer n of an exponent, and 2**(n - 1), which is 0 for the least n and finite for the largest."""
    f = _format(n_log2)
    shift = f.magic + (f.bias - 1)
    shifted = n_log2 + shift
    return shifted - shift, (shifted.bits() << f.mantissa).number()


def _exp_parts(x: Number) -> tuple[Number, Number]:
    """r and 2**(n - 1) with x = n * ln(2) + r; x is clipped to the range in which the result is neither 0 nor infinite."""
    f = _format(x)
    x = x.at_least((1 - f.bias) * LN2).at_most((f.bias + 1.4) * LN2)
    n, half_scale = power_of_two(x * LOG2E)
    return (x - n * f.ln2_high) - n * f.ln2_low, half_scale


def exp_of_remainder(r: Number) -> Number:
    """2 * e**r for |r| <= ln(2) / 2."""
    return polynomial(r, [2.0, 2.0, *[2 * c for c in _format(r).exp_tail]])


def exp(x: Number) -> Number:
    r, half_scale = _exp_parts(x)
    return exp_of_remainder(r) * half_scale


def exp2(x: Number) -> Number:
    f = _format(x)
    x = x.at_least(1.0 - f.bias).at_most(f.bias + 1.25)
    n, half_scale = power_of_two(x)
    return exp_of_remainder((x - n) * LN2) * half_scale


def expm1(x: Number) -> Number:
    r, half_scale = _exp_parts(x)
    minus_one = polynomial(r, _format(x).exp_tail) * (r * r) + r
    return (minus_one * half_scale + (half_scale - 0.5)) * 2.0


# ---- logarithms -------------------------------------------------------------------------------------------------------------------

# (log(1 + f) - f + f**2 / 2) / f**3 for |f| <= 1/3
_LOG_TAIL_SINGLE = (
    0.33333215752250045,
    -0.24999798909685658,
    0.2001041980263281,
    -0.16680422467427886,
    0.1400562928573273,
    -0.12185279184617712,
    0.13985680967925918,
    -0.1288675562012922,
)
# (log((1 + s) / (1 - s)) / s - 2) / s**2 as a polynomial in s**2, for |s| <= 1/5
_LOG_TAIL_DOUBLE = (
    0.666666666666666,
    0.4000000000005604,
    0.2857142855598352,
    0.22222224278842254,
    0.18181666932132169,
    0.15391077488330168,
    0.13174177438845028,
    0.13839134688216037,
)


def split(x: Number) -> tuple[Number, Number]:
    """e and f with x = 2**e * (1 + f) and -1/3 <= f < 1/3, for positive finite x."""
    f = _format(x)
    small = x.compare("olt", f.tiny)
    bits = select(small, x * 2.0**f.mantissa, x).bits()
    offset = float_bits(2 / 3, f.width)
    fraction = bits - ((bits - offset) & -(1 << f.mantissa))
    biased = (bits - (offset - (f.bias << f.mantissa))) >> f.mantissa
    # The conversion of a small nonnegative integer, also without an instruction for it (64 bits on many CPUs).
    exponent = (biased + float_bits(f.magic, f.width)).number() - select(small, x.of(f.magic + f.bias + f.mantissa), f.magic + f.bias)
    return exponent, fraction.number() - 1.0


def _log_of_fraction(f: Number) -> tuple[Number, Number]:
    """log(1 + f) as f plus a smaller number."""
    half_square = f * f * 0.5
    if not f.is_double:
        return f, polynomial(f, _LOG_TAIL_SINGLE) * f * (f * f) - half_square
    s = f / (f + 2.0)
    z = s * s
    return f, s * (half_square + polynomial(z, _LOG_TAIL_DOUBLE) * z) - half_square


def log_limits(x: Number, result: Number) -> Number:
    """`result` for positive finite x; otherwise the limits: -inf for 0, inf for inf, NaN for the rest."""
    result = select(x.compare("oeq", INF), INF, result)
    return select(x.compare("ogt", 0.0), result, select(x.compare("oeq", 0.0), x.of(-INF), NAN))


def log(x: Number) -> Number:
    e, f = split(x)
    head, tail = _log_of_fraction(f)
    form = _format(x)
    return log_limits(x, (head + (tail + e * form.ln2_low)) + e * form.ln2_high)


def _log_in_base(x: Number, factor: float, step: float) -> Number:
    """log(x) * factor, where `step` is factor * ln(2)."""
    e, f = split(x)
    head, tail = _log_of_fraction(f)
    return log_limits(x, (head + tail) * factor + e * step)


def log2(x: Number) -> Number:
    return _log_in_base(x, LOG2E, 1.0)


def log10(x: Number) -> Number:
    return _log_in_base(x, LOG10E, LOG10_2)


def log1p(x: Number) -> Number:
    """By Kahan's correction: log(u) * x / (u - 1) with u = 1 + x rounded, exact as the errors of u cancel."""
    u = x + 1.0
    result = select(u.compare("oeq", 1.0), x, log(u) * (x / (u - 1.0)))
    return select(x.compare("oeq", INF), INF, result)


# ---- sigmoids ---------------------------------------------------------------------------------------------------------------------

# tanh(x) / x and erf(x) / x as ratios of polynomials in x**2, up to where the result rounds to 1.
_TANH_LIMIT = 9.02
_TANH = (
    (0.9999999986904271, 0.13679914619060587, 0.003868327207233366, 2.8007449341345028e-05, 3.058500386393812e-08, -1.2203455419989441e-11),
    (1.0, 0.4701324667935719, 0.027245836769607023, 0.00039386302155782984, 1.287365994415277e-06),
)
_ERF_LIMIT = 3.93
_ERF = (
    (1.12837914535201, 0.19078387640588376, 0.052790293301741516, 0.003779611643794454, 0.00028480873677497686, 2.0419714055264056e-06),
    (1.0, 0.5024105277156394, 0.11425754238771135, 0.014997441978455678, 0.0011652134596638886, 3.800408851738317e-05),
)


def _odd_ratio(x: Number, limit: float, ratio: tuple[tuple[float, ...], tuple[float, ...]]) -> Number:
    """x * P(x**2) / Q(x**2) for |x| up to `limit`, clipped to [-1, 1]."""
    x = x.at_least(-limit).at_most(limit)
    square = x * x
    return (x * polynomial(square, ratio[0]) / polynomial(square, ratio[1])).at_least(-1.0).at_most(1.0)


def tanh(x: Number) -> Number:
    if not x.is_double:
        return _odd_ratio(x, _TANH_LIMIT, _TANH)
    e = expm1((x.abs() * 2.0).at_most(40.0))
    return (e / (e + 2.0)).with_sign_of(x)


def erf(x: Number) -> Number:
    return _odd_ratio(x, _ERF_LIMIT, _ERF)


# ---- trigonometry -----------------------------------------------------------------------------------------------------------------

_HALF_PI_HIGH, _HALF_PI_LOW = pymath.pi / 2, 6.123233995736766e-17
# (sin(x) - x) / x**3 and (cos(x) - 1 + x**2 / 2) / x**4 in x**2, for |x| <= pi / 4
_SIN = (-0.16666655242443085, 0.008332190103828907, -0.00019518398039508611)
_COS = (0.041666645556688309, -0.0013887309469282627, 2.4432327336398885e-05)


def _quadrant(x: Number) -> tuple[Number, Number, Bits]:
    """sin(r), cos(r) and the integer q with x = q * pi/2 + r, |r| <= pi/4; reduced in f64, so that large f32 arguments are exact."""
    wide = x.double()
    shifted = wide * (2 / pymath.pi) + DOUBLE.magic
    n = shifted - DOUBLE.magic
    # Beyond the range of the reduction r would grow without bound.
    r = ((wide - n * _HALF_PI_HIGH) - n * _HALF_PI_LOW).single().at_least(-0.8).at_most(0.8)
    square = r * r
    sine = polynomial(square, _SIN) * square * r + r
    cosine = polynomial(square, _COS) * (square * square) + (1.0 - square * 0.5)
    return sine, cosine, shifted.bits().narrow(32)


def turn(sine: Number, cosine: Number, quadrant: Bits) -> Number:
    """sin(r + quadrant * pi/2)."""
    value = select((quadrant & 1).is_nonzero(), cosine, sine)
    return (value.bits() ^ ((quadrant & 2) << (_format(sine).width - 2))).number()


def sin(x: Number) -> Number:
    sine, cosine, quadrant = _quadrant(x)
    return turn(sine, cosine, quadrant)


def cos(x: Number) -> Number:
    sine, cosine, quadrant = _quadrant(x)
    return turn(sine, cosine, quadrant + 1)


def tan(x: Number) -> Number:
    sine, cosine, quadrant = _quadrant(x)
    odd = (quadrant & 1).is_nonzero()
    return select(odd, cosine, sine) / select(odd, 0.0 - sine, cosine)


# ---- inverse trigonometry ---------------------------------------------------------------------------------------------------------

# (asin(x) - x) / x**3 for |x| <= 1/2 and (atan(x) - x) / x**3 for |x| <= 1, in x**2
_ASIN = (0.16666752681331273, 0.07495288672341738, 0.045471607160204805, 0.024172951627903068, 0.042178229903635935)
_ATAN = (
    -0.3333329906884118,
    0.19998547549749165,
    -0.1426423268170426,
    0.10952132924183756,
    -0.08403279950996308,
    0.05795441500808726,
    -0.031174426610541487,
    0.010912638401852873,
    -0.0017931531103203592,
)
# pi/2 as an f32 and its rounding error.
_HALF_PI_SINGLE, _HALF_PI_REST = 1.57079637050628662109375, -4.37113900018624283e-8


def _odd(x: Number, tail: tuple[float, ...]) -> Number:
    """x + x**3 * tail(x**2)"""
    square = x * x
    return polynomial(square, tail) * square * x + x


def _asin_parts(x: Number) -> tuple[ir.Value, Number]:
    """Whether |x| > 1/2, and the arc sine of |x|, or in that case of sqrt((1 - |x|) / 2), which is half the arc cosine of |x|."""
    large = x.abs().compare("ogt", 0.5)
    return large, _odd(select(large, (0.5 - x.abs() * 0.5).sqrt(), x.abs()), _ASIN)


def asin(x: Number) -> Number:
    large, part = _asin_parts(x)
    return select(large, (_HALF_PI_SINGLE - part * 2.0) + _HALF_PI_REST, part).with_sign_of(x)


def acos(x: Number) -> Number:
    large, part = _asin_parts(x)
    of_large = select(x.compare("olt", 0.0), 2 * _HALF_PI_SINGLE - part * 2.0, part * 2.0)
    # The rounding error of pi / 2 changes no result above 1.
    return select(large, of_large, _HALF_PI_SINGLE - part.with_sign_of(x))


def atan(x: Number) -> Number:
    large = x.abs().compare("ogt", 1.0)
    part = _odd(select(large, 1.0 / x.abs(), x.abs()), _ATAN)
    return select(large, (_HALF_PI_SINGLE - part) + _HALF_PI_REST, part).with_sign_of(x)


# ---- hyperbolic functions: rare, so f32 goes through f64, where the textbook formulas neither cancel nor overflow ---------------------


def sinh(x: Number) -> Number:
    e = expm1(x.double().abs().at_most(100.0))
    return ((e + e / (e + 1.0)) * 0.5).single().with_sign_of(x)


def cosh(x: Number) -> Number:
    e = exp(x.double().abs().at_most(100.0))
    return ((e + 1.0 / e) * 0.5).single()


def asinh(x: Number) -> Number:
    a = x.double().abs()
    square = a * a
    result = log1p(a + square / ((square + 1.0).sqrt() + 1.0)).single()
    return select(x.abs().compare("oeq", INF), x, result.with_sign_of(x))


def acosh(x: Number) -> Number:
    t = x.double() - 1.0
    result = log1p(t + (t * (t + 2.0)).sqrt()).single()
    return select(x.compare("oge", 1.0), result, NAN)


def atanh(x: Number) -> Number:
    a = x.double()
    return (log1p(a * 2.0 / (1.0 - a)) * 0.5).single()


# ---- powers -----------------------------------------------------------------------------------------------------------------------

_CONSTANT_POWERS: dict[float, Callable[[Number], Number]] = {
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
    0.5: lambda x: x.sqrt(),
    -0.5: lambda x: 1.0 / x.sqrt(),
    -1.0: lambda x: 1.0 / x,
    -2.0: lambda x: 1.0 / (x * x),
}


def powf(x: Number, y: Number) -> Number | None:
    """x ** y; f32 through f64, where log2 is exact enough for the largest exponents."""
    exponent = constant_value(y.value)
    if exponent in _CONSTANT_POWERS:
        return _CONSTANT_POWERS[exponent](x)
    if x.is_double:
        return None
    return signed_power(x, y, select(x.abs().compare("oeq", 1.0), 1.0, exp2(log2(x.abs().double()) * y.double()).single()))


def signed_power(x: Number, y: Number, magnitude: Number) -> Number:
    """x ** y from |x| ** y."""
    whole = y.floor().compare("oeq", y)
    half = y * 0.5
    odd = arith.andi(whole, half.floor().compare("une", half))
    signed = select(odd, magnitude.with_sign_of(x), magnitude)
    valid = arith.ori(whole, arith.ori(x.compare("uge", 0.0), x.compare("oeq", -INF)))
    return select(y.compare("oeq", 0.0), 1.0, select(valid, signed, NAN))


def rsqrt(x: Number) -> Number:
    return 1.0 / x.sqrt()


# ---- extrema ----------------------------------------------------------------------------------------------------------------------


def _extremum(predicate: str) -> Callable[[Number, Number], Number]:
    """maximumf or minimumf: NaN if either operand is. On many CPUs max and min return the second operand for NaN: that saves most of the
    test."""

    def expand(a: Number, b: Number) -> Number:
        if constant_value(a.value) is None and constant_value(b.value) is not None:
            a, b = b, a
        result = select(a.compare(predicate, b), a, b)
        known = constant_value(a.value)
        return result if known is not None and not pymath.isnan(known) else select(a.compare("uno", a), a, result)

    return expand


# ---- the pass ---------------------------------------------------------------------------------------------------------------------


def _single_only(expand: Callable[[Number], Number]) -> Callable[[Number], Number | None]:
    """An expansion for f32 that leaves f64 to the C library."""
    return lambda x: None if x.is_double else expand(x)


EXPANSIONS: dict[str, Callable[..., Number | None]] = {
    **{f"math.{f.__name__}": f for f in (exp, exp2, expm1, log, log2, log10, log1p, tanh, powf, rsqrt)},
    **{f"math.{f.__name__}": _single_only(f) for f in (erf, sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh)},
    "arith.maximumf": _extremum("ogt"),
    "arith.minimumf": _extremum("olt"),
}
"""Expansion of each operation; one that returns None leaves the operation unchanged."""

_CONTRACTED = ("arith.addf", "arith.subf", "arith.mulf")


def expand_math(module: ir.Module, expansions: Mapping[str, Callable[..., Number | None]] = EXPANSIONS) -> None:
    """Expands the operations of `expansions` in place, and permits contraction of products and sums to fused multiply-adds.

    math operations on f16 and bf16 are computed in f32. Arithmetic on these types must have been converted to f32 before, by
    arith-emulate-unsupported-floats.
    """

    def is_expanded(op: ir.Operation) -> bool:
        name = op.name
        return name in expansions or name in _CONTRACTED or name.startswith("math.")

    with module.context:
        for op in find_operations(module.operation, is_expanded):
            with op.location, ir.InsertionPoint(op):
                _rewrite(op, expansions)


def _rewrite(op: ir.Operation, expansions: Mapping[str, Callable[..., Number | None]]) -> None:
    if op.name in _CONTRACTED:
        op.attributes["fastmath"] = contract()
        return
    if op.name.startswith("math."):
        op = _in_single(op)
    if op.name not in expansions:
        return
    with ir.InsertionPoint(op):
        result = expansions[op.name](*[Number(v) for v in op.operands])
    if result is not None:
        op.results[0].replace_all_uses_with(result.value)
        op.erase()


def _is_narrow(type_: ir.Type) -> bool:
    return isinstance(element_of(type_), (ir.F16Type, ir.BF16Type))


def _in_single(op: ir.Operation) -> ir.Operation:
    """`op` with f32 in place of f16 and bf16, and conversions around it."""

    def single(type_: ir.Type) -> ir.Type:
        return like(type_, ir.F32Type.get()) if _is_narrow(type_) else type_

    operands = [arith.extf(single(v.type), v) if _is_narrow(v.type) else v for v in op.operands]
    wide = ir.Operation.create(
        op.name, [single(r.type) for r in op.results], operands, {name: op.attributes[name] for name in op.attributes}
    )
    for old, new in zip(op.results, wide.results, strict=True):
        old.replace_all_uses_with(arith.truncf(old.type, new) if _is_narrow(old.type) else new)
    op.erase()
    return wide
