"""How far results may be off: sums of products by the unit roundoff of their type, mathematical functions in units of the last place."""

import math

import numpy as np

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Unit roundoff: the largest relative error of rounding to a type."""
SMALLEST = {"float64": 2.0**-1074, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}
"""The least positive number of a type: the largest error of rounding a number below its normal range."""

SIZE = 1 << 16


def erf(x):
    return np.array([math.erf(v) for v in x.astype(np.float64)], np.longdouble)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 88.72283, 88.72284, -87.3, 709.78, 710.0, -708.0, 9.5, -30.0]


def samples(dtype):
    """Special values, all magnitudes (random bits), and the ranges where the functions do something."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    special = [*SPECIAL, info.tiny, info.tiny / 8, -info.tiny / 8, info.max, -info.max, info.eps, -info.eps]
    bits = rng.integers(0, 1 << 8 * info.dtype.itemsize, SIZE // 4, dtype=f"u{info.dtype.itemsize}").view(dtype)
    ranges = [rng.uniform(-r, r, SIZE // 8) for r in (1, 4, 20, 100)]
    found = np.concatenate([np.array(special, dtype), bits, *[r.astype(dtype) for r in ranges]])
    return np.resize(found, SIZE)


def check(got, expected, limit):
    """At most `limit` ulp from the reference; equal where it is not finite or not normal, where 0 also stands for small results."""
    dtype = got.dtype.type
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype)
        # Below this the result may be flushed to zero; the reference is compared with an absolute error of it.
        least = 2 * np.finfo(dtype).tiny
        normal = np.isfinite(rounded) & (np.abs(rounded) >= least)
        error = np.abs(got.astype(np.longdouble) - expected)[normal] / np.spacing(np.abs(rounded[normal]))
        small = np.isfinite(rounded) & ~normal
    assert error.max(initial=0) <= limit
    assert np.all(np.abs(got[small].astype(np.float64)) <= least)
    others = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[others], rounded[others])


def bound_of(terms: float, expected: np.ndarray, magnitude: np.ndarray | float, dtype: str) -> np.ndarray:
    """How far a sum of products may be off: N. Higham, Accuracy and Stability of Numerical Algorithms, section 3.1 (any order of the sum).

    Args:
      terms: products that are summed.
      magnitude: the sum of their absolute values.
      dtype: of the result; the 16-bit types are summed in float32 and rounded once.
    """
    if dtype not in UNIT:
        return np.zeros(expected.shape)
    wide = UNIT["float64" if dtype == "float64" else "float32"]
    bound = terms * wide / (1 - terms * wide) * magnitude
    if dtype in ("float16", "bfloat16"):
        bound = bound + UNIT[dtype] * (np.abs(expected) + bound) + SMALLEST[dtype]
    return bound


def check_sums(found: np.ndarray, expected: np.ndarray, magnitude: np.ndarray | float, terms: int, name: str = "") -> None:
    """Asserts that sums of seeded products of both signs are right: within (4 + sqrt(terms) / 8) u of the sum of absolute values.

    Rounding errors of such sums add up as a random walk (N. Higham and T. Mary, A New Approach to Probabilistic Rounding Error Analysis):
    their sum grows with sqrt(terms) u. Partial sums of both signs are a fraction of the sum of absolute values, hence the 8. The 4 is for
    sums of few terms, two of them for a reference in float32. Integers are exact.

    Args:
      expected: the sums in float64, or of float32 by another library.
      magnitude, terms: as in `bound_of`, from which the roundings to 16-bit types are.
    """
    assert found.shape == expected.shape, name
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite].astype(np.float64), expected[~finite], err_msg=name)
    error = np.abs(np.subtract(found.astype(np.float64), expected, where=finite, out=np.zeros(found.shape)))
    bound = np.broadcast_to(bound_of(4 + terms**0.5 / 8, np.where(finite, expected, 0), magnitude, found.dtype.name), error.shape)
    if not (error <= bound).all():  # also where there is a NaN
        worst = np.unravel_index(np.argmax(error - bound), error.shape)
        raise AssertionError(f"{name}: at {worst} found {found[worst]}, expected {expected[worst]} +- {bound[worst]}")
