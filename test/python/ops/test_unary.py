"""Numerics of the elementwise operators of one tensor, against numpy in float64 and numpy's casts."""

import math

import ml_dtypes  # noqa: F401 (registers bfloat16 with numpy)
import numpy as np
import pytest
from support import build, run, run_each, run_program

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
# Half an ulp of the result for 16-bit floats, which are computed in f32; the expansions of f32 and f64 stay within a few ulp.
RTOL = {"float32": 2e-6, "float64": 1e-12, "float16": 1e-3, "bfloat16": 8e-3}

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# Reference, and the interval that finite samples are drawn from.
FUNCTIONS = {
    "exp": (np.exp, (-10, 10)),
    "log": (np.log, (0, 100)),
    "log2": (np.log2, (0, 100)),
    "log10": (np.log10, (0, 100)),
    "sqrt": (np.sqrt, (0, 1e4)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-3, 1e4)),
    "sigmoid": (_sigmoid, (-15, 15)),
    "sin": (np.sin, (-100, 100)),
    "cos": (np.cos, (-100, 100)),
    "tan": (np.tan, (-1.5, 1.5)),
    "asin": (np.arcsin, (-1, 1)),
    "acos": (np.arccos, (-1, 1)),
    "atan": (np.arctan, (-50, 50)),
    "sinh": (np.sinh, (-10, 10)),
    "cosh": (np.cosh, (-10, 10)),
    "tanh": (np.tanh, (-10, 10)),
    "asinh": (np.arcsinh, (-50, 50)),
    "acosh": (np.arccosh, (1, 50)),
    "atanh": (np.arctanh, (-0.99, 0.99)),
    "erf": (_erf, (-4, 4)),
}
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_floats(dtype):
    rng = np.random.default_rng(7)
    samples = [rng.uniform(low, high, (3, 37)).astype(dtype) for _, (low, high) in FUNCTIONS.values()]
    found = run_program(lambda *values: [build(name, x) for name, x in zip(FUNCTIONS, values, strict=True)], samples)
    for (name, (reference, _)), x, values in zip(FUNCTIONS.items(), samples, found, strict=True):
        assert values.dtype == x.dtype
        # The absolute term is for sin and cos near their zeros: there the result's error is that of the argument's last bit.
        expected = reference(x.astype("float64"))
        np.testing.assert_allclose(values.astype("float64"), expected, rtol=RTOL[dtype], atol=RTOL[dtype] / 10, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_functions_at_special_values(dtype):
    x = SPECIAL.astype(dtype)
    found = run_each([(name, {}) for name in FUNCTIONS], x)
    for name, values in zip(FUNCTIONS, found, strict=True):
        with np.errstate(all="ignore"):
            expected = FUNCTIONS[name][0](x.astype("float64"))
        np.testing.assert_allclose(values.astype("float64"), expected, rtol=RTOL[dtype], atol=RTOL[dtype], err_msg=name)


ROUNDING = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.round,
    "trunc": np.trunc,
    "abs": np.abs,
    "negative": np.negative,
    "sign": np.sign,
}
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_functions_of_floats(dtype):
    x = np.concatenate([SPECIAL, np.random.default_rng(1).uniform(-9, 9, 50), np.arange(-5.5, 6, 1)]).astype(dtype)
    found = run_each([(name, {}) for name in (*ROUNDING, *TESTS, "copy")], x)
    for name, values in zip((*ROUNDING, *TESTS, "copy"), found, strict=True):
        reference = (ROUNDING | TESTS | {"copy": np.array})[name]
        np.testing.assert_array_equal(values.astype("float64"), reference(x.astype("float64")), err_msg=name)
        assert values.dtype == (np.bool_ if name in TESTS else x.dtype)


def test_round_takes_halves_to_even():
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5], np.float32)
    np.testing.assert_array_equal(run("round", x), [-2, -2, 0, 0, 2, 2, 4])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers(dtype):
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 2, limits.max, limits.min, limits.max // 3, limits.min // 3 + 1], dtype)
    references = {name: np.array for name in ("ceil", "floor", "round", "trunc", "copy")}
    references |= {"abs": np.abs, "negative": np.negative, "sign": np.sign, "bitwise_not": np.invert}
    with np.errstate(over="ignore"):
        for name, values in zip(references, run_each([(name, {}) for name in references], x), strict=True):
            np.testing.assert_array_equal(values, references[name](x), err_msg=name)
            assert values.dtype == x.dtype


def test_not_of_bools():
    x = np.array([True, False, True])
    for values in run_each([("logical_not", {}), ("bitwise_not", {})], x):
        np.testing.assert_array_equal(values, ~x)
        assert values.dtype == np.bool_


