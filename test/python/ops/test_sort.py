"""Numerics of sort, argsort, argsort_rows and topk, against numpy's stable sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import values
from support import program, run, run_each

from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext, load_passes
from relayc.pipelines.te.rules.sort import _FEW
from relayc.tools.opt import run_passes


def stable_order(x: np.ndarray, axis: int, ascending: bool) -> np.ndarray:
    """Indices that sort x, lower ones first among equals, NaN as the largest."""
    if ascending:
        return np.argsort(x, axis, kind="stable")
    # Sorting the reversed line and reading it backwards keeps the order of equals.
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple),
    axis=st.integers(-3, 2),
    ascending=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_any_shape_and_axis(shape, axis, ascending, seed):
    axis %= len(shape)
    x = np.random.default_rng(seed).integers(-2, 2, shape).astype("float32")
    attrs = {"axis": axis, "is_ascend": ascending}
    found, indices = run_each([("sort", attrs), ("argsort", attrs)], x)
    order = stable_order(x, axis, ascending)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(found, np.take_along_axis(x, order, axis))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("ascending", [True, False])
def test_dtypes(dtype, ascending):
    x = values((3, 100), dtype, limit=None)
    found = run("sort", x, is_ascend=ascending)
    assert found.dtype == x.dtype
    expected = np.sort(x, -1)
    np.testing.assert_array_equal(found, expected if ascending else expected[:, ::-1])


@pytest.mark.parametrize("ascending", [True, False])
def test_nan_is_the_largest(ascending):
    x = np.array([3, np.nan, -np.inf, 1, np.nan, np.inf, -0.0, 0.0], np.float32)
    np.testing.assert_array_equal(run("argsort", x, is_ascend=ascending, dtype="int64"), stable_order(x, 0, ascending))


@pytest.mark.parametrize("size", [1, 2, 3, 63, 64, 65, 1000])
def test_line_lengths(size):
    x = np.random.default_rng(size).integers(-25, 25, size).astype("int32")
    np.testing.assert_array_equal(run("argsort", x), stable_order(x, 0, True))


@pytest.mark.parametrize(("k", "axis", "ascending"), [(1, -1, False), (3, 0, False), (3, 1, True), (5, 1, False), (0, 1, True)])
def test_topk(k, axis, ascending):
    x = np.random.default_rng(1).integers(-3, 3, (4, 5, 2)).astype("float32")
    found, indices = run("topk", x, k=k, axis=axis, is_ascend=ascending)
    order = np.take(stable_order(x, axis, ascending), range(k or x.shape[axis]), axis)
    assert indices.dtype == np.int32
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(found, np.take_along_axis(x, order, axis))


@pytest.mark.parametrize("k", [1, 2, 7, 32])
@pytest.mark.parametrize("ascending", [True, False])
def test_few_of_many(k, ascending):
    x = np.random.default_rng(k).integers(-20, 20, (2, 300, 2)).astype("float32")
    x[0, ::7] = np.nan
    for line in (x, np.sort(x, 1), np.flip(np.sort(x, 1), 1).copy()):  # the orders of least and of most work
        found, indices = run("topk", line, k=k, axis=1, is_ascend=ascending)
        order = np.take(stable_order(line, 1, ascending), range(k), 1)
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(found, np.take_along_axis(line, order, 1))


@pytest.mark.parametrize(("k", "size", "few"), [(_FEW, 4 * _FEW, True), (_FEW, 4 * _FEW - 1, False), (_FEW + 1, 4 * _FEW + 4, False)])
def test_a_few_are_inserted_and_more_are_merged(k, size, few):
    load_passes()
    topk = program(lambda x: build("topk", x, k=k), [np.zeros((2, size), np.float32)])
    text = str(run_passes(topk, ["fuse-ops", "outline-groups", "relay-to-te"], PassContext(opt_level=0)))
    assert (f"tensor<1x{k}xi64>" in text, f"tensor<2x{size}xi64>" in text) == (few, not few)


def test_topk_gives_what_ret_type_says():
    x = np.random.default_rng(2).integers(-4, 5, (3, 8))
    both = run("topk", x, k=4, dtype="int64")
    found, indices = run_each([("topk", {"k": 4, "ret_type": t, "dtype": "int64"}) for t in ("values", "indices")], x)
    np.testing.assert_array_equal(found, both[0])
    np.testing.assert_array_equal(indices, both[1])
    assert indices.dtype == np.int64


def test_empty_lines():
    x = np.zeros((2, 0, 3), np.float32)
    assert run("sort", x, axis=1).shape == (2, 0, 3)
    assert [r.shape for r in run("topk", x, k=2)] == [(2, 0, 2)] * 2


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64"])
@pytest.mark.parametrize("shape", [(1, 3), (40, 1), (65, 7), (9, 300)])
def test_rows_compare_by_the_first_elements_that_differ(shape, dtype):
    x = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    x[::2, :-1] = 1
    np.testing.assert_array_equal(run("argsort_rows", x), np.lexsort(x.T[::-1]))


def test_rows_with_nan_and_without_elements():
    x = np.array([[1, np.nan, 0], [1, np.nan, -1], [1, 7, 5], [np.nan, 0, 0]], np.float32)
    np.testing.assert_array_equal(run("argsort_rows", x), [2, 1, 0, 3])
    np.testing.assert_array_equal(run("argsort_rows", np.zeros((3, 0), np.float32), dtype="int32"), [0, 1, 2])
    assert run("argsort_rows", np.zeros((0, 3), np.float32)).shape == (0,)
