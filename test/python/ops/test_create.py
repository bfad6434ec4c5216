"""Tensors made from attributes or shapes, against numpy."""

import numpy as np
import pytest
from support import Const, run

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "uint64", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
def test_full_zeros_ones(dtype):
    for name, value in (("zeros", 0), ("ones", 1)):
        found = run(name, shape=(2, 3), dtype=dtype)
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(found, np.full((2, 3), value).astype(dtype))
    value = np.array(2.5).astype(dtype)
    np.testing.assert_array_equal(run("full", value, shape=(3, 1, 2)), np.full((3, 1, 2), value))


@pytest.mark.parametrize("wrap", [Const, lambda x: x])
def test_full_converts_its_value(wrap):
    found = run("full", wrap(np.array(-2.75, np.float32)), shape=(4,), dtype="int32")
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [-2] * 4)


@pytest.mark.parametrize(
    ("start", "stop", "step", "dtype"),
    [
        (0, 5, 1, "int64"),
        (7, -4, -3, "int32"),
        (1, 2, 0.25, "float32"),
        (0.1, 1.0, 0.3, "float64"),
        (0, 0, 1, "int64"),
        (-3, 4, 2, "float16"),
        (0, 3, 0.5, "int32"),
    ],
)
def test_arange(start, stop, step, dtype):
    found = run("arange", start=start, stop=stop, step=step, dtype=dtype)
    expected = np.arange(start, stop, step).astype(dtype)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("shape", [(), (5,), (2, 0, 3), (1, 2, 3, 4)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_shape_of(shape, dtype):
    found = run("shape_of", np.zeros(shape, np.float32), dtype=dtype)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, np.array(shape, dtype))
