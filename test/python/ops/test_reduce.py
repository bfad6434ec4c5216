"""Numerics of the reductions, against numpy."""

import numpy as np
import pytest
from accuracy import bound_of, check_sums
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import values
from support import run, run_each

FLOATS = ("float32", "float64", "float16", "bfloat16")
REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


def _close(name: str, found: np.ndarray, expected: np.ndarray, mean: np.ndarray, count: int) -> None:
    """Asserts that a reduction of `count` elements of some mean magnitude is right: a largest element exactly, sums and products up to a
    rounding for each element, and two for a mean."""
    if name in ("max", "min"):
        np.testing.assert_array_equal(found.astype("float64"), expected, err_msg=name)
        return
    magnitude = count * mean if name == "sum" else mean
    bound = bound_of(count + 2, expected, magnitude, found.dtype.name)
    assert (np.abs(found.astype("float64") - expected) <= bound).all(), f"{name}: found {found}, expected {expected} +- {bound}"


@st.composite
def reductions(draw):
    """A shape, axes of it (or None) and keepdims."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    axis = draw(st.none() | st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1).map(tuple))
    return shape, axis, draw(st.booleans())


@given(case=reductions(), seed=st.integers(0, 99))
@settings(max_examples=14, deadline=None, derandomize=True)
def test_any_shape_and_axes(case, seed):
    shape, axis, keepdims = case
    rng = np.random.default_rng(seed)
    # Both signs; products of all stay in the range of the type.
    x = (rng.choice([-1.0, 1.0], shape) * np.exp2(rng.uniform(-1, 1, shape))).astype("float32")
    calls = [(name, {"axis": axis, "keepdims": keepdims}) for name in REDUCTIONS]
    for name, found in zip(REDUCTIONS, run_each(calls, x), strict=True):
        expected = REDUCTIONS[name](x.astype("float64"), axis=axis, keepdims=keepdims)
        assert found.shape == expected.shape
        magnitude = np.abs(expected) if name == "prod" else np.abs(x).mean(axis=axis, keepdims=keepdims)
        _close(name, found, expected, magnitude, x.size // max(expected.size, 1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [(0,), (1,), (2,), (0, 2), None])
def test_floats(dtype, axis):
    x = np.random.default_rng(1).standard_normal((6, 33, 20)).astype(dtype)
    names = ("sum", "mean", "max", "min")
    for name, found in zip(names, run_each([(n, {"axis": axis}) for n in names], x), strict=True):
        assert found.dtype == np.dtype(dtype)
        expected = REDUCTIONS[name](x.astype("float64"), axis=axis)
        _close(name, found, expected, np.abs(x.astype("float64")).mean(axis=axis), x.size // expected.size)


def test_sum_of_half_floats_accumulates_in_single_precision():
    x = 1 + np.abs(values((4096,), "float16"))
    total = x.astype("float64").sum()
    check_sums(run("sum", x), total, total, x.size)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8", "uint32"])
def test_integers(dtype):
    x, info = values((4, 5, 6), dtype, limit=None), np.iinfo(dtype)
    x[0] |= info.min  # of one sign: no extreme starts at 0
    x[1] &= info.max
    found = run_each([(n, {"axis": (1,)}) for n in REDUCTIONS], x)
    # A mean is that of the sum in 64 bits.
    total = x.sum(1)
    mean = (np.abs(total) // 5 * np.sign(total)).astype(dtype)
    expected = [total.astype(dtype), mean, x.max(1), x.min(1), np.prod(x, 1, dtype=dtype)]
    for name, result, want in zip(REDUCTIONS, found, expected, strict=True):
        assert result.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(result, want, err_msg=name)


@pytest.mark.parametrize("axis", [(0,), (1,), None])
def test_bools(axis):
    x = values((5, 7), "bool")
    x[1] = x[:, 2] = True  # the only row and column without a False
    for found, want in ((run("all", x, axis=axis), x.all(axis)), (run("any", ~x, axis=axis), (~x).any(axis))):
        assert found.dtype == np.bool_
        np.testing.assert_array_equal(found, want)


def test_exclude_reduces_the_other_axes():
    x = values((2, 3, 4))
    check_sums(run("sum", x, axis=(1,), exclude=True), x.astype("float64").sum((0, 2)), np.abs(x).sum((0, 2)), 8)


def test_no_axis_leaves_the_tensor():
    x = np.random.default_rng(4).standard_normal((2, 3)).astype("float32")
    np.testing.assert_array_equal(run("sum", x, axis=()), x)


@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_passes_through_max_and_min(name):
    x = np.array([[1, np.nan, 3], [1, 2, 3], [np.nan, np.nan, np.nan]], np.float32)
    np.testing.assert_array_equal(run(name, x, axis=(1,)), REDUCTIONS[name](x, axis=1))


def test_infinities():
    x = np.array([[np.inf, 1], [-np.inf, 1], [-np.inf, -np.inf]], np.float32)
    for name in ("max", "min", "sum"):
        np.testing.assert_array_equal(run(name, x, axis=(1,)), REDUCTIONS[name](x, axis=1))


@given(case=reductions(), last=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_argmax_takes_the_first_or_last_of_equals(case, last, seed):
    shape, axes, keepdims = case
    axis = None if axes is None else axes[0]
    x = np.random.default_rng(seed).integers(-1, 2, shape).astype("float32")
    attrs = {"axis": None if axis is None else (axis,), "keepdims": keepdims, "select_last_index": last}
    largest, smallest = run_each([("argmax", attrs), ("argmin", attrs)], x)
    assert largest.dtype == np.int32
    for found, pick in ((largest, np.argmax), (smallest, np.argmin)):
        n = x.size if axis is None else shape[axis]
        turned = np.flip(x, axis) if last else x
        expected = pick(turned, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(found, n - 1 - expected if last else expected)


def test_argmax_over_several_axes_counts_them_as_one():
    x = np.random.default_rng(6).standard_normal((3, 4, 5)).astype("float32")
    np.testing.assert_array_equal(run("argmax", x, axis=(1, 2)), x.reshape(3, 20).argmax(1))


def test_argmax_finds_nan_like_numpy():
    x = np.array([[1, np.nan, 3, np.nan], [4, 2, 9, 9]], np.float32)
    np.testing.assert_array_equal(run("argmax", x, axis=(1,)), x.argmax(1))
    np.testing.assert_array_equal(run("argmin", x, axis=(1,)), x.argmin(1))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "float64"])
def test_argmax_of_dtypes(dtype):
    x = values((7, 9), dtype, limit=None)
    x[:, 0], x[:, 1] = -1 - np.arange(7), 1 + np.arange(7)  # no extreme starts at 0
    largest, smallest = run_each([("argmax", {"axis": (0,)}), ("argmin", {"axis": (0,)})], x)
    np.testing.assert_array_equal(largest, x.argmax(0))
    np.testing.assert_array_equal(smallest, x.argmin(0))


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("axis", [(1,), (0, 2), None])
def test_variance(axis, unbiased):
    x = np.random.default_rng(9).standard_normal((4, 5, 6)).astype("float32")
    mean = x.mean(axis, keepdims=True)
    found = run("variance", x, mean, axis=axis, unbiased=unbiased)
    np.testing.assert_allclose(found, x.var(axis, ddof=int(unbiased)), rtol=1e-5)


def test_no_elements_give_the_first_value():
    x = np.zeros((2, 0), np.float32)
    for name, want in (("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf), ("mean", np.nan)):
        np.testing.assert_array_equal(run(name, x, axis=(1,)), [want, want])
