"""Narrow types for tests: their values, and the nearest of them to a number, by the definition."""

import ml_dtypes  # noqa: F401 (registers its types with numpy)
import numpy as np

BITS = {
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float4_e2m1fn": 4,
    "int4": 4,
    "uint4": 4,
    "int2": 2,
    "uint2": 2,
}
"""Bits of an element."""
FLOATS = tuple(name for name in BITS if name.startswith("float") and name != "float8_e8m0fnu")
INTEGERS = tuple(name for name in BITS if "int" in name)


def every_value(dtype):
    """An array of all elements that a type has, in the order of their bits."""
    return np.arange(1 << BITS[dtype], dtype=np.uint8).view(dtype)


def some_values(dtype, shape, seed=0):
    """Random elements, of any bits."""
    return np.random.default_rng(seed).integers(0, 1 << BITS[dtype], shape, dtype=np.uint8).view(dtype)


def same_bits(a, b):
    """Whether two arrays are the same in dtype, shape and every bit."""
    return (a.dtype, a.shape) == (b.dtype, b.shape) and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def nearest(x, dtype, saturate=True):
    """Numbers (float64) as those of a narrow float, by ONNX Cast's tables: the nearest, of two as near the one whose last bit is 0."""
    values = every_value(dtype).astype(np.float64)
    codes = np.flatnonzero(np.isfinite(values) & ~np.signbit(values))
    values = values[codes]
    # One step above the largest: what is nearer to it is out of range.
    step = values[-1] - values[-2]
    values = np.append(values, values[-1] + step)
    magnitude = np.abs(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf)).clip(None, values[-1])
    above = np.searchsorted(values, magnitude).clip(1)
    middle = (values[above] + values[above - 1]) / 2
    # Positive numbers are in the order of their codes, which begin with 0.
    is_above = (magnitude > middle) | ((magnitude == middle) & (above % 2 == 0))
    code = np.where(is_above, above, above - 1)
    out_of_range = code == len(codes)
    code = np.where(out_of_range, len(codes) - 1, code).astype(np.uint8)
    has_nan = np.isnan(every_value(dtype).astype(np.float64)).any()
    found = np.where(np.signbit(x), -values[code], values[code])
    if not saturate:
        found = np.where(out_of_range, np.where(np.signbit(x), -np.inf, np.inf), found)
    found = np.where(np.isnan(x), np.nan if has_nan else 0.0, found)
    return found.astype(np.float32).astype(dtype)


def telling_numbers(dtype):
    """Numbers (float32) that tell roundings apart: every value, those halfway between two, their neighbours, and any bits."""
    values = every_value(dtype).astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    step = values[-1] - values[-2]
    values = np.concatenate([[-values[-1] - step], values, [values[-1] + step]])
    at = np.concatenate([values, (values[1:] + values[:-1]) / 2]).astype(np.float32)
    near = [np.nextafter(at, np.float32(side)) for side in (np.inf, -np.inf)]
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 4096, dtype=np.uint32).view(np.float32)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-45, -1e-45], np.float32)
    return np.concatenate([at, *near, bits, special, (rng.standard_normal(4096) * values[-1] / 2).astype(np.float32)])
