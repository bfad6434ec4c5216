"""Numerics of the elementwise operators of two tensors and of `where`, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from oracle import values
from support import Const, run, run_each

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
# One rounding for 16-bit floats, computed in f32; pow, the least exact, within a few ulp for the others.
RTOL = {"float32": 1e-6, "float64": 1e-12, "float16": 1e-3, "bfloat16": 8e-3}

COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
ARITHMETIC = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
DIVISION = {"mod": np.fmod, "floor_mod": np.mod, "floor_divide": lambda a, b: np.floor(a / b)}


def _calls(table: dict) -> list:
    return [(name, {}) for name in table]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype):
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-9, 9, (5, 41)).astype(dtype), rng.uniform(0.5, 4, (5, 41)).astype(dtype)
    b[1] *= -1
    table = ARITHMETIC | COMPARISONS | DIVISION | {"divide": np.divide}
    wide = a.astype("float64"), b.astype("float64")
    for name, results in zip(table, run_each(_calls(table), a, b), strict=True):
        expected = table[name](*wide)
        assert results.dtype == (np.bool_ if name in COMPARISONS else a.dtype), name
        if name == "floor_divide":
            # A quotient that a rounding carries over an integer is one off.
            quotient = wide[0] / wide[1]
            is_whole = np.abs(quotient - np.round(quotient)) <= RTOL[dtype] * np.abs(quotient)
            assert (np.abs(results.astype("float64") - expected) <= is_whole).all() and is_whole.mean() < 0.1
            continue
        np.testing.assert_allclose(results.astype("float64"), expected, rtol=RTOL[dtype], atol=RTOL[dtype] * 10, err_msg=name)


def test_floats_at_special_values():
    x = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan], np.float32)
    a, b = (v.ravel().copy() for v in np.meshgrid(x, x))
    table = ARITHMETIC | COMPARISONS | {"divide": np.divide, "power": np.power, "mod": np.fmod}
    for name, results in zip(table, run_each(_calls(table), a, b), strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(results, table[name](a, b), err_msg=name)


@pytest.mark.parametrize("dtype", FLOATS)
def test_power_of_floats(dtype):
    rng = np.random.default_rng(5)
    a, b = rng.uniform(0.1, 5, 99).astype(dtype), rng.uniform(-3, 3, 99).astype(dtype)
    np.testing.assert_allclose(run("power", a, b).astype("float64"), a.astype("float64") ** b.astype("float64"), rtol=RTOL[dtype])


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, 3.0, 4.0, -1.0])
def test_power_by_a_constant(exponent):
    a = np.array([-3, -1, -0.0, 0, 0.7, 2, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        expected = np.power(a, np.float32(exponent))
    np.testing.assert_allclose(run("power", a, Const(np.float32(exponent))), expected, rtol=1e-6)


def _integer_pairs(dtype: str, low: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    limits = np.iinfo(dtype)
    some = [limits.min if low is None else low, limits.max, 0, 1, 2, 3, 7, limits.max // 2]
    some += [-1, -2, -3, -7] if limits.min < 0 and low is None else []
    a, b = np.meshgrid(np.array(some, dtype), np.array(some, dtype))
    return a.ravel().copy(), b.ravel().copy()


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integers_wrap_and_compare(dtype):
    a, b = _integer_pairs(dtype)
    table = ARITHMETIC | COMPARISONS | {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
    with np.errstate(over="ignore"):
        for name, results in zip(table, run_each(_calls(table), a, b), strict=True):
            np.testing.assert_array_equal(results, table[name](a, b), err_msg=name)


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    exact = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
    return np.array(exact, object)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integer_division(dtype):
    a, b = _integer_pairs(dtype)
    a, b = a[b != 0], b[b != 0]
    calls = _calls({"divide": 0, "mod": 0, "floor_divide": 0, "floor_mod": 0})
    divided, mod, floor_divided, floor_mod = run_each(calls, a, b)
    wraps = lambda exact: np.array([int(v) & (2 ** np.iinfo(dtype).bits - 1) for v in exact], np.uint64).astype(dtype)  # noqa: E731
    x, y = a.astype(object), b.astype(object)
    np.testing.assert_array_equal(divided, wraps(_quotient(x, y)))
    np.testing.assert_array_equal(mod, wraps(x - _quotient(x, y) * y))
    np.testing.assert_array_equal(floor_divided, wraps(x // y))
    np.testing.assert_array_equal(floor_mod, wraps(x % y))


@pytest.mark.parametrize("name", ["divide", "mod", "floor_divide", "floor_mod"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_an_integer_divided_by_zero_is_itself_and_leaves_nothing(name, dtype):
    x = np.concatenate([np.arange(9), [np.iinfo(dtype).min, np.iinfo(dtype).max]]).astype(dtype)
    divisor = np.where(np.arange(11) % 3 == 1, 3, 0).astype(dtype)
    remainder = (np.mod if "floor" in name else np.fmod)(x, 3)
    expected = np.where(divisor == 3, *((remainder, 0) if name.endswith("mod") else ((x - remainder) // 3, x)))
    np.testing.assert_array_equal(run(name, x, divisor), expected)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "int64"])
def test_integer_power(dtype):
    bases = np.array([0, 1, 2, 3, 5, 10, 13] + ([-1, -2, -3] if dtype in SIGNED else []), dtype)
    exponents = np.array([0, 1, 2, 3, 5, 9, 31, 63], dtype)
    a, b = (v.ravel().copy() for v in np.meshgrid(bases, exponents))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run("power", a, b), np.power(a, b))


def test_integer_power_of_negative_exponents_truncates():
    a, b = np.array([1, -1, -1, 2, -3], np.int32), np.array([-2, -2, -3, -1, -1], np.int32)
    np.testing.assert_array_equal(run("power", a, b), [1, 1, -1, 0, 0])


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_shifts(dtype):
    width = np.iinfo(dtype).bits
    a, b = np.meshgrid(
        np.array([1, 3, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype), np.array([0, 1, width - 1, width, width + 1], dtype)
    )
    a, b = a.ravel().copy(), b.ravel().copy()
    left, right = run_each([("left_shift", {}), ("right_shift", {})], a, b)
    np.testing.assert_array_equal(left, np.left_shift(a, b))
    np.testing.assert_array_equal(right, np.right_shift(a, b))


def test_bools():
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    table = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
    table |= {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
    table |= {"maximum": np.logical_or, "minimum": np.logical_and, **COMPARISONS}
    for name, results in zip(table, run_each(_calls(table), a, b), strict=True):
        assert results.dtype == np.bool_
        np.testing.assert_array_equal(results, table[name](a, b), err_msg=name)


@given(shapes=arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=5, max_side=4), seed=st.integers(0, 99))
@settings(max_examples=14, deadline=None, derandomize=True)
def test_shapes_broadcast_as_in_numpy(shapes, seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(s).astype("float32") for s in shapes.input_shapes)
    np.testing.assert_array_equal(run("add", a, b), a + b)


@given(shapes=arrays.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=3), seed=st.integers(0, 99))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_where_broadcasts_three(shapes, seed):
    rng = np.random.default_rng(seed)
    c, a, b = (rng.standard_normal(s).astype("float32") for s in shapes.input_shapes)
    np.testing.assert_array_equal(run("where", c > 0, a, b), np.where(c > 0, a, b))


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint64", "bool"])
def test_where_of_any_dtype(dtype):
    a, b, condition = values((3, 17), dtype, limit=None), values((3, 17), dtype, seed=1, limit=None), values((3, 17), "bool")
    found = run("where", condition, a, b)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, np.where(condition, a, b))
