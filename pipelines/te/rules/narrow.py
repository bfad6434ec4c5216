"""Conversion of narrow types (see dialects.relay.types): a te scalar of such a type is an i8 that holds its bits.

Everything is integer arithmetic that vectorizes, independent of the machine's treatment of denormal numbers.
"""

from typing import TypeAlias

from relayc.dialects.mlir import arith, ir
from relayc.dialects.relay.narrow import E8M0, E8M0_MAX, E8M0_NAN, FORMATS, ROUNDINGS, Rounding, is_narrow_float
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.number import Bits, Number, float_bits

Value: TypeAlias = ir.Value

_INFINITY, _NAN = 0x7F800000, 0x7FC00000  # of float32


def _select(flag: Value, a: Bits | int, b: Bits | int) -> Bits:
    """`a` where the flag is set, otherwise `b`, both of 32 bits."""
    bits = ir.IntegerType.get_signless(32)
    return Bits(arith.select(flag, *(v.value if isinstance(v, Bits) else emit.number(v, bits) for v in (a, b))))


def widened(value: Value, dtype: str) -> Value:
    """A scalar of a narrow type converted to `wide_dtype`, exactly."""
    if is_narrow_float(dtype):
        code = Bits(value).widen(32)
        return (_from_power_of_two(code) if dtype == E8M0 else _from_format(code, dtype)).number().value
    width = int(dtype[-1])
    if dtype.startswith("uint"):
        return (Bits(value) & ((1 << width) - 1)).value
    unused = emit.number(8 - width, value.type)
    return arith.shrsi(arith.shli(value, unused), unused)


def narrowed_integer(value: Value, dtype: str) -> Value:
    """The low bits of an integer scalar of 8 bits as a narrow integer."""
    return (Bits(value) & ((1 << int(dtype[-1])) - 1)).value


def narrowed_float(value: Value, dtype: str, saturate: bool, round_mode: str) -> Value:
    """A float32 scalar as a narrow float, rounded as the operator cast specifies. A number to be rounded only once must be rounded to
    odd."""
    bits = Number(value).bits()
    code = _to_power_of_two(bits, saturate, ROUNDINGS[round_mode]) if dtype == E8M0 else _to_format(bits, dtype, saturate)
    return code.narrow(8).value


def _from_format(code: Bits, dtype: str) -> Bits:
    f = FORMATS[dtype]
    magnitude = code & (f.sign - 1)
    # Exponent and mantissa shifted into place; a subnormal number is a multiple of the least one.
    normal = (magnitude << (23 - f.mantissa)) + ((127 - f.bias) << 23)
    subnormal = magnitude.signed_number() * 2.0 ** (1 - f.bias - f.mantissa)
    found = _select(magnitude.at_least(1 << f.mantissa), normal, subnormal.bits())
    if f.infinity is not None:
        found = _select(magnitude.at_least(f.infinity), (magnitude << (23 - f.mantissa)) | _INFINITY, found)
    elif f.nan is not None and f.has_negative_zero:
        found = _select(magnitude.at_least(f.nan), _NAN, found)
    found = found | ((code & f.sign) << (32 - f.sign.bit_length()))
    return found if f.has_negative_zero else _select(code.equals(f.sign), _NAN, found)


def _to_format(bits: Bits, dtype: str, saturate: bool) -> Bits:
    f = FORMATS[dtype]
    magnitude, lost = bits & 0x7FFFFFFF, 23 - f.mantissa
    # Half a unit in the last place, less one if the bit above is even; a carry increments the exponent.
    normal = (magnitude + ((magnitude >> lost) & 1) + ((1 << (lost - 1)) - 1) - ((127 - f.bias) << 23)) >> lost
    # From this power of 2 on the last place of a float32 is that of a subnormal number: adding rounds.
    power = 2.0 ** (1 - f.bias - f.mantissa + 23)
    subnormal = (magnitude.number() + power).bits() - float_bits(power, 32)
    code = _select(magnitude.at_least((128 - f.bias) << 23), normal, subnormal)
    above = f.largest if saturate or f.nan is None else f.nan if f.infinity is None else f.infinity
    code = _select(code.at_least(f.largest + 1), above, code)
    is_nan = magnitude.at_least(_INFINITY + 1)
    sign = (bits >> (32 - f.sign.bit_length())) & f.sign
    if f.nan is None:
        return _select(is_nan, 0, code | sign)
    if f.has_negative_zero:
        return _select(is_nan, f.nan, code) | sign
    return _select(is_nan, f.nan, _select(code.at_least(1), code | sign, code))


def _from_power_of_two(code: Bits) -> Bits:
    found = _select(code.at_least(1), code << 23, 1 << 22)
    return _select(code.at_least(E8M0_NAN), _NAN, found)


def _to_power_of_two(bits: Bits, saturate: bool, rounding: Rounding) -> Bits:
    magnitude = bits & 0x7FFFFFFF
    subnormal = _select(magnitude.at_least(rounding.next), 1, 0)
    code = _select(magnitude.at_least(1 << 23), (magnitude + rounding.added) >> 23, subnormal)
    limited = _select(code.at_least(E8M0_NAN), E8M0_MAX, code)
    code = limited if saturate else _select(magnitude.at_least(rounding.least), code, E8M0_NAN)
    return _select(magnitude.at_least(_INFINITY + 1), E8M0_NAN, code)