DTYPES = (*FLOATS, *INTEGERS, "bool")


@pytest.mark.parametrize("source", DTYPES)
def test_cast_to_every_dtype(source):
    # Values that every signed type and float can hold; unsigned sources have no negative ones.
    x = np.array([0, 1, 2, 7, 100, 127] + ([] if source in ("bool", *INTEGERS[4:]) else [-1, -100, -128])).astype(source)
    if source in FLOATS:
        x = np.concatenate([x, np.array([0.5, 1.75, -0.25]).astype(source)])
    targets = [t for t in DTYPES if t not in INTEGERS[4:] or not (x.astype("float64") < 0).any()]
    for target, values in zip(targets, run_each([("cast", {"dtype": t}) for t in targets], x), strict=True):
        assert values.dtype == np.dtype(target)
        np.testing.assert_array_equal(values, x.astype(target), err_msg=target)


def test_cast_of_integers_keeps_low_bits():
    x = np.array([-1, 255, 256, -32769, 2**31, 2**40 + 3], np.int64)
    targets = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64")
    for target, values in zip(targets, run_each([("cast", {"dtype": t}) for t in targets], x), strict=True):
        np.testing.assert_array_equal(values, x.astype(target), err_msg=target)


def test_cast_of_double_to_half_rounds_once():
    # Through float32 these would be rounded to a tie first, and then the wrong way.
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, -(1 + 2**-11 + 2**-40), 65519.999999, 1e300, 1e-300, np.inf, np.nan])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run("cast", x, dtype="float16"), x.astype("float16"))


def test_cast_of_large_unsigned_to_float():
    x = np.array([2**63, 2**64 - 1, 2**53 + 1], np.uint64)
    np.testing.assert_array_equal(run("cast", x, dtype="float64"), x.astype("float64"))
    np.testing.assert_array_equal(run("cast", np.array([2.0**63, 1e19], np.float64), dtype="uint64"), np.array([2**63, 10**19], np.uint64))


def test_cast_of_floats_beyond_the_largest_signed_number():
    x = np.array([2**31, 3e9, 2**32 - 256], np.float32)
    (found,) = run_each([("cast", {"dtype": "uint32"})], x)
    np.testing.assert_array_equal(found, np.array([2**31, 3 * 10**9, 2**32 - 256], np.uint32))


@pytest.mark.parametrize(
    ("source", "target"), [("float32", "int32"), ("int64", "float64"), ("float16", "uint16"), ("uint8", "int8"), ("bool", "uint8")]
)
def test_reinterpret_keeps_the_bits(source, target):
    x = np.random.default_rng(0).integers(0, 2 if source == "bool" else 256, (5, 7, np.dtype(source).itemsize), np.uint8).view(source)
    np.testing.assert_array_equal(run("reinterpret", x, dtype=target).view("uint8"), x.view("uint8"))


def test_reinterpret_as_bool_is_true_where_a_bit_is():
    x = np.array([0, 1, 2, 128], np.uint8)
    np.testing.assert_array_equal(run("reinterpret", x, dtype="bool"), [False, True, True, True])


@pytest.mark.parametrize("bounds", [(-1.0, 2.0), (None, 1.5), (0.0, None), (3.0, 1.0), (float("-inf"), float("inf"))])
def test_clip_of_floats_passes_nan(bounds):
    x = np.array([-5, -1, 0, 0.5, 2, 9, np.nan, np.inf, -np.inf], np.float32)
    expected = x if bounds[0] is None else np.maximum(x, np.float32(bounds[0]))
    expected = expected if bounds[1] is None else np.minimum(expected, np.float32(bounds[1]))
    np.testing.assert_array_equal(run("clip", x, a_min=bounds[0], a_max=bounds[1]), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16"])
def test_clip_bounds_beyond_the_type_are_its_limits(dtype):
    x = np.array([0, 3, 100, 127] + ([] if dtype == "uint8" else [-1, -100, -128]), dtype)
    np.testing.assert_array_equal(run("clip", x, a_min=-1e30, a_max=1e30), x)
    np.testing.assert_array_equal(run("clip", x, a_min=2, a_max=101.0), np.clip(x, 2, 101).astype(dtype))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (17,), (2, 1, 5), (4, 129)])
def test_any_shape(shape):
    x = np.random.default_rng(0).uniform(-2, 2, shape).astype("float32")
    found = run("exp", x)
    assert found.shape == shape
    np.testing.assert_allclose(found, np.exp(x), rtol=2e-6)
