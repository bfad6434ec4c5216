"""Numerics of cumsum and cumprod, against numpy."""

import numpy as np
import pytest
from accuracy import bound_of, check_sums
from oracle import values
from support import run, run_each


def exclusive(scanned: np.ndarray, axis: int, first: int) -> np.ndarray:
    """The scan of the elements before each one."""
    head = np.full_like(np.take(scanned, [0], axis), first)
    return np.concatenate([head, np.delete(scanned, -1, axis)], axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(5,), (3, 7), (2, 5, 4)])
def test_axes(shape, axis):
    axis = min(axis, len(shape) - 1)
    rng = np.random.default_rng(0)
    x = (rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.5, shape)).astype("float32")
    calls = [(name, {"axis": axis, "exclusive": e}) for name in ("cumsum", "cumprod") for e in (False, True)]
    sums, products = np.cumsum(x, axis, dtype="float64"), np.cumprod(x, axis, dtype="float64")
    expected, size = [sums, exclusive(sums, axis, 0), products, exclusive(products, axis, 1)], np.cumsum(np.abs(x), axis)
    for found, want, magnitude in zip(run_each(calls, x), expected, (size, size, *np.abs(expected[2:])), strict=True):
        assert (np.abs(found - want) <= bound_of(shape[axis], want, magnitude, "float32")).all()


def test_without_axis_the_tensor_is_flattened():
    x = np.random.default_rng(1).integers(-5, 5, (3, 4))
    np.testing.assert_array_equal(run("cumsum", x), np.cumsum(x))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16", "bfloat16", "float64"])
def test_dtypes(dtype):
    # Integers wrap; sums of few small whole numbers are exact in floats.
    x = values((4, 9), dtype, limit=None) if "int" in dtype else values((4, 9), "int8").astype(dtype)
    found = run("cumsum", x, axis=1)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, np.cumsum(x.astype("int64"), 1).astype(dtype))


def test_dtype_of_the_result():
    x = values((300,), "uint8", limit=None)
    np.testing.assert_array_equal(run("cumsum", x, axis=0, dtype="int32"), np.cumsum(x, dtype="int32"))


def test_half_floats_accumulate_in_single_precision():
    x = 1 + np.abs(values((4096,), "float16"))
    sums = np.cumsum(x, dtype="float64")
    check_sums(run("cumsum", x, axis=0), sums, sums, x.size)


def test_empty_lines():
    assert run("cumsum", np.zeros((2, 0, 3), np.float32), axis=1).shape == (2, 0, 3)
