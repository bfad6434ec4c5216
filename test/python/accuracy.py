"""Helpers of the tests of mathematical functions: arguments of all magnitudes, and errors in units of the last place."""

import math

import numpy as np

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
