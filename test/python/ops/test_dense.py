"""Numerics of matrix products and bias_add, against numpy in float64."""

import numpy as np
import pytest
from accuracy import check_sums
from oracle import values
from support import Const, run, run_each, run_program

from relayc.dialects.relay import build

DTYPES = ("float32", "float64", "float16", "bfloat16")


def check_product(found: np.ndarray, a: np.ndarray, b: np.ndarray, dtype: str = "float32") -> None:
    assert found.dtype == np.dtype(dtype)
    check_sums(found, a @ b, np.abs(a) @ np.abs(b), a.shape[-1])


def wide(*arrays: np.ndarray) -> list[np.ndarray]:
    return [a.astype("float64") for a in arrays]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "k", "units"), [(1, 1, 1), (1, 64, 10), (7, 33, 5), (17, 100, 65), (64, 48, 32)])
def test_dense(rows, k, units, dtype):
    x, w = values((rows, k), dtype), values((units, k), dtype, seed=1)
    a, b = wide(x, w)
    check_product(run("nn.dense", x, w), a, b.T, dtype)


@pytest.mark.parametrize("shape", [(9,), (2, 3, 9), (2, 1, 3, 9)])
def test_dense_of_any_rank(shape):
    x, w = values(shape), values((5, 9), seed=1)
    a, b = wide(x, w)
    check_product(run("nn.dense", x, w, units=5), a, b.T)


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, False), (False, True), (True, False), (True, True)])
def test_matmul_transposes(transpose_a, transpose_b):
    x, y = values((11, 17) if not transpose_a else (17, 11)), values((17, 6) if not transpose_b else (6, 17), seed=1)
    a, b = wide(x, y)
    found = run("nn.matmul", x, y, transpose_a=transpose_a, transpose_b=transpose_b)
    check_product(found, a.T if transpose_a else a, b.T if transpose_b else b)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("left", "right"), [(3, 3), (1, 4), (4, 1), (1, 1)])
def test_batch_matmul_broadcasts_a_batch_of_one(left, right, dtype):
    x, y = values((left, 5, 13), dtype), values((right, 7, 13), dtype, seed=1)
    a, b = wide(x, y)
    check_product(run("nn.batch_matmul", x, y), a, b.transpose(0, 2, 1), dtype)


def test_a_weight_that_two_kernels_read_in_layouts_of_their_own():
    x, w = values((5, 96)), values((96, 96), seed=1)
    a, b = wide(x, w)
    dense, product = run_program(lambda x, w: [build("nn.dense", x, w), build("nn.matmul", x, w)], [x, Const(w)], opt_level=0)
    check_product(dense, a, b.T)
    check_product(product, a, b)


def test_batch_matmul_transposes():
    x, y = values((2, 5, 13)), values((2, 13, 7), seed=1)
    a, b = wide(x, y)
    check_product(run("nn.batch_matmul", x, y, transpose_b=False), a, b)
    xt, yt = (np.ascontiguousarray(v.transpose(0, 2, 1)) for v in (x, y))
    check_product(run("nn.batch_matmul", xt, yt, transpose_a=True), a, b)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_integer_products_accumulate_in_out_dtype(dtype):
    x, w = values((5, 70), dtype, limit=None), values((9, 70), dtype, seed=1, limit=None)
    found = run("nn.dense", x, w, out_dtype="int32")
    np.testing.assert_array_equal(found, x.astype("int32") @ w.astype("int32").T)


def test_integer_products_wrap():
    x, w = values((3, 40), "int32", limit=None), values((4, 40), "int32", seed=1, limit=None)
    np.testing.assert_array_equal(run("nn.dense", x, w), x @ w.T)


def test_an_empty_sum_is_zero():
    x, w, bias = values((2, 0)), values((3, 0)), values((3,))
    dense, biased = run_program(lambda x, w, b: [y := build("nn.dense", x, w), build("nn.bias_add", y, b, axis=-1)], [x, w, bias])
    np.testing.assert_array_equal(dense, np.zeros((2, 3)))
    np.testing.assert_array_equal(biased, [bias, bias])


def test_bias_add_along_each_axis():
    x = values((4, 4, 4))
    b = values((4,), seed=1)
    for axis, found in zip((0, 1, 2, -1), run_each([("nn.bias_add", {"axis": a}) for a in (0, 1, 2, -1)], x, b), strict=True):
        shape = [1, 1, 1]
        shape[axis] = 4
        np.testing.assert_array_equal(found, x + b.reshape(shape))


@pytest.mark.parametrize("shape", [(5, 3), (33, 64)])
def test_products_of_a_constant_with_itself(shape):
    """A constant that is packed as a weight cannot be read as data by the same kernel."""
    a = values(shape)
    found = run_program(lambda v: [build("nn_dense", v, v), build("nn_dense", build("nn_relu", v), v)], [Const(a)])
    for y, x in zip(found, (a, np.maximum(a, 0)), strict=True):
        check_product(y, *wide(x, a.T))
