"""Narrow floats: their formats, and arrays rounded to them as ONNX Cast rounds.

The formats are those of the OCP (E4M3, E5M2, E8M0 and the floats of 6 and 4 bits) and the variants of E4M3 and E5M2 without a negative zero
(FNUZ). float8_e8m0fnu is the scale of a block: powers of 2 without a sign, and no zero.
"""

from dataclasses import dataclass

import numpy as np

from relayc.dialects.relay.types import DTYPES, is_narrow

E8M0 = "float8_e8m0fnu"
E8M0_MAX, E8M0_NAN = 0xFE, 0xFF


@dataclass(frozen=True)
class Format:
    """A float of sign, exponent and mantissa.

    Attributes:
      mantissa: bits of the mantissa that are stored.
      bias: of the exponent.
      largest: code of the largest finite number.
      infinity, nan: their codes, those of the positive ones; None if there are none.
      sign: the bit of the sign.
      has_negative_zero: whether the code of a zero with a sign is -0; else it is NaN.
    """

    mantissa: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    sign: int = 0x80
    has_negative_zero: bool = True


FORMATS = {
    "float8_e4m3fn": Format(3, 7, 0x7E, nan=0x7F),
    "float8_e4m3fnuz": Format(3, 8, 0x7F, nan=0x80, has_negative_zero=False),
    "float8_e5m2": Format(2, 15, 0x7B, infinity=0x7C, nan=0x7E),
    "float8_e5m2fnuz": Format(2, 16, 0x7F, nan=0x80, has_negative_zero=False),
    "float6_e2m3fn": Format(3, 1, 0x1F, sign=0x20),
    "float6_e3m2fn": Format(2, 3, 0x1F, sign=0x20),
    "float4_e2m1fn": Format(1, 1, 0x07, sign=0x08),
}
"""Every narrow float but float8_e8m0fnu."""


@dataclass(frozen=True)
class Rounding:
    """How bits of a positive float32 become a code of float8_e8m0fnu.

    Attributes:
      added: to the bits of a normal number, whose exponent is then the code.
      next: bits of the least subnormal number that becomes 2**-126; what is below becomes 2**-127.
      least: bits of the least number that is not below 2**-127 once it is rounded.
    """

    added: int
    next: int
    least: int


ROUNDINGS = {
    "up": Rounding(0x7FFFFF, 0x400001, 0x200001),
    "down": Rounding(0, 0x800000, 0x400000),
    "nearest": Rounding(0x400000, 0x600000, 0x300000),
}


def is_narrow_float(dtype: str) -> bool:
    return dtype == E8M0 or dtype in FORMATS


def wide_dtype(dtype: str) -> str:
    """The dtype that has all values of a narrow one, and is computed in: float32, int8 or uint8."""
    return "float32" if is_narrow_float(dtype) else dtype[:-1] + "8"


def widened(array: np.ndarray) -> np.ndarray:
    """An array of a narrow type in one that numpy computes in: float32, int8 or uint8; any other as it is."""
    name = array.dtype.name
    return array.astype(wide_dtype(name)) if is_narrow(name) else array


def converted(array: np.ndarray, dtype: str, saturate: bool = True, round_mode: str = "up") -> np.ndarray:
    """`array` in another dtype, rounded as the operator cast rounds."""
    if array.dtype == DTYPES[dtype]:
        return array
    array = widened(array)
    if array.dtype.itemsize == 2 and array.dtype.kind not in "iub":
        array = array.astype(np.float32)
    if dtype == "bool":
        return array != 0
    if not is_narrow(dtype):
        return array.astype(DTYPES[dtype], copy=False)
    if not dtype.startswith("float"):
        with np.errstate(invalid="ignore"):  # the bits of NaN are not meaningful
            whole = array.astype(np.int32) if array.dtype.kind == "f" else array
        return (whole.astype(np.uint8) & ((1 << int(dtype[-1])) - 1)).view(DTYPES[dtype])
    if array.dtype.kind in "iub":
        array = array.astype(np.float32)
    if array.dtype == np.float64:
        array = _rounded_to_odd(array)
    if dtype == E8M0:
        return _powers_of_two(array, saturate, ROUNDINGS[round_mode])
    format_ = FORMATS[dtype]
    if saturate or format_.nan is None:
        highest = np.array(format_.largest, np.uint8).view(DTYPES[dtype]).astype(array.dtype)
        array = np.clip(array, -highest, highest)
    if format_.nan is None:
        array = np.where(np.isnan(array), np.zeros((), array.dtype), array)
    return array.astype(DTYPES[dtype])


def _powers_of_two(array: np.ndarray, saturate: bool, rounding: Rounding) -> np.ndarray:
    bits = array.view(np.uint32) & 0x7FFFFFFF
    code = np.where(bits < 0x800000, bits >= rounding.next, (bits + rounding.added) >> 23)
    if saturate:
        code = np.minimum(code, E8M0_MAX)
    code = np.where((bits > 0x7F800000) | (not saturate and bits < rounding.least), E8M0_NAN, code)
    return code.astype(np.uint8).view(DTYPES[E8M0])


def _rounded_to_odd(array: np.ndarray) -> np.ndarray:
    """float64 rounded to odd float32: an inexact result is the neighbour whose last bit is set, so that rounding again is correct."""
    near = array.astype(np.float32)
    bits = near.view(np.uint32)
    odd = np.where(np.abs(near.astype(np.float64)) > np.abs(array), bits - 1, bits) | 1
    return np.where((near != array) & ~np.isnan(array), odd, bits).astype(np.uint32).view(np.float32)
