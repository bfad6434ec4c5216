"""Numerics of activations, against numpy in float64."""

import numpy as np
import pytest
from oracle import values
from support import run, run_each

# Softmax of f32: an exponential of 2 ulp and a rounding each for the sum and the quotient. The 16-bit types round the result once, to
# multiples of SMALLEST where it is near 0.
TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "float16": 1e-3, "bfloat16": 8e-3}
SMALLEST = {"float16": 2.0**-24}


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 1), -1), ((3, 1000), -1), ((2, 5, 33), 1), ((7, 3, 4), 0), ((2, 3, 4, 17), -1), ((19,), 0)]
)
def test_softmax_and_log_softmax(shape, axis, dtype):
    x = values(shape, dtype)
    wide, tolerance = x.astype("float64"), TOLERANCE[dtype]
    found, logs = run_each([("nn.softmax", {"axis": axis}), ("nn.log_softmax", {"axis": axis})], x)
    assert found.dtype == logs.dtype == x.dtype
    np.testing.assert_allclose(found.astype("float64"), softmax(wide, axis), rtol=tolerance, atol=SMALLEST.get(dtype, 0))
    np.testing.assert_allclose(logs.astype("float64"), np.log(softmax(wide, axis)), rtol=tolerance, atol=tolerance)


def test_softmax_of_large_values_does_not_overflow():
    x = np.array([[1e4, 1e4 - 1, -1e4], [-1e30, -1e30, -1e30]], "float32")
    np.testing.assert_allclose(run("nn.softmax", x), softmax(x.astype("float64"), -1), rtol=1e-6)


def test_softmax_of_a_masked_row():
    x = np.array([[0.0, -np.inf, 1.0, -np.inf]], "float32")
    np.testing.assert_allclose(run("nn.softmax", x), softmax(x.astype("float64"), -1), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64"])
def test_relu(dtype):
    x = values((3, 37), dtype)
    np.testing.assert_array_equal(run("nn.relu", x), np.maximum(x, np.zeros((), dtype)))


def test_relu_passes_nan_on():
    np.testing.assert_array_equal(run("nn.relu", np.array([np.nan, -np.inf, np.inf], "float32")), [np.nan, 0, np.inf])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_leaky_relu_and_prelu(dtype):
    x, alpha = values((2, 5, 9), dtype), values((5,), dtype, seed=1)
    slope = np.array(0.1, dtype)
    np.testing.assert_array_equal(run("nn.leaky_relu", x, alpha=0.1), np.where(x >= 0, x, (slope * x).astype(dtype)))
    np.testing.assert_array_equal(run("nn.prelu", x, alpha), np.where(x >= 0, x, alpha[:, None] * x))


def test_prelu_along_the_last_axis():
    x, alpha = values((2, 5, 9)), values((9,), seed=1)
    np.testing.assert_array_equal(run("nn.prelu", x, alpha, axis=-1), np.where(x >= 0, x, alpha * x))


def test_dropout_is_the_identity_in_inference():
    x = values((3, 4))
    found, mask = run("nn.dropout", x, rate=0.3)
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(mask, np.ones_like(x))
